#include "sluice/actor/actor_system.hpp"

#include "sluice/base/check.hpp"

namespace sluice {

actor_system::actor_system(executor& on, options o)
    : use_(&on, executor_user::actor_system),
      core_(*new detail::system_core(on, std::move(o))) {}

actor_system::~actor_system() {
  stop();
  (void)join();
  core_.system_destroyed();
  core_.release();
}

void actor_system::close() noexcept {
  core_.root().request_stop(detail::stop_mode::drain);
}
void actor_system::stop() noexcept {
  core_.root().request_stop(detail::stop_mode::now);
}

status actor_system::join(const wait_limits& limits) {
  const detail::cell* const here = detail::cell::current();
  check(here == nullptr || &here->system() != &core_, "sluice::actor_system",
        "a join from outside its own actors");
  return core_.ended().wait(limits);
}

status actor_system::shutdown(const wait_limits& limits) {
  close();
  const status in_time = join(limits);
  if (in_time) return in_time;
  stop();
  return in_time;
}

namespace {

// A promise that is destroyed before the actor ends cancels its future.
class end_promise {
 public:
  end_promise() = default;
  end_promise(end_promise&&) noexcept = default;
  end_promise& operator=(end_promise&&) = delete;
  ~end_promise() {
    if (promise_.is_unset()) promise_.set_exception(future_error(future_error::cancelled));
  }
  promise<actor_end>& get() noexcept { return promise_; }

 private:
  promise<actor_end> promise_;
};

task<status> end_within(detail::cell_ptr actor, wait_limits limits, future<actor_end> end) {
  auto waiting = end.async_get(std::move(limits));
  const auto got = co_await waiting;
  if (got) co_return status::ok;
  end.cancel();
  actor->request_stop(detail::stop_mode::now);
  co_return got.status();
}

}  // namespace

future<actor_end> detail::address::ended() const {
  end_promise p;
  future<actor_end> f = p.get().get_future();
  if (wait_report::is_on()) [[unlikely]] p.get().made_by(cell_of().as_party());
  std::stop_token given_up = p.get().stop_token();
  watch_end(cell_of(), [p = std::move(p)](const actor_end& e) mutable { p.get().set_value(e); },
            {.stop = std::move(given_up)});
  return f;
}

status detail::address::shutdown(const wait_limits& limits) const {
  check(cell::current() != &cell_of(), "sluice::ref", "a caller other than the actor itself");
  close();
  future<actor_end> end = ended();
  const auto got = end.get(limits);
  if (got) return status::ok;
  end.cancel();
  stop();
  return got.status();
}

task<status> detail::address::async_shutdown(wait_limits limits) const {
  check(cell::current() != &cell_of(), "sluice::ref", "a caller other than the actor itself");
  close();
  return end_within(cell_, std::move(limits), ended());
}

}  // namespace sluice
