#pragma once

// Looks at a store's file through a connection of its own, while another thread writes.

#include <memory>
#include <string>
#include <utility>

#include "jobs/store/sqlite/detail/batch_finder.hpp"
#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/job_finder.hpp"
#include "jobs/store/store.hpp"
#include "sluice/sync/shared_mutex.hpp"

namespace sluice::jobs::detail {

// Opens at its first call, and again after a failure to do so: there is nobody earlier to tell.
class sqlite_reader final : public store_reader {
 public:
  // `gate` is held while it reads: the log is copied when nobody does.
  sqlite_reader(std::string path, connection::how how, std::shared_ptr<shared_mutex> gate,
                std::shared_ptr<damage_report> damage);

  result<std::optional<job>> get(job_id id) override;
  result<job_page> list(const job_filter& filter, job_id after, std::size_t limit) override;
  result<std::optional<batch_info>> get_batch(job_id id) override;
  result<batch_page> list_batches(job_id after, std::size_t limit) override;
  result<log_page> logs(job_id id, std::uint64_t after, std::size_t limit) override;

 private:
  struct opened {
    opened(connection c, std::shared_ptr<damage_report> damage)
        : on(std::move(c)), find(damage), batches(std::move(damage)) {}
    connection on;
    job_finder find;
    batch_finder batches;
  };
  void_result open();
  // Opens, and reads with what is there then.
  template <class Read>
  auto read(Read what) -> decltype(what(std::declval<opened&>()));

  std::string path_;
  connection::how how_;
  std::shared_ptr<shared_mutex> gate_;
  std::shared_ptr<damage_report> damage_;
  std::unique_ptr<opened> it_;  // its finders point to its connection
};

}  // namespace sluice::jobs::detail
