#include "sluice/executor/router.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/race_checked.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

template <routing Rule>
router<int>::options by_rule(std::size_t capacity) {
  router<int>::options o;
  o.rule = Rule;
  o.capacity = capacity;
  o.per_turn = 1;
  if (Rule == routing::by_key) o.key = [](int i) { return static_cast<std::uint64_t>(i); };
  if (Rule == routing::by_priority) o.priority = [](int i) { return std::int64_t{i}; };
  return o;
}

template <routing Rule>
void two_loops_begin_every_item_once() {
  std::array<race_checked<int>, 3> begun;
  router<int> desk(by_rule<Rule>(4));
  auto ours = desk.join();
  auto others = desk.join();
  const auto serve = [&](router<int>::worker& w) {
    while (auto item = w.next()) ++begun[static_cast<std::size_t>(*item)].change();
  };
  {
    std::jthread other([&] { serve(others); });
    for (const int i : {0, 1, 2}) check(desk.push(i) == status::ok, "an open router to accept it");
    desk.close();
    serve(ours);
  }
  for (auto& each : begun) check(each.read() == 1, "every item to be begun once");
  check(desk.stats().unfinished == 0, "none left");
}

// The same with handlers on a pool. One handler leaves during the test.
template <routing Rule>
void items_of_a_leaving_worker_go_to_another() {
  std::array<race_checked<int>, 3> handled;
  thread_pool pool({.core = 2, .capacity = 4, .time_every = 0});
  router<int> desk(by_rule<Rule>(4));
  const auto handle = [&](int& item) { ++handled[static_cast<std::size_t>(item)].change(); };
  auto ann = desk.join(pool, handle);
  auto bob = std::optional(desk.join(pool, handle));
  std::jthread leaves([&] { bob.reset(); });
  for (const int i : {0, 1, 2}) check(desk.push(i) == status::ok, "an open router to accept it");
  desk.drain();
  leaves.join();
  for (auto& each : handled) check(each.read() == 1, "every item to be handled once");
}

// Only the router's guarantee orders items of one key, while the key moves between workers.
void items_of_one_key_do_not_overlap_when_workers_join_and_leave() {
  race_checked<int> last{0};
  thread_pool pool({.core = 2, .capacity = 4, .time_every = 0});
  auto o = by_rule<routing::by_key>(4);
  o.key = [](int) { return std::uint64_t{7}; };
  router<int> desk(std::move(o));
  const auto handle = [&](int& item) {
    check(last.read() == item - 1, "the order of acceptance");
    last.write(item);
  };
  auto ann = std::optional(desk.join(pool, handle));
  std::optional<router<int>::worker> bob;
  std::jthread changes([&] {
    bob.emplace(desk.join(pool, handle));
    ann.reset();
  });
  for (const int i : {1, 2, 3}) check(desk.push(i) == status::ok, "an open router to accept it");
  desk.drain();
  changes.join();
  check(last.read() == 3, "all to have been handled");
}

void stop_returns_exactly_the_items_not_begun() {
  atomic<int> handled{0};
  int accepted = 0;
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  router<int> desk(by_rule<routing::round_robin>(4));
  auto ann = desk.join(pool, [&](int&) { handled.fetch_add(1, relaxed); });
  std::jthread other([&] {
    for (const int i : {1, 2}) {
      if (desk.push(i)) ++accepted;
    }
  });
  const auto left = desk.stop();
  other.join();
  check(handled.load() + static_cast<int>(left.size()) == accepted, "every item exactly once");
}

void a_shutdown_with_a_time_limit_stops_longer_handlers() {
  race_checked<bool> asked{false};
  event begun;
  event never;
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  router<int> desk(by_rule<routing::least_loaded>(4));
  const auto began = seam::now();
  auto ann = desk.join(pool, [&](int&) {
    begun.set();
    asked.write(never.wait(desk.stop_token()) == status::stopped);
  });
  check(desk.push(1) == status::ok && desk.push(2) == status::ok, "capacity");
  begun.wait();
  const auto left = desk.shutdown(deadline::after(1h));
  check(left == std::vector{2} && asked.read(), "one stop request and one returned function");
  check(seam::now() - began >= 1h, "a whole hour");
}

// Without a worker, a pushed item waits for one, or its producer times out.
void a_push_without_a_worker_is_served_or_keeps_its_item() {
  router<int> desk(by_rule<routing::round_robin>(1));
  status outcome = status::ok;
  std::jthread pusher([&] {
    int item = 1;
    outcome = desk.push(std::move(item), deadline::after(1s));
  });
  auto worker = desk.join();
  const auto got = worker.next(1s);
  pusher.join();
  const auto late = worker.try_next();
  check(outcome == status::ok || outcome == status::timed_out, "ok or timed out");
  check((got ? 1 : 0) + (late ? 1 : 0) == (outcome ? 1 : 0), "exactly the accepted items");
}

void a_timed_out_wait_for_an_item_takes_nothing() {
  router<int> desk(by_rule<routing::work_stealing>(2));
  auto worker = desk.join();
  std::jthread pusher([&] { check(desk.push(1) == status::ok, "an open router to accept it"); });
  const auto first = worker.next(1s);
  pusher.join();
  check(first || first.status() == status::timed_out, "an item or timed out");
  check(static_cast<bool>(worker.try_next()) == !first, "the item once");
}

template <overflow Policy>
void the_counts_of_a_full_router_add_up() {
  atomic<int> dropped{0};
  auto o = by_rule<routing::round_robin>(1);
  o.overflow = Policy;
  o.on_drop = [&](int&&) { dropped.fetch_add(1, relaxed); };
  router<int> desk(std::move(o));
  auto worker = desk.join();
  status from_other = status::closed;
  std::jthread other([&] { from_other = desk.push(1); });
  const status ours = desk.push(2);
  other.join();
  desk.close();
  int taken = 0;
  while (worker.next()) ++taken;
  const int refused = (ours == status::full ? 1 : 0) + (from_other == status::full ? 1 : 0);
  check(taken == 1 && refused + dropped.load() == 1, "exactly one item to fit");
}

[[maybe_unused]] const bool added =
    add({.name = "router: in turn, two loops begin every item once",
         .options = {.schedules = 2'500},
         .body = &two_loops_begin_every_item_once<routing::round_robin>}) &&
    add({.name = "router: by load, two loops begin every item once",
         .options = {.schedules = 2'500},
         .body = &two_loops_begin_every_item_once<routing::least_loaded>}) &&
    add({.name = "router: by key, two loops begin every item once",
         .options = {.schedules = 2'500},
         .body = &two_loops_begin_every_item_once<routing::by_key>}) &&
    add({.name = "router: by priority, two loops begin every item once",
         .options = {.schedules = 2'500},
         .body = &two_loops_begin_every_item_once<routing::by_priority>}) &&
    add({.name = "router: by stealing, two loops begin every item once",
         .options = {.schedules = 2'500},
         .body = &two_loops_begin_every_item_once<routing::work_stealing>}) &&
    add({.name = "router: in turn, items of a leaving worker go to another",
         .options = {.schedules = 3'000},
         .body = &items_of_a_leaving_worker_go_to_another<routing::round_robin>}) &&
    add({.name = "router: by key, items of a leaving worker go to another",
         .options = {.schedules = 3'000},
         .body = &items_of_a_leaving_worker_go_to_another<routing::by_key>}) &&
    add({.name = "router: by stealing, items of a leaving worker go to another",
         .options = {.schedules = 3'000},
         .body = &items_of_a_leaving_worker_go_to_another<routing::work_stealing>}) &&
    add({.name = "router: by priority, items of a leaving worker go to another",
         .options = {.schedules = 3'000},
         .body = &items_of_a_leaving_worker_go_to_another<routing::by_priority>}) &&
    add({.name = "router: items of one key do not overlap as workers join and leave",
         .options = {.schedules = 3'500},
         .body = &items_of_one_key_do_not_overlap_when_workers_join_and_leave}) &&
    add({.name = "router: stop returns exactly the items not begun",
         .options = {.schedules = 3'500},
         .body = &stop_returns_exactly_the_items_not_begun}) &&
    add({.name = "router: a shutdown with a time limit stops longer handlers",
         .options = {.schedules = 2'500, .early_timeouts = false},
         .body = &a_shutdown_with_a_time_limit_stops_longer_handlers}) &&
    add({.name = "router: a push without a worker is served or keeps its item",
         .options = {.schedules = 3'500},
         .body = &a_push_without_a_worker_is_served_or_keeps_its_item}) &&
    add({.name = "router: a timed-out wait for an item takes nothing",
         .options = {.schedules = 3'500},
         .body = &a_timed_out_wait_for_an_item_takes_nothing}) &&
    add({.name = "router: reject: the counts of a full router add up",
         .options = {.schedules = 1'000},
         .body = &the_counts_of_a_full_router_add_up<overflow::reject>}) &&
    add({.name = "router: drop_oldest: the counts of a full router add up",
         .options = {.schedules = 1'000},
         .body = &the_counts_of_a_full_router_add_up<overflow::drop_oldest>});

}  // namespace
}  // namespace sluice::sim
