#include "jobs/store/sqlite/detail/sqlite_reader.hpp"

#include <shared_mutex>
#include <utility>

namespace sluice::jobs::detail {

sqlite_reader::sqlite_reader(std::string path, connection::options options,
                             std::shared_ptr<shared_mutex> gate,
                             std::shared_ptr<damage_report> damage)
    : path_(std::move(path)),
      options_(std::move(options)),
      gate_(std::move(gate)),
      damage_(std::move(damage)) {
  options_.read_only = true;
}

void_result sqlite_reader::open() {
  if (!opened_) {
    auto on = connection::open(path_, options_);
    if (!on) return std::move(on.error());
    auto made = std::make_unique<opened>(std::move(*on), damage_);
    if (!define_row_functions(made->on) || !made->find.prepare(made->on) ||
        !made->batches.prepare(made->on)) {
      return made->on.failure("preparing to read it");
    }
    opened_ = std::move(made);
  }
  opened_->find.names().forget();  // queues may have been added since
  return done{};
}

template <class Read>
auto sqlite_reader::read(Read reads) -> decltype(reads(std::declval<opened&>())) {
  const std::shared_lock hold(*gate_);
  if (auto ready = open(); !ready) return std::move(ready.error());
  return reads(*opened_);
}

result<std::optional<job>> sqlite_reader::get(job_id id) {
  return read([&](opened& on) { return on.find.get(id); });
}

result<job_page> sqlite_reader::list(const job_filter& filter, job_id after, std::size_t limit) {
  return read([&](opened& on) { return on.find.list(filter, after, limit); });
}

result<std::optional<batch_info>> sqlite_reader::get_batch(job_id id) {
  return read([&](opened& on) { return on.batches.get(id); });
}

result<batch_page> sqlite_reader::list_batches(job_id after, std::size_t limit) {
  return read([&](opened& on) { return on.batches.list(after, limit); });
}

result<log_page> sqlite_reader::logs(job_id id, std::uint64_t after, std::size_t limit) {
  return read([&](opened& on) { return on.batches.logs(id, after, limit); });
}

}  // namespace sluice::jobs::detail
