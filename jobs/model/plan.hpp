#pragma once

// How large a queue and how many workers a burst takes: capacity is what arrives minus what is
// done, threads are cores x (1 + wait / compute).
//
// The arithmetic is that of water in a basin. Jobs arrive at the base rate; for a time, at the
// burst rate; then at the base rate again. Workers do as many jobs at a time as there are of them,
// but never more in a second than the cores can compute. What cannot be done waits.
//
// Guarantees: pure; the same question has the same answer. What makes no sense is an error that
// names the option.
// Limits: averages only. Jobs that come in clumps, or take very different times, need more room
// than the peak: that is what `headroom` is for.
//
//     auto p = make_plan({.base_per_second = 100, .burst_per_second = 10'000, .burst_for = 10s,
//                         .compute = 2ms, .wait = 18ms, .cores = 8, .workers = 64});
//     if (!p) return p.error();
//     std::cout << p->verdict << '\n' << draw(*p, {.columns = 72, .rows = 12});
//     p->capacity;   // what to give the queue as capacity_jobs

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
  double burst_per_second = 0;  // ... and during it, all together; at least the base
  plan_seconds burst_for{0};
  plan_seconds compute{0};  // of one job, on a core
  plan_seconds wait{0};     // ... and for a disk, a network, a database
  std::size_t cores = 1;    // of all machines that workers run on
  // How many jobs are worked on at a time. None: as many as drain the queue in `drain_within` after
  // the burst; when that is not given either, the recommended threads.
  std::optional<std::size_t> workers{};
  std::optional<plan_seconds> drain_within{};
  double headroom = 0.25;  // a share of the peak, added to the recommended capacity
};

struct plan {
  enum class outcome : std::uint8_t {
    keeps_up,     // nothing ever waits
    drains,       // the queue fills in the burst and is empty some time after it
    stays_level,  // what the burst left is there for good: as much arrives as is done
    overflows,    // even the base rate is too much: no capacity is enough
  };
  plan_request asked{};
  outcome ends = outcome::keeps_up;
  std::string verdict{};  // one sentence for people

  std::size_t workers = 0;            // those that were asked for, or worked out
  std::size_t threads = 0;            // recommended: cores x (1 + wait / compute)
  double service_per_second = 0;      // what the workers can do
  bool limited_by_cores = false;      // more workers would not do more
  double utilisation = 0;             // of the workers at the base rate; above 1: too much
  double burst_utilisation = 0;       // ... and in the burst
  double arrivals = 0;                // jobs that arrive in the burst
  double done_in_burst = 0;           // ... of which so many are done before its end
  double peak = 0;                    // the most that wait; when it overflows: at the burst's end
  plan_seconds peak_at{0};            // after the burst began
  std::optional<plan_seconds> drain;  // from the burst's end to an empty queue; none: never
  std::optional<plan_seconds> longest_wait;  // of a job, before it is worked on; none: no bound
  std::uint64_t capacity = 0;                // recommended: the peak and the headroom; zero: none

  // How many wait so long after the burst began.
  double depth_at(plan_seconds t) const;
  // The time worth looking at: until the queue is empty again, or three times the burst.
  plan_seconds span() const;
  // So many points (at least 2) over the span, the first at zero.
  struct sample {
    plan_seconds at{0};
    double depth = 0;
  };
  std::vector<sample> samples(std::size_t count) const;
};

// An error is `invalid` and names the option as `sluice plan` does: "--workers must be ...".
result<plan> make_plan(const plan_request& asked);

// "100/s", "6000/m", "2.5k/s", "1M/h" or a bare "100", as jobs in a second.
result<double> parse_rate(std::string_view text);

struct chart_size {
  std::size_t columns = 72;  // from 30 to 400, labels included; what is beyond is brought back
  std::size_t rows = 12;     // from 4 to 100, axis included
};
// The depth over time, in block characters with labelled axes: whole lines, UTF-8.
std::string draw(const plan& p, const chart_size& size = {});

}  // namespace sluice::jobs
