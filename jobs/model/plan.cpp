#include "jobs/model/plan.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "jobs/model/detail/plan_words.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs {
namespace {

using detail::short_duration;
using detail::short_number;

constexpr double planned_rate_max = 1e9;
constexpr double seconds_max = 366 * 86'400.0;
constexpr std::size_t cores_max = 1'000'000;
constexpr std::size_t workers_max = 10'000'000;
// Rates closer than this are equal: they were computed from decimal fractions.
constexpr double nearly = 1e-9;

bool is_within(double value, double least, double most) {
  return value >= least && value <= most;  // false for NaN
}

void_result validate(const plan_request& r) {
  if (!is_within(r.base_per_second, 0, planned_rate_max)) {
    return invalid_error("--rate must be from 0 to 1000000000 jobs a second");
  }
  if (!is_within(r.burst_per_second, 0, planned_rate_max)) {
    return invalid_error("--burst must be from 0 to 1000000000 jobs a second");
  }
  if (r.burst_per_second < r.base_per_second) {
    return invalid_error("--burst is the total rate during the burst: it must be at least --rate");
  }
  if (!is_within(r.burst_for.count(), 0, seconds_max)) {
    return invalid_error("--for must be from 0 to 366 days");
  }
  if (!is_within(r.compute.count(), 0, seconds_max)) {
    return invalid_error("--compute must be from 0 to 366 days");
  }
  if (!is_within(r.wait.count(), 0, seconds_max))
    return invalid_error("--wait must be from 0 to 366 days");
  if (r.compute.count() + r.wait.count() < 1e-9) {
    return invalid_error("--compute and --wait are both zero: a job must take some time");
  }
  if (r.cores < 1 || r.cores > cores_max) return invalid_error("--cores must be from 1 to 1000000");
  if (r.workers && (*r.workers < 1 || *r.workers > workers_max)) {
    return invalid_error("--workers must be from 1 to 10000000");
  }
  if (r.drain_within && !is_within(r.drain_within->count(), 0.001, seconds_max)) {
    return invalid_error("--drain-within must be from 1ms to 366 days");
  }
  if (r.workers && r.drain_within) {
    return invalid_error("--workers and --drain-within exclude each other: give one of them");
  }
  if (!is_within(r.headroom, 0, 100)) return invalid_error("--headroom must be from 0 to 100");
  return done{};
}

double job_seconds(const plan_request& r) {
  return r.compute.count() + r.wait.count();
}

// Enough threads to keep the cores busy: while some jobs wait, others compute.
std::size_t recommended_threads(const plan_request& r) {
  if (r.compute.count() <= 0) return 0;
  const double threads = static_cast<double>(r.cores) * (1 + r.wait.count() / r.compute.count());
  return static_cast<std::size_t>(std::clamp(std::ceil(threads - nearly), 1.0, 1.0 * workers_max));
}

// Returns the jobs per second that empty the queue within drain_within after the burst: all
// arrivals until then, divided by all the time until then.
double needed_service(const plan_request& r) {
  const double burst = r.burst_for.count();
  const double after = r.drain_within.value_or(plan_seconds(0)).count();
  const double arrives = r.burst_per_second * burst + r.base_per_second * after;
  return arrives / (burst + after);
}

result<std::size_t> workers_of(const plan_request& r, std::size_t threads) {
  if (r.workers) return *r.workers;
  if (r.drain_within) {
    const double service = needed_service(r);
    const double most =
        r.compute.count() > 0 ? static_cast<double>(r.cores) / r.compute.count() : planned_rate_max;
    if (service > most * (1 + nearly)) {
      return invalid_error("--drain-within " + short_duration(*r.drain_within) + " needs " +
                           short_number(service) + " jobs a second, but " +
                           std::to_string(r.cores) + " cores compute " + short_number(most) +
                           ": give more --cores or more time");
    }
    const double workers = std::ceil(service * job_seconds(r) - nearly);
    if (workers > static_cast<double>(workers_max)) {
      return invalid_error("--drain-within needs more than 10000000 workers: give it more time");
    }
    return static_cast<std::size_t>(std::max(workers, 1.0));
  }
  if (threads > 0) return threads;
  return invalid_error(
      "--workers is required when --compute is zero: the cores then set no number of workers");
}

void judge(plan& p) {
  const plan_request& r = p.asked;
  const double service = p.service_per_second;
  const double left = service - r.base_per_second;
  const double burst = r.burst_for.count();
  p.arrivals = r.burst_per_second * burst;
  p.done_in_burst = std::min(p.arrivals, service * burst);
  p.peak = std::max(0.0, p.arrivals - p.done_in_burst);
  p.peak_at = p.peak > 0 ? r.burst_for : plan_seconds(0);
  const bool level = std::abs(left) <= service * nearly;
  if (!level && left < 0) {
    p.ends = plan::outcome::overflows;
    return;
  }
  p.longest_wait = plan_seconds(p.peak / service);
  if (p.peak <= 0) {
    p.ends = plan::outcome::keeps_up;
    p.drain = plan_seconds(0);
  } else if (level) {
    p.ends = plan::outcome::stays_level;
  } else {
    p.ends = plan::outcome::drains;
    p.drain = plan_seconds(p.peak / left);
  }
  // At least one job per worker, even if no job waits on average.
  p.capacity = static_cast<std::uint64_t>(
      std::max(std::ceil(p.peak * (1 + r.headroom)), static_cast<double>(p.workers)));
}

std::string verdict_of(const plan& p) {
  const std::string service = short_number(p.service_per_second) + " jobs a second";
  switch (p.ends) {
    case plan::outcome::keeps_up:
      return "It keeps up: " + std::to_string(p.workers) + " workers do " + service +
             ", and arrivals never exceed that.";
    case plan::outcome::drains:
      return "It drains: up to " + short_number(p.peak) + " jobs wait, and the queue is empty " +
             short_duration(*p.drain) + " after the burst.";
    case plan::outcome::stays_level:
      return "It never drains: after the burst, arrivals equal what " + std::to_string(p.workers) +
             " workers do, so " + short_number(p.peak) + " jobs stay in the queue.";
    case plan::outcome::overflows:
      break;
  }
  return "It never drains: " + short_number(p.asked.base_per_second) +
         " jobs a second arrive at all times, and " + std::to_string(p.workers) + " workers do " +
         service + (p.limited_by_cores ? " on these cores." : ".");
}

}  // namespace

result<plan> make_plan(const plan_request& asked) {
  if (auto valid = validate(asked); !valid) return valid.error();
  plan p;
  p.asked = asked;
  p.threads = recommended_threads(asked);
  auto workers = workers_of(asked, p.threads);
  if (!workers) return workers.error();
  p.workers = *workers;
  if (p.threads == 0) p.threads = p.workers;
  p.service_per_second = static_cast<double>(p.workers) / job_seconds(asked);
  if (asked.compute.count() > 0) {
    const double most = static_cast<double>(asked.cores) / asked.compute.count();
    p.limited_by_cores = p.service_per_second > most * (1 + nearly);
    p.service_per_second = std::min(p.service_per_second, most);
  }
  p.utilisation = asked.base_per_second / p.service_per_second;
  p.burst_utilisation = asked.burst_per_second / p.service_per_second;
  judge(p);
  p.verdict = verdict_of(p);
  return p;
}

double plan::depth_at(plan_seconds t) const {
  if (t.count() <= 0) return 0;
  const plan_seconds in_burst = std::min(t, asked.burst_for);
  const plan_seconds after = t - in_burst;
  const double filled =
      std::max(0.0, (asked.burst_per_second - service_per_second) * in_burst.count());
  return std::max(0.0, filled + (asked.base_per_second - service_per_second) * after.count());
}

plan_seconds plan::span() const {
  const plan_seconds least(1e-3);
  if (!drain) return std::max(asked.burst_for * 3, least);
  return std::max(asked.burst_for + *drain, least);
}

std::vector<plan::sample> plan::samples(std::size_t count) const {
  check(count >= 2, "sluice::jobs::plan::samples", "at least two points");
  std::vector<sample> points(count);
  for (std::size_t i = 0; i < count; ++i) {
    const plan_seconds at = span() * (static_cast<double>(i) / static_cast<double>(count - 1));
    points[i] = {at, depth_at(at)};
  }
  return points;
}

result<double> parse_rate(std::string_view text) {
  const auto refused = [&] {
    return invalid_error("'" + std::string(text.substr(0, 40)) +
                         "' is not a rate; write jobs per time: 100/s, 2.5k/s, 6000/m, 1M/h");
  };
  double value = 0;
  const auto [end, failed] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (failed != std::errc() || !std::isfinite(value) || value < 0) return refused();
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (rest.starts_with('k') || rest.starts_with('M')) {
    value *= rest.front() == 'k' ? 1e3 : 1e6;
    rest.remove_prefix(1);
  }
  if (rest == "/m") {
    value /= 60;
  } else if (rest == "/h") {
    value /= 3600;
  } else if (rest == "/d") {
    value /= 86'400;
  } else if (!rest.empty() && rest != "/s") {
    return refused();
  }
  if (value > planned_rate_max) return invalid_error("a rate must be at most 1000000000/s");
  return value;
}

}  // namespace sluice::jobs
