#pragma once

// Looks at a store's file through a connection of its own, while another thread writes.

#include <memory>
#include <string>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/job_finder.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

// Opens at its first call, and again after a failure to do so: there is nobody earlier to tell.
class sqlite_reader final : public store_reader {
 public:
  sqlite_reader(std::string path, connection::how how);

  result<std::optional<job>> get(job_id id) override;
  result<job_page> list(const job_filter& filter, job_id after, std::size_t limit) override;

 private:
  struct opened {
    explicit opened(connection c) : on(std::move(c)) {}
    connection on;
    job_finder find;
  };
  void_result open();

  std::string path_;
  connection::how how_;
  std::unique_ptr<opened> it_;  // its finder points to its connection
};

}  // namespace sluice::jobs::detail
