#include "sluice/executor/router.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/shared.hpp"
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
  std::array<shared<int>, 3> begun;
  router<int> desk(by_rule<Rule>(4));
  auto mine = desk.join();
  auto others = desk.join();
  const auto serve = [&](router<int>::worker& w) {
    while (auto item = w.next()) ++begun[static_cast<std::size_t>(*item)].change();
  };
  {
    std::jthread other([&] { serve(others); });
    for (const int i : {0, 1, 2}) check(desk.push(i) == status::ok, "an open router to take it");
    desk.close();
    serve(mine);
  }
  for (auto& each : begun) check(each.read() == 1, "every item to be begun once");
  check(desk.stats().unfinished == 0, "none to be left");
}

// The same by handlers on a pool, of which one leaves in the middle of it.
template <routing Rule>
void what_a_worker_leaves_behind_goes_to_another() {
  std::array<shared<int>, 3> handled;
  thread_pool pool({.core = 2, .capacity = 4, .time_every = 0});
  router<int> desk(by_rule<Rule>(4));
  const auto handle = [&](int& item) { ++handled[static_cast<std::size_t>(item)].change(); };
  auto ann = desk.join(pool, handle);
  auto bob = std::optional(desk.join(pool, handle));
  std::jthread leaves([&] { bob.reset(); });
  for (const int i : {0, 1, 2}) check(desk.push(i) == status::ok, "an open router to take it");
  desk.drain();
  leaves.join();
  for (auto& each : handled) check(each.read() == 1, "every item to be handled once");
}

// Items of one key have no other guard than the router's promise, while the key moves about.
void items_of_one_key_do_not_overlap_when_workers_come_and_go() {
  shared<int> last{0};
  thread_pool pool({.core = 2, .capacity = 4, .time_every = 0});
  auto o = by_rule<routing::by_key>(4);
  o.key = [](int) { return std::uint64_t{7}; };
  router<int> desk(std::move(o));
  const auto handle = [&](int& item) {
    check(last.read() == item - 1, "the order in which they were accepted");
    last.write(item);
  };
  auto ann = std::optional(desk.join(pool, handle));
  std::optional<router<int>::worker> bob;
  std::jthread changes([&] {
    bob.emplace(desk.join(pool, handle));
    ann.reset();
  });
  for (const int i : {1, 2, 3}) check(desk.push(i) == status::ok, "an open router to take it");
  desk.drain();
  changes.join();
  check(last.read() == 3, "all to have been handled");
}

void what_stop_hands_back_was_not_begun() {
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
  check(handled.load() + static_cast<int>(left.size()) == accepted, "nothing lost, nothing twice");
}

void a_shutdown_within_an_hour_stops_what_takes_longer() {
  shared<bool> asked{false};
  event begun;
  event never;
  thread_pool pool({.core = 1, .capacity = 2, .time_every = 0});
  router<int> desk(by_rule<routing::least_loaded>(4));
  const auto began = seam::now();
  auto ann = desk.join(pool, [&](int&) {
    begun.set();
    asked.write(never.wait(desk.stop_token()) == status::stopped);
  });
  check(desk.push(1) == status::ok && desk.push(2) == status::ok, "room");
  begun.wait();
  const auto left = desk.shutdown_within(deadline::after(1h));
  check(left == std::vector{2} && asked.read(), "one to be asked to stop, one to be handed back");
  check(seam::now() - began >= 1h, "the whole hour to have passed");
}

// With nobody there, what is pushed waits for whoever comes, or its pusher gives up.
void who_waits_for_a_worker_is_served_or_gave_nothing() {
  router<int> desk(by_rule<routing::round_robin>(1));
  status how = status::ok;
  std::jthread pusher([&] {
    int item = 1;
    how = desk.push_within(item, deadline::after(1s));
  });
  auto worker = desk.join();
  const auto got = worker.try_next_for(1s);
  pusher.join();
  const auto late = worker.try_next();
  check(how == status::ok || how == status::timed_out, "ok or timed out");
  check((got ? 1 : 0) + (late ? 1 : 0) == (how ? 1 : 0), "what was accepted, and no more");
}

void a_limited_wait_for_an_item_takes_nothing() {
  router<int> desk(by_rule<routing::work_stealing>(2));
  auto worker = desk.join();
  std::jthread pusher([&] { check(desk.push(1) == status::ok, "an open router to take it"); });
  const auto first = worker.try_next_for(1s);
  pusher.join();
  check(first || first.status() == status::timed_out, "an item or timed out");
  check(static_cast<bool>(worker.try_next()) == !first, "the item to be there once");
}

template <overflow Policy>
void what_a_full_one_does_adds_up() {
  atomic<int> dropped{0};
  auto o = by_rule<routing::round_robin>(1);
  o.overflow = Policy;
  o.on_drop = [&](int&&) { dropped.fetch_add(1, relaxed); };
  router<int> desk(std::move(o));
  auto worker = desk.join();
  status from_other = status::closed;
  std::jthread other([&] { from_other = desk.push(1); });
  const status mine = desk.push(2);
  other.join();
  desk.close();
  int taken = 0;
  while (worker.next()) ++taken;
  const int refused = (mine == status::full ? 1 : 0) + (from_other == status::full ? 1 : 0);
  check(taken == 1 && refused + dropped.load() == 1, "one to fit in, the other not");
}

[[maybe_unused]] const bool added =
    add({.name = "router: in turn, two loops begin every item once",
         .how = {.schedules = 2'500},
         .body = &two_loops_begin_every_item_once<routing::round_robin>}) &&
    add({.name = "router: by load, two loops begin every item once",
         .how = {.schedules = 2'500},
         .body = &two_loops_begin_every_item_once<routing::least_loaded>}) &&
    add({.name = "router: by key, two loops begin every item once",
         .how = {.schedules = 2'500},
         .body = &two_loops_begin_every_item_once<routing::by_key>}) &&
    add({.name = "router: by priority, two loops begin every item once",
         .how = {.schedules = 2'500},
         .body = &two_loops_begin_every_item_once<routing::by_priority>}) &&
    add({.name = "router: by stealing, two loops begin every item once",
         .how = {.schedules = 2'500},
         .body = &two_loops_begin_every_item_once<routing::work_stealing>}) &&
    add({.name = "router: in turn, what a worker leaves goes to another",
         .how = {.schedules = 3'000},
         .body = &what_a_worker_leaves_behind_goes_to_another<routing::round_robin>}) &&
    add({.name = "router: by key, what a worker leaves goes to another",
         .how = {.schedules = 3'000},
         .body = &what_a_worker_leaves_behind_goes_to_another<routing::by_key>}) &&
    add({.name = "router: by stealing, what a worker leaves goes to another",
         .how = {.schedules = 3'000},
         .body = &what_a_worker_leaves_behind_goes_to_another<routing::work_stealing>}) &&
    add({.name = "router: by priority, what a worker leaves goes to another",
         .how = {.schedules = 3'000},
         .body = &what_a_worker_leaves_behind_goes_to_another<routing::by_priority>}) &&
    add({.name = "router: items of one key do not overlap as workers come and go",
         .how = {.schedules = 3'500},
         .body = &items_of_one_key_do_not_overlap_when_workers_come_and_go}) &&
    add({.name = "router: what stop hands back was not begun",
         .how = {.schedules = 3'500},
         .body = &what_stop_hands_back_was_not_begun}) &&
    add({.name = "router: a shutdown within an hour stops what takes longer",
         .how = {.schedules = 2'500, .early_timeouts = false},
         .body = &a_shutdown_within_an_hour_stops_what_takes_longer}) &&
    add({.name = "router: who waits for a worker is served or gave nothing",
         .how = {.schedules = 3'500},
         .body = &who_waits_for_a_worker_is_served_or_gave_nothing}) &&
    add({.name = "router: a limited wait for an item takes nothing",
         .how = {.schedules = 3'500},
         .body = &a_limited_wait_for_an_item_takes_nothing}) &&
    add({.name = "router: what a full one rejects adds up",
         .how = {.schedules = 1'000},
         .body = &what_a_full_one_does_adds_up<overflow::reject>}) &&
    add({.name = "router: what a full one drops of the oldest adds up",
         .how = {.schedules = 1'000},
         .body = &what_a_full_one_does_adds_up<overflow::drop_oldest>});

}  // namespace
}  // namespace sluice::sim
