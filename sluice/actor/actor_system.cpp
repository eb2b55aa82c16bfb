#include "sluice/actor/actor_system.hpp"

#include "sluice/base/check.hpp"

namespace sluice {

actor_system::actor_system(executor& on, options o) : core_(on, std::move(o)) {}

actor_system::~actor_system() {
  stop();
  (void)join();
}

void actor_system::close() noexcept {
  core_.root().request_stop(detail::stop_how::drain);
}
void actor_system::stop() noexcept {
  core_.root().request_stop(detail::stop_how::now);
}

status actor_system::join(const wait_limits& limits) {
  const detail::cell* const here = detail::cell::current();
  check(here == nullptr || &here->system() != &core_, "sluice::actor_system",
        "to be waited for by somebody else than its own actors");
  return core_.ended().wait_within(limits);
}

status actor_system::shutdown_within(const wait_limits& limits) {
  close();
  const status in_time = join(limits);
  if (in_time) return in_time;
  stop();
  (void)join();
  return in_time;
}

future<actor_end> detail::address::ended() const {
  promise<actor_end> p;
  future<actor_end> f = p.get_future();
  watch_end(cell_of(), [p = std::move(p)](const actor_end& e) mutable { p.set_value(e); });
  return f;
}

}  // namespace sluice
