#include "sluice/flow/pipeline.hpp"

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/race_checked.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

void items_leave_in_their_order() {
  race_checked<int> last{0};
  thread_pool pool({.core = 2, .capacity = 4, .time_every = 0});
  auto line = pipeline<int>::on(pool)
                  .stage("double", [](int i) { return 2 * i; }, {.capacity = 1})
                  .sink("see",
                        [&](int i) {
                          check(i == last.read() + 2, "the order of the pushes");
                          last.write(i);
                        },
                        {.capacity = 1});
  for (const int i : {1, 2, 3})
    check(line.push(i) == status::ok, "an open pipeline to wait for capacity");
  line.drain();
  check(last.read() == 6, "all of them");
}

void several_workers_keep_the_order_if_configured() {
  race_checked<int> last{0};
  thread_pool pool({.core = 2, .capacity = 4, .time_every = 0});
  auto line = pipeline<int>::on(pool)
                  .stage("pass", [](int i) { return i; },
                         {.parallelism = 2, .capacity = 1, .ordered = true, .window = 2})
                  .sink("see",
                        [&](int i) {
                          check(i == last.read() + 1, "the order of the pushes");
                          last.write(i);
                        },
                        {.capacity = 1});
  for (const int i : {1, 2})
    check(line.push(i) == status::ok, "an open pipeline to wait for capacity");
  line.drain();
  check(last.read() == 2, "all of them");
}

void accepted_items_leave_or_are_counted() {
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
  check(seen.load() + static_cast<int>(left) == accepted, "every item exactly once");
}

void an_error_stops_the_pipeline_and_names_the_stage() {
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
      const status outcome = line.push(i);
      check(outcome == status::ok || outcome == status::closed, "ok or closed");
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

void a_shutdown_with_a_time_limit_counts_the_remaining_items() {
  event never;
  thread_pool pool({.core = 1, .capacity = 4, .time_every = 0});
  const auto began = seam::now();
  auto line = pipeline<int>::on(pool).sink("waits", [&](int) -> task<> {
    const status outcome = co_await never.async_wait();
    check(outcome == status::stopped, "a stop request");
  });
  for (const int i : {1, 2}) check(line.push(i) == status::ok, "capacity");
  const std::size_t left = line.shutdown(1h);
  check(left <= 2 && left >= 1, "the items behind it to remain");
  check(seam::now() - began >= 1h, "a whole hour");
}

void the_counts_of_skipped_and_expanded_items_add_up() {
  atomic<int> skipped{0};
  race_checked<int> sum{0};
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
  for (const int i : {1, 2, 3})
    check(line.push(i) == status::ok, "an open pipeline to wait for capacity");
  line.drain();
  check(sum.read() == 2 && skipped.load() == 1, "one twice, one filtered, one skipped");
}

void a_source_is_read_to_its_end() {
  int given = 0;
  race_checked<int> sum{0};
  work_stealing_pool pool({.threads = 2, .capacity = 4, .deque_capacity = 8, .spares_max = 0});
  auto line = pipeline<>::from(pool, "count", [&]() -> std::optional<int> {
                if (given == 3) return std::nullopt;
                return ++given;
              }).sink("sum", [&](int i) { sum.change() += i; }, {.capacity = 1});
  line.join();
  check(sum.read() == 6, "all items of the source");
}

[[maybe_unused]] const bool added =
    add({.name = "pipeline: items leave in their order",
         .options = {.schedules = 2'500},
         .body = &items_leave_in_their_order}) &&
    add({.name = "pipeline: several workers keep the order if configured",
         .options = {.schedules = 2'500},
         .body = &several_workers_keep_the_order_if_configured}) &&
    add({.name = "pipeline: accepted items leave or are counted",
         .options = {.schedules = 3'000},
         .body = &accepted_items_leave_or_are_counted}) &&
    add({.name = "pipeline: an error stops the pipeline and names the stage",
         .options = {.schedules = 2'500},
         .body = &an_error_stops_the_pipeline_and_names_the_stage}) &&
    add({.name = "pipeline: a shutdown with a time limit counts the remaining items",
         .options = {.schedules = 1'000, .early_timeouts = false},
         .body = &a_shutdown_with_a_time_limit_counts_the_remaining_items}) &&
    add({.name = "pipeline: the counts of skipped and expanded items add up",
         .options = {.schedules = 2'000},
         .body = &the_counts_of_skipped_and_expanded_items_add_up}) &&
    add({.name = "pipeline: a source is read to its end",
         .options = {.schedules = 2'000},
         .body = &a_source_is_read_to_its_end});

}  // namespace
}  // namespace sluice::sim
