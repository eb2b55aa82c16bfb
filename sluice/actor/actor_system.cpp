#include "sluice/actor/actor_system.hpp"

#include "sluice/base/check.hpp"

namespace sluice {

actor_system::actor_system(executor& on, options o)
    : use_(&on, executor_user::actor_system),
      core_(*new detail::system_core(on, std::move(o))) {}

actor_system::~actor_system() {
  stop();
  (void)join();
  core_.system_is_gone();
  core_.release();
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
  return in_time;
}

namespace {

// One that nobody wants any more is forgotten before the actor ends: then it says so.
class end_promise {
 public:
  end_promise() = default;
  end_promise(end_promise&&) noexcept = default;
  end_promise& operator=(end_promise&&) = delete;
  ~end_promise() {
    if (to_.is_unset()) to_.set_exception(future_error(future_error::cancelled));
  }
  promise<actor_end>& to() noexcept { return to_; }

 private:
  promise<actor_end> to_;
};

task<status> end_within(detail::cell_ptr who, wait_limits limits, future<actor_end> end) {
  auto waiting = end.async_get(std::move(limits));
  const auto got = co_await waiting;
  if (got) co_return status::ok;
  end.cancel();
  who->request_stop(detail::stop_how::now);
  co_return got.status();
}

}  // namespace

future<actor_end> detail::address::ended() const {
  end_promise p;
  future<actor_end> f = p.to().get_future();
  if (watch::is_on()) [[unlikely]] p.to().made_by(cell_of().as_party());
  std::stop_token given_up = p.to().stop_token();
  watch_end(cell_of(), [p = std::move(p)](const actor_end& e) mutable { p.to().set_value(e); },
            {.life = std::move(given_up)});
  return f;
}

status detail::address::shutdown_within(const wait_limits& limits) const {
  check(cell::current() != &cell_of(), "sluice::ref", "an actor not to wait for its own end");
  close();
  future<actor_end> end = ended();
  const auto got = end.get_within(limits);
  if (got) return status::ok;
  end.cancel();
  stop();
  return got.status();
}

task<status> detail::address::async_shutdown(wait_limits limits) const {
  check(cell::current() != &cell_of(), "sluice::ref", "an actor not to wait for its own end");
  close();
  return end_within(to_, std::move(limits), ended());
}

}  // namespace sluice
