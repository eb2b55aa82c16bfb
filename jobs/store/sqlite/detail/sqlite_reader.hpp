#pragma once

// Reads a store's file through its own connection, while another thread writes.

#include <memory>
#include <string>
#include <utility>

#include "jobs/store/sqlite/detail/batch_finder.hpp"
#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/job_finder.hpp"
#include "jobs/store/store.hpp"
#include "sluice/sync/shared_mutex.hpp"

namespace sluice::jobs::detail {

// Opens at its first call, and tries again after a failure: the constructor has no result.
class sqlite_reader final : public store_reader {
 public:
  // Holds `gate` shared while it reads: checkpoints exclude readers.
  sqlite_reader(std::string path, connection::options options, std::shared_ptr<shared_mutex> gate,
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
  // Opens if needed, and calls `reads`.
  template <class Read>
  auto read(Read reads) -> decltype(reads(std::declval<opened&>()));

  std::string path_;
  connection::options options_;
  std::shared_ptr<shared_mutex> gate_;
  std::shared_ptr<damage_report> damage_;
  std::unique_ptr<opened> opened_;  // its finders refer to its connection
};

}  // namespace sluice::jobs::detail
