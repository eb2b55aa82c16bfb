#pragma once

// An HTTP client of the crash tests, with one keep-alive connection.

#include <cstdint>

#include "jobs/http/testing/wire.hpp"
#include "tests/crash/client.hpp"

namespace sluice::crash {

// The port in http://127.0.0.1:port.
std::uint16_t port_of(std::string_view url);

// Returns the part of a stored job that must be unchanged: by default all of it. A job pushed in
// another protocol is stored in a different form.
using read_contents = std::string (*)(const jobs::job_spec& spec);

class http_client final : public client {
 public:
  explicit http_client(std::uint16_t port, read_contents read = contents_of)
      : wire_(port), gone_(!wire_.connected()), read_(read) {}

  std::vector<push_answer> push(const std::vector<jobs::job_spec>& specs, jobs::bulk mode) override;
  std::optional<std::vector<taken_job>> lease(std::size_t max, milliseconds wait,
                                              milliseconds lease_for) override;
  answer ack(const taken_job& job, const std::string& result) override;
  std::vector<answer> ack_many(const std::vector<taken_job>& jobs) override;
  answer fail(const taken_job& job, milliseconds retry_in) override;
  answer bury(const taken_job& job) override;
  answer extend(const taken_job& job, milliseconds by) override;
  answer cancel(jobs::job_id id) override;
  answer remove(jobs::job_id id) override;
  answer retry(jobs::job_id id) override;
  std::optional<std::vector<taken_job>> list(jobs::job_state state) override;
  std::optional<std::uint64_t> unfinished() override;
  bool gone() const override { return gone_; }

  // Closes the batches that pushers left open when the server ended.
  [[nodiscard]] bool close_batches();

  // Returns the last reply. Status 0: there was none.
  const jobs::testing::reply& last() const noexcept { return last_; }

 private:
  const jobs::testing::reply& ask(std::string_view method, const std::string& path,
                                  std::string_view body = {});
  answer end(jobs::job_id id, std::string_view operation, std::string_view body);
  taken_job take(const jobs::job& job, jobs::lease_ref lease) const;

  jobs::testing::wire wire_;
  jobs::testing::reply last_;
  bool gone_;
  read_contents read_;
};

}  // namespace sluice::crash
