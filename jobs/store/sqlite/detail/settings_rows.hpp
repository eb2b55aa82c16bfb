#pragma once

// Queues and cron entries as rows of their tables, there and back: few, and written seldom.

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

void_result load_queues(connection& on, std::vector<store::saved_queue>& into);
void_result load_crons(connection& on, std::vector<cron_entry>& into);

}  // namespace sluice::jobs::detail
