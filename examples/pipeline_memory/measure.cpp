#include "examples/pipeline_memory/measure.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>

#include "sluice/executor/thread_pool.hpp"
#include "sluice/flow/pipeline.hpp"
#include "sluice/flow/rate_limiter.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/timers.hpp"

namespace pipeline_memory {
namespace {

using clock = std::chrono::steady_clock;

std::atomic<std::int64_t> alive{0};

// A block of resident bytes, counted while it exists.
class image {
 public:
  explicit image(std::size_t bytes) : pixels_(bytes, 'x') { ++alive; }
  image(image&& other) noexcept : pixels_(std::move(other.pixels_)) { ++alive; }
  image& operator=(image&&) noexcept = default;
  ~image() { --alive; }

 private:
  std::vector<char> pixels_;
};

double resident_mb() {
  long pages = 0;
  if (std::FILE* const f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%*s %ld", &pages) != 1) pages = 0;
    std::fclose(f);
  }
  return static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

image decode(image i) {
  return i;
}

sluice::task<image> watermark(image i, std::chrono::milliseconds takes) {
  (void)co_await sluice::sleep_for(takes);
  co_return i;
}

}  // namespace

measured run(std::string name, std::size_t capacity, const settings& s) {
  measured result{.name = std::move(name)};
  sluice::thread_pool pool({.core = 2});
  sluice::rate_limiter camera({.rate = {s.source_per_second}, .burst = 100});
  std::atomic<std::uint64_t> made{0};
  std::atomic<std::uint64_t> done{0};
  const auto shoot = [&](std::size_t bytes) -> sluice::task<std::optional<image>> {
    const auto in_time = co_await camera.async_acquire();
    if (!in_time) co_return std::nullopt;
    ++made;
    co_return image(bytes);
  };
  const sluice::stage_options queue{.capacity = capacity};
  auto line =
      sluice::pipeline<>::from(pool, "camera", [&] { return shoot(s.item_bytes); })
          .stage("decode", decode, queue)
          .stage("resize", decode, queue)
          .stage(
              "watermark", [&](image i) { return watermark(std::move(i), s.slow_stage); }, queue)
          .sink(
              "store", [&](image) { ++done; }, queue);

  // A busy machine may need longer than the duration to reach in_flight_least.
  const auto start = clock::now();
  const auto goes_on = [&](clock::time_point now) {
    if (now <= start + s.duration) return true;
    return result.in_flight_most < s.in_flight_least && now < start + std::chrono::minutes(1);
  };
  for (auto next = start; goes_on(next); next = std::max(next + s.every, clock::now())) {
    std::this_thread::sleep_until(next);
    const std::chrono::duration<double> passed = clock::now() - start;
    result.samples.push_back({passed.count(), alive.load(), resident_mb()});
    result.in_flight_most = std::max(result.in_flight_most, result.samples.back().in_flight);
  }
  (void)line.stop();
  result.made = made;
  result.done = done;
  for (const sample& each : result.samples) {
    result.grown_mb =
        std::max(result.grown_mb, each.resident_mb - result.samples.front().resident_mb);
  }
  return result;
}

}  // namespace pipeline_memory
