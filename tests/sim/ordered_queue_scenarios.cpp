// priority_queue and delay_queue: an order other than arrival.

#include <chrono>
#include <memory>
#include <stop_token>
#include <thread>

#include "sluice/base/seam.hpp"
#include "sluice/queue/delay_queue.hpp"
#include "sluice/queue/priority_queue.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/coroutine.hpp"
#include "tests/sim/parcel.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;
using testing::detached;

struct number_of {
  int operator()(const parcel& p) const noexcept { return p.number(); }
};
using urgent_first = priority_queue<parcel, number_of>;
using in_time = delay_queue<parcel>;

// ---- priority_queue

void the_most_urgent_item_is_popped_first() {
  urgent_first q(3);
  check(q.push(parcel(1)) == status::ok && q.push(parcel(2)) == status::ok, "capacity for both");
  std::jthread maker([&] {
    check(q.push(parcel(3)) == status::ok, "capacity for one more");
    q.close();
  });
  int last_but_3 = 3;
  int sum = 0;
  while (auto item = q.pop()) {
    sum += item->number();
    if (item->number() == 3) continue;
    check(item->number() < last_but_3, "the more urgent item first");
    last_but_3 = item->number();
  }
  check(sum == 6, "every item once");
}

void two_producers_and_one_consumer() {
  urgent_first q(1);
  const auto make = [&](int number) {
    check(q.push(parcel(number)) == status::ok, "to be accepted");
  };
  std::jthread a(make, 1);
  std::jthread b(make, 2);
  check(q.pop()->number() + q.pop()->number() == 3, "both items");
}

void the_least_urgent_is_dropped() {
  int dropped = 0;
  urgent_first q({.capacity = 1, .overflow = overflow::drop_oldest, .on_drop = [&](parcel&& p) {
                    dropped += p.number();
                  }});
  std::jthread maker([&] {
    (void)q.push(parcel(2));
    (void)q.push(parcel(1));
  });
  int taken = 0;
  if (auto item = q.try_pop()) taken += item->number();
  maker.join();
  if (auto item = q.try_pop()) taken += item->number();
  check(taken + dropped == 3 && dropped < 2, "every item once, and the urgent one not dropped");
}

void a_wait_for_an_urgent_item_ends_in_time() {
  urgent_first q(1);
  std::jthread maker([&] { check(q.try_push(parcel(1)) == status::ok, "capacity for one item"); });
  const auto item = q.pop(1ms);
  maker.join();
  check(item.has_value() || q.try_pop().has_value(), "popped, or still inside");
}

// ---- delay_queue

void no_item_is_popped_before_it_is_due() {
  in_time q(2);
  const auto start = seam::now();
  std::jthread maker([&] {
    check(q.push({parcel(2), start + 2ms}) == status::ok, "capacity for the first");
    check(q.push({parcel(1), start + 1ms}) == status::ok, "capacity for the second");
  });
  int sum = 0;
  for (int i = 0; i < 2; ++i) {
    const auto item = q.pop();
    check(seam::now() >= item->at, "not before it is due");
    sum += item->item.number();
  }
  check(sum == 3, "both items");
}

void an_earlier_item_wakes_the_waiter_for_a_later_one() {
  in_time q(2);
  const auto start = seam::now();
  check(q.push({parcel(2), start + 1h}) == status::ok, "capacity for the first");
  std::jthread maker([&] {
    check(q.push({parcel(1), start}) == status::ok, "capacity for one more");
  });
  check(q.pop()->item.number() >= 1, "an item");
}

void close_keeps_items_that_are_not_due() {
  in_time q(1);
  const auto start = seam::now();
  std::jthread maker([&] {
    check(q.push({parcel(1), start + 1ms}) == status::ok, "capacity for it");
    q.close();
  });
  const auto item = q.pop();
  check(item.has_value() && seam::now() >= item->at, "the item when it is due");
  check(q.pop().status() == status::closed, "then status closed");
}

void a_wait_times_out_before_the_item_is_due() {
  in_time q(1);
  const auto start = seam::now();
  check(q.push({parcel(1), start + 2ms}) == status::ok, "capacity for it");
  int taken = 0;
  std::jthread other([&] {
    auto item = q.pop(1ms);
    if (!item) return;
    check(seam::now() >= item->at, "not before it is due");
    taken = 1;
  });
  const auto item = q.pop(4ms);
  other.join();
  check(taken + (item ? 1 : 0) + static_cast<int>(q.size()) == 1, "popped once, or still inside");
}

void the_clock_resumes_a_coroutine_with_the_item() {
  auto q = std::make_unique<in_time>(1);
  check(q->push({parcel(1), seam::now() + 1ms}) == status::ok, "capacity for it");
  event finished;
  const auto coroutine = [&]() -> detached {
    auto item = co_await q->async_pop();
    check(item.has_value() && seam::now() >= item->at, "the item when it is due");
    q.reset();  // on the clock's thread, by its own timer
    finished.set();
  };
  coroutine();
  finished.wait();
}

[[maybe_unused]] const bool added = [] {
  const auto random = [](const std::string& name, void (*body)(), std::uint64_t schedules = 8'000) {
    add({.name = name, .options = {.schedules = schedules}, .body = body});
  };
  const auto every = [&](const std::string& name, void (*body)()) {
    random(name, body, 4'000);
    add({.name = name + ", every schedule", .options = exhaustively(), .body = body});
  };
  every("priority_queue: the most urgent item is popped first",
        &the_most_urgent_item_is_popped_first);
  random("priority_queue: two producers and one consumer", &two_producers_and_one_consumer);
  every("priority_queue: the least urgent is dropped", &the_least_urgent_is_dropped);
  every("priority_queue: a wait ends in time", &a_wait_for_an_urgent_item_ends_in_time);
  random("delay_queue: no item is popped before it is due", &no_item_is_popped_before_it_is_due);
  random("delay_queue: an earlier item wakes the waiter for a later one",
         &an_earlier_item_wakes_the_waiter_for_a_later_one);
  random("delay_queue: close keeps items that are not due", &close_keeps_items_that_are_not_due);
  random("delay_queue: a wait times out before the item is due",
         &a_wait_times_out_before_the_item_is_due);
  random("delay_queue: the clock resumes a coroutine with the item, and destroys it",
         &the_clock_resumes_a_coroutine_with_the_item);
  return true;
}();

}  // namespace
}  // namespace sluice::sim
