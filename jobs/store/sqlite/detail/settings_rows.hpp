#pragma once

// Converts queues and cron entries to rows of their tables and back.

#include <string>
#include <vector>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

class settings_rows {
 public:
  [[nodiscard]] bool prepare(connection& on);

  [[nodiscard]] bool set_queue(queue_number number, const change::queue_settings& settings);
  [[nodiscard]] bool set_cron(const cron_entry& entry);
  [[nodiscard]] bool drop_cron(const cron_entry& entry);

 private:
  statement set_queue_, set_cron_, drop_cron_;
};

// Return the columns in the checksum of a queue; and the SQL condition that a cron entry is
// damaged.
std::string queue_column_list();
std::string damaged_cron();

void_result load_queues(connection& on, std::vector<store::saved_queue>& into);
// Pauses damaged entries and adds their names to `damaged`.
void_result load_crons(connection& on, std::vector<cron_entry>& into,
                       std::vector<std::string>& damaged);

}  // namespace sluice::jobs::detail
