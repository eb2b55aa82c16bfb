// inspect, looking at waits while they begin and end. It is on for the whole process, so a schedule
// that fails leaves it on: such a one is shown as it is, and those after it mean nothing. What is
// looked at comes from the heap: its address decides where in the tables it stands, and only the
// addresses of the heap are the same in every process.

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
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/testing/coroutine.hpp"
#include "sluice/sync/watch.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;
using testing::detached;

// Without the order of locks, whose tables are allocated and outlive a schedule.
const inspect::options waits_alone{.lock_order = false};

void must_be(const std::vector<inspect::wait_info>& seen, const char* type, const void* address) {
  check(seen.size() <= 1, "no more than the one who waits");
  if (seen.empty()) return;
  check(seen[0].on.size() == 1 && seen[0].on[0].type == type, "the type of what is waited for");
  check(seen[0].on[0].address == address, "what is waited for");
}

void a_wait_ends_in_time_while_it_is_looked_at() {
  const inspect::enabled on(waits_alone);
  const auto never = std::make_unique<event>();
  std::jthread waits(
      [&] { check(never->try_wait_for(1ms) == status::timed_out, "to end in time"); });
  const auto seen = inspect::waits();
  must_be(seen, "event", never.get());
  check(seen.empty() || seen[0].has_deadline, "a wait with a deadline");
  waits.join();
  check(inspect::waits().empty(), "nobody to wait at the end");
}

void a_coroutine_is_resumed_while_it_is_looked_at() {
  const inspect::enabled on(waits_alone);
  const auto done = std::make_unique<event>();
  const auto coroutine = [&]() -> detached { (void)co_await done->async_wait(); };
  coroutine();
  check(inspect::waits().size() == 1, "the coroutine to be seen");
  std::jthread sets([&] { done->set(); });
  must_be(inspect::waits(), "event", done.get());
  sets.join();
  check(inspect::waits().empty(), "nobody to wait at the end");
}

void a_queue_goes_while_it_is_looked_at() {
  const inspect::enabled on(waits_alone);
  auto q = std::make_unique<bounded_queue<int>>(1);
  const void* const was_at = q.get();
  std::jthread looks([&] { must_be(inspect::waits(), "bounded_queue", was_at); });
  std::jthread takes([&] { check(q->pop().value() == 1, "what was pushed"); });
  check(q->push(1) == status::ok, "room for one");
  takes.join();
  q.reset();
  looks.join();
}

void a_lock_is_given_back_while_it_is_looked_at() {
  const inspect::enabled on(waits_alone);
  const auto lock = std::make_unique<mutex>();
  std::jthread holds([&] { const std::lock_guard hold(*lock); });
  const auto seen = inspect::holds();
  check(seen.size() <= 1, "no more than the one who holds");
  check(seen.empty() || (seen[0].what.type == "mutex" && seen[0].what.address == lock.get()),
        "what is held");
  holds.join();
  check(inspect::holds().empty(), "nothing to be held at the end");
}

// Who looks goes upstream, while what is there changes and ends.
void a_chain_of_futures_is_made_while_it_is_looked_at() {
  const inspect::enabled on(waits_alone);
  promise<int> made;
  made.made_by(watch::party::this_thread());
  auto chain = made.get_future().and_then([](int v) { return make_ready_future(v + 1); });
  std::jthread waits([&] { check(chain.get() == 2, "what was made of it"); });
  std::jthread makes([&] { made.set_value(1); });
  const auto seen = inspect::waits();
  check(seen.size() <= 1, "no more than the one who waits");
  check(seen.empty() || seen[0].on.at(0).type == "future", "the type of what is waited for");
  waits.join();
  makes.join();
  check(inspect::waits().empty(), "nobody to wait at the end");
}

// Hears of everything, and keeps nothing.
class deaf final : public watch::observer {
 public:
  void waits(watch::wait_record&) noexcept override {}
  void waits_no_more(watch::wait_record&) noexcept override {}
  void took(const watch::hold&) noexcept override {}
  void gave(const void*, watch::party, std::int64_t) noexcept override {}
  void used(const void*, watch::side, watch::party) noexcept override {}
  void gone(const void*) noexcept override {}
};

void it_starts_over_while_it_is_turned_off() {
  static deaf watcher;  // never destroyed
  watch::observe(&watcher);
  std::jthread goes([] { watch::start_over(); });
  watch::observe(nullptr);
  goes.join();
  check(!watch::is_on(), "to be off when it was turned off");
}

[[maybe_unused]] const bool added = [] {
  const auto random = [](const std::string& claim, void (*body)()) {
    add({.name = "inspect: " + claim, .how = {.schedules = 3'000}, .body = body});
  };
  const auto every = [&](const std::string& claim, void (*body)()) {
    random(claim, body);
    add({.name = "inspect: " + claim + ", every schedule", .how = exhaustively(), .body = body});
  };
  every("a wait ends in time while it is looked at", &a_wait_ends_in_time_while_it_is_looked_at);
  every("a coroutine is resumed while it is looked at",
        &a_coroutine_is_resumed_while_it_is_looked_at);
  every("a lock is given back while it is looked at", &a_lock_is_given_back_while_it_is_looked_at);
  every("it starts over while it is turned off", &it_starts_over_while_it_is_turned_off);
  random("a chain of futures is made while it is looked at",
         &a_chain_of_futures_is_made_while_it_is_looked_at);
  random("a queue goes while it is looked at", &a_queue_goes_while_it_is_looked_at);
  return true;
}();

}  // namespace
}  // namespace sluice::sim
