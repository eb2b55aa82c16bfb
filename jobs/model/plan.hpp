#pragma once

// Computes the queue capacity and the number of workers for a burst: capacity is arrivals minus
// completions, threads are cores x (1 + wait / compute).
//
// The model is a fluid queue. Jobs arrive at the base rate, during the burst at the burst rate,
// then at the base rate again. Each worker runs one job at a time; together they never complete
// more per second than the cores can compute. The remaining jobs wait.
//
// Guarantees: pure; equal requests have equal results. The error of an invalid request names the
// option.
// Limits: averages only. Jobs that arrive in clumps, or whose duration varies a lot, need more
// capacity than the peak: that is the purpose of `headroom`.
//
//     auto p = make_plan({.base_per_second = 100, .burst_per_second = 10'000, .burst_for = 10s,
//                         .compute = 2ms, .wait = 18ms, .cores = 8, .workers = 64});
//     if (!p) return p.error();
//     std::cout << p->verdict << '\n' << draw(*p, {.columns = 72, .rows = 12});
//     p->capacity;   // for the queue's capacity_jobs

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs {

using plan_seconds = std::chrono::duration<double>;

struct plan_request {
  double base_per_second = 0;   // jobs that arrive before and after the burst
  double burst_per_second = 0;  // total during the burst; at least the base
  plan_seconds burst_for{0};
  plan_seconds compute{0};  // per job, on a core
  plan_seconds wait{0};     // per job, for a disk, a network, a database
  std::size_t cores = 1;    // of all machines that workers run on
  // Jobs that run at a time. None: as many as drain the queue within `drain_within` after the
  // burst; without `drain_within`, the recommended threads.
  std::optional<std::size_t> workers{};
  std::optional<plan_seconds> drain_within{};
  double headroom = 0.25;  // a share of the peak, added to the recommended capacity
};

struct plan {
  enum class outcome : std::uint8_t {
    keeps_up,     // no job ever waits
    drains,       // the queue fills during the burst and drains after it
    stays_level,  // the queue never drains: after the burst, arrivals equal completions
    overflows,    // the base rate exceeds the workers: no capacity is enough
  };
  plan_request asked{};
  outcome ends = outcome::keeps_up;
  std::string verdict{};  // one sentence for people

  std::size_t workers = 0;            // as requested, or computed
  std::size_t threads = 0;            // recommended: cores x (1 + wait / compute)
  double service_per_second = 0;      // jobs that the workers can complete
  bool limited_by_cores = false;      // more workers would not complete more
  double utilisation = 0;             // of the workers at the base rate; above 1: overload
  double burst_utilisation = 0;       // of the workers at the burst rate
  double arrivals = 0;                // jobs that arrive during the burst
  double done_in_burst = 0;           // jobs of the burst that are done before its end
  double peak = 0;                    // most waiting jobs; if it overflows: at the burst's end
  plan_seconds peak_at{0};            // since the start of the burst
  std::optional<plan_seconds> drain;  // from the burst's end to an empty queue; none: never
  std::optional<plan_seconds> longest_wait;  // of a job, before it starts; none: no bound
  std::uint64_t capacity = 0;                // recommended: the peak and the headroom; zero: none

  // Returns the number of waiting jobs at time t since the start of the burst.
  double depth_at(plan_seconds t) const;
  // Returns the interesting time: until the queue is empty again, or three times the burst.
  plan_seconds span() const;
  // `count` points (at least 2) over the span, the first at zero.
  struct sample {
    plan_seconds at{0};
    double depth = 0;
  };
  std::vector<sample> samples(std::size_t count) const;
};

// Fails with `invalid`; the message names the option of `sluice plan`: "--workers must be ...".
result<plan> make_plan(const plan_request& asked);

// "100/s", "6000/m", "2.5k/s", "1M/h" or a bare "100", as jobs in a second.
result<double> parse_rate(std::string_view text);

struct chart_size {
  std::size_t columns = 72;  // from 30 to 400, labels included; other values are clamped
  std::size_t rows = 12;     // from 4 to 100, axis included
};
// The depth over time, in block characters with labelled axes: whole lines, UTF-8.
std::string draw(const plan& p, const chart_size& size = {});

}  // namespace sluice::jobs
