#include <array>
#include <chrono>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/coroutine.hpp"
#include "tests/sim/parcel.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;
using testing::detached;

void one_hands_over_to_another() {
  bounded_queue<parcel> q(1);
  std::jthread maker([&] {
    for (const int i : {1, 2}) check(q.push(parcel(i)) == status::ok, "an open queue to take it");
    q.close();
  });
  int last = 0;
  while (auto item = q.pop()) {
    check(item->number() == last + 1, "items in the order they were pushed in");
    last = item->number();
  }
  check(last == 2, "every item to come out");
}

void two_make_and_one_takes() {
  bounded_queue<parcel> q(1);
  const auto make = [&](int first) {
    for (const int i : {first, first + 1}) check(q.push(parcel(i)) == status::ok, "to be taken");
  };
  std::jthread a(make, 10);
  std::jthread b(make, 20);
  std::array<int, 2> last{9, 19};
  for (int i = 0; i < 4; ++i) {
    const auto item = q.pop();
    check(item.has_value(), "an item, for it is not closed");
    auto& before = last[item->number() < 20 ? 0 : 1];
    check(item->number() == before + 1, "each producer's items in their order");
    before = item->number();
  }
}

void one_makes_and_two_take() {
  bounded_queue<parcel> q(2);
  atomic<int> sum{0};
  const auto take = [&] {
    while (auto item = q.pop()) sum.fetch_add(item->number(), relaxed);
  };
  {
    std::jthread a(take);
    std::jthread b(take);
    for (const int i : {1, 2, 4}) check(q.push(parcel(i)) == status::ok, "to be taken");
    q.close();
  }
  check(sum.load(relaxed) == 7, "every item to come out once");
}

void a_pop_that_timed_out_took_nothing() {
  bounded_queue<parcel> q(1);
  std::jthread maker([&] { check(q.try_push(parcel(1)) == status::ok, "room for one"); });
  const auto item = q.try_pop_for(1ms);
  maker.join();
  check(item.has_value() || q.try_pop().has_value(), "taken, or still inside");
  check(q.waiting_to_pop() == 0 && q.empty(), "nobody in line, nothing inside");
}

void a_pop_that_was_stopped_took_nothing() {
  bounded_queue<parcel> q(1);
  std::stop_source stop;
  std::jthread maker([&] {
    stop.request_stop();
    check(q.try_push(parcel(1)) == status::ok, "room for one");
  });
  const auto item = q.pop(stop.get_token());
  maker.join();
  check(item.has_value() || q.try_pop().has_value(), "taken, or still inside");
}

void a_push_that_timed_out_kept_its_item() {
  bounded_queue<parcel> q(1);
  check(q.push(parcel(1)) == status::ok, "room for one");
  parcel second(2);
  std::jthread taker([&] { check(q.pop().has_value(), "the first one"); });
  const auto pushed = q.push_within(second, deadline::after(1ms));
  taker.join();
  check(second.number() == (pushed ? 0 : 2), "given away only when it was taken");
  check(q.size() == (pushed ? 1U : 0U), "inside only when it was taken");
}

// Room comes with the pop, and the stop comes beside it: one of the two has it.
void a_push_that_was_stopped_kept_its_item() {
  bounded_queue<parcel> q(1);
  check(q.push(parcel(1)) == status::ok, "room for one");
  std::stop_source stop;
  parcel second(2);
  status pushed = status::ok;
  std::jthread maker([&] { pushed = q.push_within(second, wait_limits(stop.get_token())); });
  check(q.pop()->number() == 1, "the first one");
  stop.request_stop();
  maker.join();
  check(pushed == status::ok || pushed == status::stopped, "pushed or stopped");
  check(second.number() == (pushed == status::ok ? 0 : 2), "given away only when it was taken");
  check(q.size() == (pushed == status::ok ? 1U : 0U), "inside only when it was taken");
}

void close_wakes_who_waits_to_pop() {
  bounded_queue<parcel> q(1);
  std::jthread other([&] { q.close(); });
  check(q.pop().status() == status::closed, "to hear that it is closed");
}

void close_wakes_who_waits_to_push() {
  bounded_queue<parcel> q(1);
  check(q.push(parcel(1)) == status::ok, "room for one");
  std::jthread other([&] { q.close(); });
  check(q.push(parcel(2)) == status::closed, "to hear that it is closed");
  other.join();
  check(q.pop()->number() == 1, "what is inside to be taken still");
  check(q.pop().status() == status::closed, "then to hear that it is closed");
}

void close_wakes_everyone() {
  bounded_queue<parcel> q(1);
  const auto take = [&] { check(q.pop().status() == status::closed, "to hear of it"); };
  std::jthread a(take);
  std::jthread b(take);
  q.close();
}

void what_was_pushed_before_close_comes_out() {
  bounded_queue<parcel> q(1);
  bool accepted = false;
  std::jthread maker([&] { accepted = static_cast<bool>(q.push(parcel(1))); });
  std::jthread closer([&] { q.close(); });
  const auto item = q.pop();
  maker.join();
  closer.join();
  check(item.has_value() == accepted, "taken exactly when it was accepted");
}

void the_one_who_takes_the_last_may_destroy_it() {
  auto q = std::make_unique<bounded_queue<parcel>>(1);
  std::jthread maker([&] { check(q->push(parcel(1)) == status::ok, "to be taken"); });
  check(q->pop()->number() == 1, "the item");
  q.reset();
}

// ---- when full

// Two push, one of them finds it full or not; every item is taken, dropped or turned away, once.
template <overflow Policy>
void every_item_has_one_fate() {
  int dropped = 0;
  atomic<int> refused{0};
  bounded_queue<parcel> q(
      {.capacity = 1, .overflow = Policy, .on_drop = [&](parcel&& p) { dropped += p.number(); }});
  const auto push = [&](int number) {
    parcel item(number);
    const auto done = q.push_within(item, {});
    if (done == status::full) refused.fetch_add(item.number(), relaxed);
    check(done == status::ok || done == status::full || done == status::dropped, "a fate");
  };
  std::jthread other([&] {
    push(1);
    push(2);
  });
  int taken = 0;
  for (int i = 0; i < 2; ++i) {
    if (auto item = q.try_pop()) taken += item->number();
  }
  other.join();
  while (auto item = q.try_pop()) taken += item->number();
  check(taken + dropped + refused.load(relaxed) == 3, "every item once");
}

void the_newest_is_what_is_left_of_latest() {
  bounded_queue<parcel> q({.capacity = 2, .overflow = overflow::latest});
  std::jthread maker([&] {
    for (const int i : {1, 2, 3}) check(q.push(parcel(i)) == status::ok, "always to be taken");
    q.close();
  });
  int last = 0;
  while (auto item = q.pop()) {
    check(item->number() > last, "items in their order");
    last = item->number();
  }
  check(last == 3, "the newest not to be lost");
}

void a_heavy_item_waits_for_its_weight() {
  bounded_queue<parcel> q({.capacity = 2, .weight_max = 3, .weigh = [](const parcel& p) {
                             return static_cast<std::size_t>(p.number());
                           }});
  check(q.push(parcel(2)) == status::ok, "room for the first");
  std::jthread maker([&] { check(q.push(parcel(3)) == status::ok, "to be taken in its turn"); });
  check(q.pop()->number() == 2, "the first");
  check(q.pop()->number() == 3, "the heavy one");
  maker.join();
  check(q.weight() == 0, "nothing to weigh");
}

// ---- batches, coroutines

void a_batch_goes_through_a_narrow_queue() {
  bounded_queue<parcel> q(2);
  std::jthread maker([&] {
    std::vector<parcel> items;
    items.reserve(3);
    for (const int i : {1, 2, 3}) items.emplace_back(i);
    const auto all = q.push_all(items);
    check(all.count == 3 && all.status == status::ok, "all of them to be taken");
    q.close();
  });
  int last = 0;
  while (auto some = q.pop_some(2)) {
    for (const auto& item : *some) check(item.number() == ++last, "items in their order");
  }
  check(last == 3, "every item to come out");
}

void a_coroutine_is_handed_an_item() {
  bounded_queue<parcel> q(1);
  int got = 0;
  const auto coroutine = [&]() -> detached {
    auto item = co_await q.async_pop();
    got = item->number();
  };
  std::jthread other([&] { coroutine(); });
  check(q.push(parcel(1)) == status::ok, "to be taken");
  other.join();
  check(got == 1 && q.empty(), "the coroutine to have it");
}

void a_coroutine_pushes_when_there_is_room() {
  bounded_queue<parcel> q(1);
  check(q.push(parcel(1)) == status::ok, "room for one");
  bool over = false;
  const auto coroutine = [&]() -> detached {
    over = static_cast<bool>(co_await q.async_push(parcel(2)));
  };
  std::jthread other([&] { coroutine(); });
  check(q.pop()->number() == 1, "the first");
  other.join();
  check(over && q.try_pop()->number() == 2, "the second to be inside");
}

void a_coroutine_that_was_stopped_took_nothing() {
  bounded_queue<parcel> q(1);
  std::stop_source stop;
  int got = -1;
  const auto coroutine = [&]() -> detached {
    const wait_limits limits(stop.get_token());
    auto item = co_await q.async_pop(limits);
    got = item ? item->number() : 0;
  };
  std::jthread other([&] { coroutine(); });
  check(q.try_push(parcel(1)) == status::ok, "room for one");
  stop.request_stop();
  other.join();
  check(got + static_cast<int>(q.size()) == 1, "taken, or still inside");
}

void a_coroutine_that_timed_out_took_nothing() {
  bounded_queue<parcel> q(1);
  event over;
  int got = 0;
  const auto coroutine = [&]() -> detached {
    const wait_limits limits(deadline::after(1ms));
    auto item = co_await q.async_pop(limits);
    got = item ? item->number() : 0;
    over.set();
  };
  coroutine();
  check(q.try_push(parcel(1)) == status::ok, "room for one");
  over.wait();
  check(got + static_cast<int>(q.size()) == 1, "taken, or still inside");
}

void a_thread_and_a_coroutine_share_a_queue() {
  bounded_queue<parcel> q(1);
  atomic<int> sum{0};
  const auto coroutine = [&]() -> detached {
    auto item = co_await q.async_pop();
    if (item.has_value()) sum.fetch_add(item->number(), relaxed);
  };
  std::jthread awaits([&] { coroutine(); });
  std::jthread waits([&] {
    if (auto item = q.pop()) sum.fetch_add(item->number(), relaxed);
  });
  for (const int i : {1, 2}) check(q.push(parcel(i)) == status::ok, "to be taken");
  awaits.join();
  waits.join();
  check(sum.load(relaxed) == 3, "each to have one");
}

[[maybe_unused]] const bool added = [] {
  const auto random = [](const std::string& claim, void (*body)(),
                         std::uint64_t schedules = 10'000) {
    add({.name = "bounded_queue: " + claim, .how = {.schedules = schedules}, .body = body});
  };
  const auto every = [&](const std::string& claim, void (*body)()) {
    random(claim, body, 4'000);
    add({.name = "bounded_queue: " + claim + ", every schedule",
         .how = exhaustively(),
         .body = body});
  };
  every("one hands over to another", &one_hands_over_to_another);
  random("two make and one takes", &two_make_and_one_takes);
  random("one makes and two take", &one_makes_and_two_take);
  every("a pop that timed out took nothing", &a_pop_that_timed_out_took_nothing);
  every("a pop that was stopped took nothing", &a_pop_that_was_stopped_took_nothing);
  every("a push that timed out kept its item", &a_push_that_timed_out_kept_its_item);
  every("a push that was stopped kept its item", &a_push_that_was_stopped_kept_its_item);
  every("close wakes who waits to pop", &close_wakes_who_waits_to_pop);
  every("close wakes who waits to push", &close_wakes_who_waits_to_push);
  random("close wakes everyone", &close_wakes_everyone);
  random("what was pushed before close comes out", &what_was_pushed_before_close_comes_out);
  every("the one who takes the last may destroy it", &the_one_who_takes_the_last_may_destroy_it);
  every("reject: every item has one fate", &every_item_has_one_fate<overflow::reject>);
  every("drop_newest: every item has one fate", &every_item_has_one_fate<overflow::drop_newest>);
  every("drop_oldest: every item has one fate", &every_item_has_one_fate<overflow::drop_oldest>);
  every("latest: every item has one fate", &every_item_has_one_fate<overflow::latest>);
  every("latest: the newest is what is left", &the_newest_is_what_is_left_of_latest);
  every("a heavy item waits for its weight", &a_heavy_item_waits_for_its_weight);
  every("a batch goes through a narrow queue", &a_batch_goes_through_a_narrow_queue);
  every("a coroutine is handed an item", &a_coroutine_is_handed_an_item);
  every("a coroutine pushes when there is room", &a_coroutine_pushes_when_there_is_room);
  every("a coroutine that was stopped took nothing", &a_coroutine_that_was_stopped_took_nothing);
  every("a coroutine that timed out took nothing", &a_coroutine_that_timed_out_took_nothing);
  random("a thread and a coroutine share it", &a_thread_and_a_coroutine_share_a_queue);
  return true;
}();

}  // namespace
}  // namespace sluice::sim
