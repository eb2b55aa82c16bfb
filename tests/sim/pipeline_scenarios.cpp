#include "sluice/flow/pipeline.hpp"

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/shared.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

void what_goes_in_comes_out_in_order() {
  shared<int> last{0};
  thread_pool pool({.core = 2, .capacity = 4, .time_every = 0});
  auto line = pipeline<int>::on(pool)
                  .stage("double", [](int i) { return 2 * i; }, {.capacity = 1})
                  .sink("see",
                        [&](int i) {
                          check(i == last.read() + 2, "the order in which they went in");
                          last.write(i);
                        },
                        {.capacity = 1});
  for (const int i : {1, 2, 3}) check(line.push(i) == status::ok, "an open line to wait for room");
  line.drain();
  check(last.read() == 6, "all of them");
}

void several_hands_keep_the_order_when_asked_to() {
  shared<int> last{0};
  thread_pool pool({.core = 2, .capacity = 4, .time_every = 0});
  auto line = pipeline<int>::on(pool)
                  .stage("pass", [](int i) { return i; },
                         {.parallelism = 2, .capacity = 1, .ordered = true, .window = 2})
                  .sink("see",
                        [&](int i) {
                          check(i == last.read() + 1, "the order in which they went in");
                          last.write(i);
                        },
                        {.capacity = 1});
  for (const int i : {1, 2}) check(line.push(i) == status::ok, "an open line to wait for room");
  line.drain();
  check(last.read() == 2, "all of them");
}

void what_was_accepted_came_out_or_is_counted() {
  atomic<int> seen{0};
  int accepted = 0;
  thread_pool pool({.core = 1, .capacity = 4, .time_every = 0});
  auto line = pipeline<int>::on(pool)
                  .stage("pass", [](int i) { return i; }, {.capacity = 1})
                  .sink("see", [&](int) { seen.fetch_add(1, relaxed); }, {.capacity = 1});
  std::jthread maker([&] {
    for (const int i : {1, 2}) {
      if (line.push(i)) ++accepted;
    }
  });
  const std::size_t left = line.stop();
  maker.join();
  check(seen.load() + static_cast<int>(left) == accepted, "nothing lost, nothing twice");
}

void an_error_stops_the_line_and_names_the_stage() {
  thread_pool pool({.core = 1, .capacity = 4, .time_every = 0});
  auto line = pipeline<int>::on(pool)
                  .stage("fails",
                         [](int i) -> int {
                           if (i == 1) throw std::runtime_error("no");
                           return i;
                         })
                  .sink("see", [](int) {}, {.capacity = 1});
  std::jthread maker([&] {
    for (const int i : {1, 2}) {
      const status how = line.push(i);
      check(how == status::ok || how == status::closed, "ok or closed");
    }
    line.close();
  });
  bool named = false;
  try {
    line.join();
  } catch (const pipeline_error& e) {
    named = e.stage() == "fails";
  }
  maker.join();
  check(named, "the error of the stage");
}

void a_shutdown_within_an_hour_counts_what_is_left() {
  event never;
  thread_pool pool({.core = 1, .capacity = 4, .time_every = 0});
  const auto began = seam::now();
  auto line = pipeline<int>::on(pool).sink("waits", [&](int) -> task<> {
    const status how = co_await never.async_wait();
    check(how == status::stopped, "to be asked to stop");
  });
  for (const int i : {1, 2}) check(line.push(i) == status::ok, "room");
  const std::size_t left = line.shutdown_within(deadline::after(1h));
  check(left <= 2 && left >= 1, "what waited behind it to be left");
  check(seam::now() - began >= 1h, "the whole hour to have passed");
}

void what_is_skipped_and_what_is_many_adds_up() {
  atomic<int> skipped{0};
  shared<int> sum{0};
  thread_pool pool({.core = 2, .capacity = 4, .time_every = 0});
  auto line = pipeline<int>::on(pool)
                  .filter("odd", [](const int& i) { return i % 2 == 1; }, {.capacity = 1})
                  .flat_map("twice",
                            [](int i) {
                              if (i == 3) throw std::runtime_error("no");
                              return std::vector{i, i};
                            },
                            {.capacity = 1,
                             .errors = stage_errors::skip,
                             .on_error = [&](const pipeline_error&) { skipped.fetch_add(1); }})
                  .sink("sum", [&](int i) { sum.change() += i; }, {.capacity = 1});
  for (const int i : {1, 2, 3}) check(line.push(i) == status::ok, "an open line to wait for room");
  line.drain();
  check(sum.read() == 2 && skipped.load() == 1, "one twice, one filtered, one skipped");
}

void a_source_is_asked_until_it_has_no_more() {
  int given = 0;
  shared<int> sum{0};
  work_stealing_pool pool({.threads = 2, .capacity = 4, .deque_capacity = 8, .spares_max = 0});
  auto line = pipeline<>::from(pool, "count", [&]() -> std::optional<int> {
                if (given == 3) return std::nullopt;
                return ++given;
              }).sink("sum", [&](int i) { sum.change() += i; }, {.capacity = 1});
  line.join();
  check(sum.read() == 6, "all that it gave");
}

[[maybe_unused]] const bool added =
    add({.name = "pipeline: what goes in comes out in order",
         .how = {.schedules = 2'500},
         .body = &what_goes_in_comes_out_in_order}) &&
    add({.name = "pipeline: several hands keep the order when asked to",
         .how = {.schedules = 2'500},
         .body = &several_hands_keep_the_order_when_asked_to}) &&
    add({.name = "pipeline: what was accepted came out or is counted",
         .how = {.schedules = 3'000},
         .body = &what_was_accepted_came_out_or_is_counted}) &&
    add({.name = "pipeline: an error stops the line and names the stage",
         .how = {.schedules = 2'500},
         .body = &an_error_stops_the_line_and_names_the_stage}) &&
    add({.name = "pipeline: a shutdown within an hour counts what is left",
         .how = {.schedules = 1'000, .early_timeouts = false},
         .body = &a_shutdown_within_an_hour_counts_what_is_left}) &&
    add({.name = "pipeline: what is skipped and what is many adds up",
         .how = {.schedules = 2'000},
         .body = &what_is_skipped_and_what_is_many_adds_up}) &&
    add({.name = "pipeline: a source is asked until it has no more",
         .how = {.schedules = 2'000},
         .body = &a_source_is_asked_until_it_has_no_more});

}  // namespace
}  // namespace sluice::sim
