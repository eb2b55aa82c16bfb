#include "jobs/embedded/open.hpp"

#include <utility>

namespace sluice::jobs {

result<std::unique_ptr<engine>> open(std::string path, open_options o) {
  if (path.empty()) return error{error_code::invalid, "the path of the job file is empty"};
  o.file.path = std::move(path);
  o.file.sync = o.sync;
  if (o.sync == sync_mode::interval) {
    if (o.flush_every < milliseconds(1)) {
      return error{error_code::invalid,
                   "flush_every must be at least 1 ms with sync_mode::interval; use "
                   "sync_mode::off to never flush"};
    }
    o.engine.flush_every = o.flush_every;
  }
  auto store = open_sqlite(std::move(o.file));
  if (!store) return store.error();
  return engine::open(std::move(*store), o.engine);
}

}  // namespace sluice::jobs
