#include <chrono>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "sluice/queue/spsc_ring.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/testing/coroutine.hpp"
#include "tests/sim/parcel.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;
using testing::detached;

void a_pipe_of(std::size_t capacity, int items) {
  spsc_ring<parcel> ring(capacity);
  std::jthread maker([&] {
    for (int i = 1; i <= items; ++i) check(ring.push(parcel(i)) == status::ok, "to be accepted");
    ring.close();
  });
  int last = 0;
  while (auto item = ring.pop()) check(item->number() == ++last, "items in their order");
  check(last == items, "every item to be popped");
}

void concurrent_tries() {
  spsc_ring<parcel> ring(1);
  int accepted = 0;
  std::jthread maker([&] {
    for (const int i : {1, 2}) accepted += ring.try_push(parcel(i)) ? i : 0;
  });
  int taken = 0;
  for (int i = 0; i < 2; ++i) {
    if (auto item = ring.try_pop()) taken += item->number();
  }
  maker.join();
  while (auto item = ring.try_pop()) taken += item->number();
  check(taken == accepted, "every item once");
}

void a_pop_that_timed_out_took_nothing() {
  spsc_ring<parcel> ring(1);
  std::jthread maker(
      [&] { check(ring.try_push(parcel(1)) == status::ok, "capacity for one item"); });
  const auto item = ring.pop(1ms);
  maker.join();
  check(item.has_value() || ring.try_pop().has_value(), "popped, or still inside");
}

void a_pop_that_was_stopped_took_nothing() {
  spsc_ring<parcel> ring(1);
  std::stop_source stop;
  std::jthread maker([&] {
    stop.request_stop();
    check(ring.try_push(parcel(1)) == status::ok, "capacity for one item");
  });
  const auto item = ring.pop(stop.get_token());
  maker.join();
  check(item.has_value() || ring.try_pop().has_value(), "popped, or still inside");
}

void a_push_that_timed_out_kept_its_item() {
  spsc_ring<parcel> ring(1);
  check(ring.push(parcel(1)) == status::ok, "capacity for one item");
  std::jthread taker([&] { check(ring.pop().has_value(), "the first one"); });
  parcel second(2);
  const auto pushed = ring.push(std::move(second), 1ms);
  taker.join();
  check(second.number() == (pushed ? 0 : 2), "moved from only if accepted");
  check(ring.size() == (pushed ? 1U : 0U), "inside only if accepted");
}

void close_wakes_the_consumer() {
  spsc_ring<parcel> ring(1);
  std::jthread other([&] { ring.close(); });
  check(ring.pop().status() == status::closed, "status closed");
}

void close_wakes_the_producer() {
  spsc_ring<parcel> ring(1);
  check(ring.push(parcel(1)) == status::ok, "capacity for one item");
  std::jthread other([&] { ring.close(); });
  check(ring.push(parcel(2)) == status::closed, "status closed");
  check(ring.pop()->number() == 1, "the item inside to be popped");
}

void nothing_arrives_after_status_closed() {
  spsc_ring<parcel> ring(1);
  bool accepted = false;
  std::jthread maker([&] { accepted = static_cast<bool>(ring.push(parcel(1))); });
  std::jthread closer([&] { ring.close(); });
  const auto item = ring.pop();
  maker.join();
  closer.join();
  check(item.has_value() == accepted, "popped if and only if accepted");
}

void the_consumer_may_destroy_it() {
  auto ring = std::make_unique<spsc_ring<parcel>>(1);
  std::jthread maker([&] { check(ring->push(parcel(1)) == status::ok, "to be accepted"); });
  check(ring->pop()->number() == 1, "the item");
  ring.reset();
}

void batches() {
  spsc_ring<parcel> ring(2);
  std::jthread maker([&] {
    std::vector<parcel> items;
    items.reserve(3);
    for (const int i : {1, 2, 3}) items.emplace_back(i);
    const auto all = ring.push_all(items);
    check(all.count == 3 && all.status == status::ok, "all of them to be accepted");
    ring.close();
  });
  int last = 0;
  while (auto some = ring.pop_some(2)) {
    for (const auto& item : *some) check(item.number() == ++last, "items in their order");
  }
  check(last == 3, "every item to be popped");
}

void a_coroutine_consumes() {
  spsc_ring<parcel> ring(1);
  int sum = 0;
  const auto coroutine = [&]() -> detached {
    for (int i = 0; i < 2; ++i) {
      auto item = co_await ring.async_pop();
      sum += item->number();
    }
  };
  std::jthread other([&] { coroutine(); });
  for (const int i : {1, 2}) check(ring.push(parcel(i)) == status::ok, "to be accepted");
  other.join();
  check(sum == 3, "every item to be popped");
}

[[maybe_unused]] const bool added = [] {
  const auto random = [](const std::string& claim, std::function<void()> body,
                         std::uint64_t schedules = 10'000) {
    add({.name = "spsc_ring: " + claim,
         .options = {.schedules = schedules},
         .body = std::move(body)});
  };
  const auto every = [&](const std::string& claim, const std::function<void()>& body) {
    random(claim, body, 4'000);
    add({.name = "spsc_ring: " + claim + ", every schedule",
         .options = exhaustively(),
         .body = body});
  };
  every("a pipe of one", [] { a_pipe_of(1, 2); });
  every("a pipe of two", [] { a_pipe_of(2, 3); });
  random("a pipe of three", [] { a_pipe_of(3, 7); });
  every("concurrent tries", &concurrent_tries);
  every("a pop that timed out took nothing", &a_pop_that_timed_out_took_nothing);
  every("a pop that was stopped took nothing", &a_pop_that_was_stopped_took_nothing);
  every("a push that timed out kept its item", &a_push_that_timed_out_kept_its_item);
  every("close wakes the consumer", &close_wakes_the_consumer);
  every("close wakes the producer", &close_wakes_the_producer);
  random("nothing arrives after status closed", &nothing_arrives_after_status_closed);
  every("the consumer may destroy it", &the_consumer_may_destroy_it);
  every("batches", &batches);
  every("a coroutine consumes", &a_coroutine_consumes);
  return true;
}();

}  // namespace
}  // namespace sluice::sim
