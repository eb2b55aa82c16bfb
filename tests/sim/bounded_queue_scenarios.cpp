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

void one_producer_and_one_consumer() {
  bounded_queue<parcel> q(1);
  std::jthread maker([&] {
    for (const int i : {1, 2}) check(q.push(parcel(i)) == status::ok, "an open queue to accept it");
    q.close();
  });
  int last = 0;
  while (auto item = q.pop()) {
    check(item->number() == last + 1, "items in the order of the pushes");
    last = item->number();
  }
  check(last == 2, "every item to be popped");
}

void two_producers_and_one_consumer() {
  bounded_queue<parcel> q(1);
  const auto make = [&](int first) {
    for (const int i : {first, first + 1}) check(q.push(parcel(i)) == status::ok, "to be accepted");
  };
  std::jthread a(make, 10);
  std::jthread b(make, 20);
  std::array<int, 2> last{9, 19};
  for (int i = 0; i < 4; ++i) {
    const auto item = q.pop();
    check(item.has_value(), "an item, as the queue is open");
    auto& before = last[item->number() < 20 ? 0 : 1];
    check(item->number() == before + 1, "each producer's items in their order");
    before = item->number();
  }
}

void one_producer_and_two_consumers() {
  bounded_queue<parcel> q(2);
  atomic<int> sum{0};
  const auto take = [&] {
    while (auto item = q.pop()) sum.fetch_add(item->number(), relaxed);
  };
  {
    std::jthread a(take);
    std::jthread b(take);
    for (const int i : {1, 2, 4}) check(q.push(parcel(i)) == status::ok, "to be accepted");
    q.close();
  }
  check(sum.load(relaxed) == 7, "every item to be popped once");
}

void a_pop_that_timed_out_took_nothing() {
  bounded_queue<parcel> q(1);
  std::jthread maker([&] { check(q.try_push(parcel(1)) == status::ok, "capacity for one item"); });
  const auto item = q.pop(1ms);
  maker.join();
  check(item.has_value() || q.try_pop().has_value(), "popped, or still inside");
  check(q.waiting_to_pop() == 0 && q.empty(), "no waiters and no items");
}

void a_pop_that_was_stopped_took_nothing() {
  bounded_queue<parcel> q(1);
  std::stop_source stop;
  std::jthread maker([&] {
    stop.request_stop();
    check(q.try_push(parcel(1)) == status::ok, "capacity for one item");
  });
  const auto item = q.pop(stop.get_token());
  maker.join();
  check(item.has_value() || q.try_pop().has_value(), "popped, or still inside");
}

void a_push_that_timed_out_kept_its_item() {
  bounded_queue<parcel> q(1);
  check(q.push(parcel(1)) == status::ok, "capacity for one item");
  parcel second(2);
  std::jthread taker([&] { check(q.pop().has_value(), "the first one"); });
  const auto pushed = q.push(std::move(second), 1ms);
  taker.join();
  check(second.number() == (pushed ? 0 : 2), "moved from only if accepted");
  check(q.size() == (pushed ? 1U : 0U), "inside only if accepted");
}

// A pop frees capacity, concurrently with a stop: one of the two ends the push.
void a_push_that_was_stopped_kept_its_item() {
  bounded_queue<parcel> q(1);
  check(q.push(parcel(1)) == status::ok, "capacity for one item");
  std::stop_source stop;
  parcel second(2);
  status pushed = status::ok;
  std::jthread maker([&] { pushed = q.push(std::move(second), wait_limits(stop.get_token())); });
  check(q.pop()->number() == 1, "the first one");
  stop.request_stop();
  maker.join();
  check(pushed == status::ok || pushed == status::stopped, "pushed or stopped");
  check(second.number() == (pushed == status::ok ? 0 : 2), "moved from only if accepted");
  check(q.size() == (pushed == status::ok ? 1U : 0U), "inside only if accepted");
}

void close_wakes_a_consumer() {
  bounded_queue<parcel> q(1);
  std::jthread other([&] { q.close(); });
  check(q.pop().status() == status::closed, "status closed");
}

void close_wakes_a_producer() {
  bounded_queue<parcel> q(1);
  check(q.push(parcel(1)) == status::ok, "capacity for one item");
  std::jthread other([&] { q.close(); });
  check(q.push(parcel(2)) == status::closed, "status closed");
  other.join();
  check(q.pop()->number() == 1, "the item inside to be popped");
  check(q.pop().status() == status::closed, "then status closed");
}

void close_wakes_all_waiters() {
  bounded_queue<parcel> q(1);
  const auto take = [&] { check(q.pop().status() == status::closed, "status closed"); };
  std::jthread a(take);
  std::jthread b(take);
  q.close();
}

void items_pushed_before_close_are_popped() {
  bounded_queue<parcel> q(1);
  bool accepted = false;
  std::jthread maker([&] { accepted = static_cast<bool>(q.push(parcel(1))); });
  std::jthread closer([&] { q.close(); });
  const auto item = q.pop();
  maker.join();
  closer.join();
  check(item.has_value() == accepted, "popped if and only if accepted");
}

void the_consumer_of_the_last_item_may_destroy_it() {
  auto q = std::make_unique<bounded_queue<parcel>>(1);
  std::jthread maker([&] { check(q->push(parcel(1)) == status::ok, "to be accepted"); });
  check(q->pop()->number() == 1, "the item");
  q.reset();
}

// ---- when full

// Two producers on a queue that may be full: every item is popped, dropped or rejected, once.
template <overflow Policy>
void every_item_has_one_outcome() {
  int dropped = 0;
  atomic<int> refused{0};
  bounded_queue<parcel> q(
      {.capacity = 1, .overflow = Policy, .on_drop = [&](parcel&& p) { dropped += p.number(); }});
  const auto push = [&](int number) {
    parcel item(number);
    const auto done = q.push(std::move(item));
    if (done == status::full) refused.fetch_add(item.number(), relaxed);
    check(done == status::ok || done == status::full || done == status::dropped,
          "ok, full or dropped");
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

void latest_keeps_the_newest_item() {
  bounded_queue<parcel> q({.capacity = 2, .overflow = overflow::latest});
  std::jthread maker([&] {
    for (const int i : {1, 2, 3}) check(q.push(parcel(i)) == status::ok, "always to be accepted");
    q.close();
  });
  int last = 0;
  while (auto item = q.pop()) {
    check(item->number() > last, "items in their order");
    last = item->number();
  }
  check(last == 3, "the newest item");
}

void a_heavy_item_waits_for_its_weight() {
  bounded_queue<parcel> q({.capacity = 2, .weight_max = 3, .weigh = [](const parcel& p) {
                             return static_cast<std::size_t>(p.number());
                           }});
  check(q.push(parcel(2)) == status::ok, "capacity for the first");
  std::jthread maker([&] { check(q.push(parcel(3)) == status::ok, "to be accepted later"); });
  check(q.pop()->number() == 2, "the first");
  check(q.pop()->number() == 3, "the heavy one");
  maker.join();
  check(q.weight() == 0, "zero weight");
}

// ---- batches, coroutines

void a_batch_passes_a_queue_smaller_than_the_batch() {
  bounded_queue<parcel> q(2);
  std::jthread maker([&] {
    std::vector<parcel> items;
    items.reserve(3);
    for (const int i : {1, 2, 3}) items.emplace_back(i);
    const auto all = q.push_all(items);
    check(all.count == 3 && all.status == status::ok, "all of them to be accepted");
    q.close();
  });
  int last = 0;
  while (auto some = q.pop_some(2)) {
    for (const auto& item : *some) check(item.number() == ++last, "items in their order");
  }
  check(last == 3, "every item to be popped");
}

void a_coroutine_receives_an_item() {
  bounded_queue<parcel> q(1);
  int got = 0;
  const auto coroutine = [&]() -> detached {
    auto item = co_await q.async_pop();
    got = item->number();
  };
  std::jthread other([&] { coroutine(); });
  check(q.push(parcel(1)) == status::ok, "to be accepted");
  other.join();
  check(got == 1 && q.empty(), "the coroutine to have the item");
}

void a_coroutine_pushes_when_there_is_capacity() {
  bounded_queue<parcel> q(1);
  check(q.push(parcel(1)) == status::ok, "capacity for one item");
  bool finished = false;
  const auto coroutine = [&]() -> detached {
    finished = static_cast<bool>(co_await q.async_push(parcel(2)));
  };
  std::jthread other([&] { coroutine(); });
  check(q.pop()->number() == 1, "the first");
  other.join();
  check(finished && q.try_pop()->number() == 2, "the second to be inside");
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
  check(q.try_push(parcel(1)) == status::ok, "capacity for one item");
  stop.request_stop();
  other.join();
  check(got + static_cast<int>(q.size()) == 1, "popped, or still inside");
}

void a_coroutine_that_timed_out_took_nothing() {
  bounded_queue<parcel> q(1);
  event finished;
  int got = 0;
  const auto coroutine = [&]() -> detached {
    const wait_limits limits(deadline::after(1ms));
    auto item = co_await q.async_pop(limits);
    got = item ? item->number() : 0;
    finished.set();
  };
  coroutine();
  check(q.try_push(parcel(1)) == status::ok, "capacity for one item");
  finished.wait();
  check(got + static_cast<int>(q.size()) == 1, "popped, or still inside");
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
  for (const int i : {1, 2}) check(q.push(parcel(i)) == status::ok, "to be accepted");
  awaits.join();
  waits.join();
  check(sum.load(relaxed) == 3, "one item for each");
}

[[maybe_unused]] const bool added = [] {
  const auto random = [](const std::string& claim, void (*body)(),
                         std::uint64_t schedules = 10'000) {
    add({.name = "bounded_queue: " + claim, .options = {.schedules = schedules}, .body = body});
  };
  const auto every = [&](const std::string& claim, void (*body)()) {
    random(claim, body, 4'000);
    add({.name = "bounded_queue: " + claim + ", every schedule",
         .options = exhaustively(),
         .body = body});
  };
  every("one producer and one consumer", &one_producer_and_one_consumer);
  random("two producers and one consumer", &two_producers_and_one_consumer);
  random("one producer and two consumers", &one_producer_and_two_consumers);
  every("a pop that timed out took nothing", &a_pop_that_timed_out_took_nothing);
  every("a pop that was stopped took nothing", &a_pop_that_was_stopped_took_nothing);
  every("a push that timed out kept its item", &a_push_that_timed_out_kept_its_item);
  every("a push that was stopped kept its item", &a_push_that_was_stopped_kept_its_item);
  every("close wakes a consumer", &close_wakes_a_consumer);
  every("close wakes a producer", &close_wakes_a_producer);
  random("close wakes all waiters", &close_wakes_all_waiters);
  random("items pushed before close are popped", &items_pushed_before_close_are_popped);
  every("the consumer of the last item may destroy it",
        &the_consumer_of_the_last_item_may_destroy_it);
  every("reject: every item has one outcome", &every_item_has_one_outcome<overflow::reject>);
  every("drop_newest: every item has one outcome",
        &every_item_has_one_outcome<overflow::drop_newest>);
  every("drop_oldest: every item has one outcome",
        &every_item_has_one_outcome<overflow::drop_oldest>);
  every("latest: every item has one outcome", &every_item_has_one_outcome<overflow::latest>);
  every("latest: the newest item is kept", &latest_keeps_the_newest_item);
  every("a heavy item waits for its weight", &a_heavy_item_waits_for_its_weight);
  every("a batch passes a queue smaller than the batch",
        &a_batch_passes_a_queue_smaller_than_the_batch);
  every("a coroutine receives an item", &a_coroutine_receives_an_item);
  every("a coroutine pushes when there is capacity", &a_coroutine_pushes_when_there_is_capacity);
  every("a coroutine that was stopped took nothing", &a_coroutine_that_was_stopped_took_nothing);
  every("a coroutine that timed out took nothing", &a_coroutine_that_timed_out_took_nothing);
  random("a thread and a coroutine share it", &a_thread_and_a_coroutine_share_a_queue);
  return true;
}();

}  // namespace
}  // namespace sluice::sim
