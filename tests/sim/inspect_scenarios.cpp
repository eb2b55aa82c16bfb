// inspect, used while waits begin and end. It is on for the whole process, so a schedule
// that fails leaves it on: its report is valid, and later schedules are meaningless. The
// inspected objects are on the heap: their address determines their place in the tables, and only
// the heap has the same addresses in every process.

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sluice/future/promise.hpp"
#include "sluice/inspect/inspect.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/detail/wait_report.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;
using testing::detached;

// Without the order of locks, whose tables are allocated and outlive a schedule.
const inspect::options waits_alone{.lock_order = false};

void must_be(const std::vector<inspect::wait_info>& seen, const char* type, const void* address) {
  check(seen.size() <= 1, "at most one wait");
  if (seen.empty()) return;
  check(seen[0].on.size() == 1 && seen[0].on[0].type == type, "the type of the object");
  check(seen[0].on[0].address == address, "the object");
}

void a_wait_times_out_while_it_is_inspected() {
  const inspect::enabled on(waits_alone);
  const auto never = std::make_unique<event>();
  std::jthread waits([&] { check(never->wait(1ms) == status::timed_out, "a time-out"); });
  const auto seen = inspect::waits();
  must_be(seen, "event", never.get());
  check(seen.empty() || seen[0].has_deadline, "a wait with a deadline");
  waits.join();
  check(inspect::waits().empty(), "no wait at the end");
}

void a_coroutine_is_resumed_while_it_is_inspected() {
  const inspect::enabled on(waits_alone);
  const auto done = std::make_unique<event>();
  const auto coroutine = [&]() -> detached { (void)co_await done->async_wait(); };
  coroutine();
  check(inspect::waits().size() == 1, "the coroutine to be listed");
  std::jthread sets([&] { done->set(); });
  must_be(inspect::waits(), "event", done.get());
  sets.join();
  check(inspect::waits().empty(), "no wait at the end");
}

void a_queue_is_destroyed_while_it_is_inspected() {
  const inspect::enabled on(waits_alone);
  auto q = std::make_unique<bounded_queue<int>>(1);
  const void* const was_at = q.get();
  std::jthread looks([&] { must_be(inspect::waits(), "bounded_queue", was_at); });
  std::jthread takes([&] { check(q->pop().value() == 1, "the pushed item"); });
  check(q->push(1) == status::ok, "capacity for one item");
  takes.join();
  q.reset();
  looks.join();
}

void a_lock_is_released_while_it_is_inspected() {
  const inspect::enabled on(waits_alone);
  const auto lock = std::make_unique<mutex>();
  std::jthread holds([&] { const std::lock_guard hold(*lock); });
  const auto seen = inspect::holds();
  check(seen.size() <= 1, "at most one holder");
  check(seen.empty() || (seen[0].object.type == "mutex" && seen[0].object.address == lock.get()),
        "the held lock");
  holds.join();
  check(inspect::holds().empty(), "no hold at the end");
}

// Inspection walks upstream while the stages change and end.
void a_chain_of_futures_is_completed_while_it_is_inspected() {
  const inspect::enabled on(waits_alone);
  promise<int> made;
  made.made_by(wait_report::party::this_thread());
  auto chain = made.get_future().and_then([](int v) { return make_ready_future(v + 1); });
  std::jthread waits([&] { check(chain.get() == 2, "the value of the chain"); });
  std::jthread makes([&] { made.set_value(1); });
  const auto seen = inspect::waits();
  check(seen.size() <= 1, "at most one wait");
  check(seen.empty() || seen[0].on.at(0).type == "future", "the type of the object");
  waits.join();
  makes.join();
  check(inspect::waits().empty(), "no wait at the end");
}

// Receives all reports and records nothing.
class deaf final : public wait_report::observer {
 public:
  void wait_started(wait_report::wait_record&) noexcept override {}
  void wait_ended(wait_report::wait_record&) noexcept override {}
  void took(const wait_report::hold&) noexcept override {}
  void gave(const void*, wait_report::party, std::int64_t) noexcept override {}
  void used(const void*, wait_report::side, wait_report::party) noexcept override {}
  void destroyed(const void*) noexcept override {}
};

void it_restarts_the_reports_while_it_is_turned_off() {
  static deaf watcher;  // never destroyed
  wait_report::observe(&watcher);
  std::jthread goes([] { wait_report::start_over(); });
  wait_report::observe(nullptr);
  goes.join();
  check(!wait_report::is_on(), "to stay off");
}

[[maybe_unused]] const bool added = [] {
  const auto random = [](const std::string& claim, void (*body)()) {
    add({.name = "inspect: " + claim, .options = {.schedules = 3'000}, .body = body});
  };
  const auto every = [&](const std::string& claim, void (*body)()) {
    random(claim, body);
    add({.name = "inspect: " + claim + ", every schedule",
         .options = exhaustively(),
         .body = body});
  };
  every("a wait times out while it is inspected", &a_wait_times_out_while_it_is_inspected);
  every("a coroutine is resumed while it is inspected",
        &a_coroutine_is_resumed_while_it_is_inspected);
  every("a lock is released while it is inspected", &a_lock_is_released_while_it_is_inspected);
  every("it restarts the reports while it is turned off",
        &it_restarts_the_reports_while_it_is_turned_off);
  random("a chain of futures is completed while it is inspected",
         &a_chain_of_futures_is_completed_while_it_is_inspected);
  random("a queue is destroyed while it is inspected", &a_queue_is_destroyed_while_it_is_inspected);
  return true;
}();

}  // namespace
}  // namespace sluice::sim
