#pragma once

// Clients of the crash tests for the protocols of beanstalkd and Faktory. Each has one connection,
// and an HTTP connection for requests that the protocol does not have.
//
// The server releases the jobs of a closed connection at once, while other clients still work.
// `open_connections` keeps connections open until all clients have ended.

#include <cstdint>
#include <string>
#include <vector>

#include "jobs/net/testing/socket_wire.hpp"
#include "sluice/sync/guarded.hpp"
#include "tests/crash/http_client.hpp"

namespace sluice::crash {

class open_connections {
 public:
  void keep(jobs::testing::socket_wire connection) {
    kept_.with([&](auto& all) { all.push_back(std::move(connection)); });
  }
  void close() {
    kept_.with([](auto& all) { all.clear(); });
  }

 private:
  guarded<std::vector<jobs::testing::socket_wire>> kept_;
};

// The common part of both clients.
class wire_client : public client {
 public:
  wire_client(std::uint16_t port, http_client http, open_connections& kept)
      : wire_(port), http_(std::move(http)), kept_(kept), gone_(!wire_.connected()) {}
  ~wire_client() override { kept_.keep(std::move(wire_)); }

  std::vector<answer> ack_many(const std::vector<taken_job>& jobs) override {
    std::vector<answer> answers;
    for (const auto& job : jobs) answers.push_back(ack(job, {}));
    return answers;
  }
  std::optional<std::vector<taken_job>> list(jobs::job_state state) override {
    return http_.list(state);
  }
  std::optional<std::uint64_t> unfinished() override { return http_.unfinished(); }
  bool gone() const override { return gone_; }

 protected:
  // Returns false if the server is gone.
  bool send(std::string_view bytes);
  // Returns the next line; empty if the server is gone.
  std::string receive_line();
  std::string receive_bytes(std::size_t count);
  http_client& http() { return http_; }

 private:
  jobs::testing::socket_wire wire_;
  http_client http_;
  open_connections& kept_;
  bool gone_;
};

// Returns the body, which is all of a job's contents: the protocol has no other fields.
std::string beanstalk_contents(const jobs::job_spec& spec);

class beanstalk_client final : public wire_client {
 public:
  beanstalk_client(std::uint16_t port, std::uint16_t http_port, open_connections& kept);

  std::vector<push_answer> push(const std::vector<jobs::job_spec>& specs, jobs::bulk mode) override;
  std::optional<std::vector<taken_job>> lease(std::size_t max, milliseconds wait,
                                              milliseconds lease_for) override;
  answer ack(const taken_job& job, const std::string& result) override;
  std::vector<answer> ack_many(const std::vector<taken_job>& jobs) override;
  answer fail(const taken_job& job, milliseconds retry_in) override;
  answer bury(const taken_job& job) override;
  answer extend(const taken_job& job, milliseconds by) override;
  answer cancel(jobs::job_id id) override { return remove(id); }
  answer remove(jobs::job_id id) override;
  answer retry(jobs::job_id id) override;

 private:
  answer ask(const std::string& command, std::string_view yes);

  std::string used_ = "default";
};

// Returns the arguments, which include the other contents of a job.
std::string faktory_contents(const jobs::job_spec& spec);

class faktory_client final : public wire_client {
 public:
  faktory_client(std::uint16_t port, std::uint16_t http_port, open_connections& kept);

  std::vector<push_answer> push(const std::vector<jobs::job_spec>& specs, jobs::bulk mode) override;
  batch_answer push_batch(const std::vector<jobs::job_spec>& specs, const jobs::job_spec& on_end,
                          const jobs::job_spec& on_success) override;
  std::optional<std::vector<taken_job>> lease(std::size_t max, milliseconds wait,
                                              milliseconds lease_for) override;
  answer ack(const taken_job& job, const std::string& result) override;
  answer fail(const taken_job& job, milliseconds retry_in) override;
  // The protocol has no command to bury a job, nor to cancel or delete it by its number.
  answer bury(const taken_job&) override { return answer::no; }
  answer extend(const taken_job& job, milliseconds by) override;
  answer cancel(jobs::job_id) override { return answer::no; }
  answer remove(jobs::job_id) override { return answer::no; }
  answer retry(jobs::job_id id) override { return http().retry(id); }

  // Makes failed jobs due now; their pause is a quarter of a minute or more.
  bool requeue_retries();

 private:
  answer ask(const std::string& command);
  static answer if_held(const taken_job& job, answer outcome);
  std::vector<push_answer> push_bulk(const std::vector<jobs::job_spec>& specs,
                                     const std::string& bid);
  std::string wid_;
};

}  // namespace sluice::crash
