// Pictures go through four stages: decode, resize, watermark, store. Resizing is the slow one. The
// counters show it: it is always busy, the stages before it are blocked, the stages after it idle.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sluice/executor/thread_pool.hpp"
#include "sluice/flow/pipeline.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/timers.hpp"

using namespace std::chrono_literals;

namespace {

struct file {
  int number = 0;
};
struct image {
  int number = 0;
  std::vector<std::uint8_t> pixels;
};

constexpr int pictures = 120;
constexpr int broken = 77;  // this one cannot be decoded

image decode(file f) {
  if (f.number == broken) throw std::runtime_error("picture 77 is not a picture");
  std::vector<std::uint8_t> pixels(64 * 1024);
  std::iota(pixels.begin(), pixels.end(), static_cast<std::uint8_t>(f.number));
  return {f.number, std::move(pixels)};
}

// The slow one. It waits instead of working, and holds no thread meanwhile.
sluice::task<image> resize(image i) {
  (void)co_await sluice::sleep_for(20ms);
  i.pixels.resize(i.pixels.size() / 16);
  co_return i;
}

image watermark(image i) {
  for (std::size_t at = 0; at < i.pixels.size(); at += 64) i.pixels[at] = 0xff;
  return i;
}

void print(const std::vector<sluice::stage_stats>& stages) {
  const auto ms = [](std::chrono::nanoseconds d) {
    return static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
  };
  std::printf("  %-10s %6s %6s %8s %9s %9s %9s\n", "stage", "in", "out", "skipped", "busy ms",
              "held up", "idle ms");
  for (const auto& s : stages) {
    std::printf("  %-10s %6llu %6llu %8llu %9lld %9lld %9lld\n", s.name.c_str(),
                static_cast<unsigned long long>(s.in), static_cast<unsigned long long>(s.out),
                static_cast<unsigned long long>(s.skipped), ms(s.busy), ms(s.blocked), ms(s.idle));
  }
}

bool run() {
  std::vector<int> album;
  auto store = [&album](image i) { album.push_back(i.number); };
  auto say = [](const sluice::pipeline_error& e) { std::printf("  skipped: %s\n", e.what()); };

  sluice::thread_pool pool({.core = 2});
  auto line = sluice::pipeline<file>::on(pool)
                  .stage("decode", decode,
                         {.capacity = 8, .errors = sluice::stage_errors::skip, .on_error = say})
                  .stage("resize", resize, {.parallelism = 4, .capacity = 8, .ordered = true})
                  .stage("watermark", watermark, {.capacity = 8})
                  .sink("store", store, {.capacity = 8});
  for (int i = 0; i < pictures; ++i) {
    if (!line.push({i})) return false;  // waits while the pipeline is full
  }
  line.drain();
  print(line.stats());

  std::vector<int> expected;
  for (int i = 0; i < pictures; ++i) {
    if (i != broken) expected.push_back(i);
  }
  const auto stages = line.stats();
  const bool slow_one_is_visible =
      stages[1].busy > stages[0].busy && stages[0].blocked > stages[2].blocked;
  return album == expected && slow_one_is_visible;
}

// The same pipeline with an error that stops it.
bool stop_at_the_first_error() {
  sluice::thread_pool pool({.core = 2});
  int next = 0;
  auto numbers = [&]() -> std::optional<file> {
    return next < pictures ? std::optional(file{next++}) : std::nullopt;
  };
  auto line = sluice::pipeline<>::from(pool, "read", numbers)
                  .stage("decode", decode)
                  .sink("store", [](image) {});
  try {
    line.join();
  } catch (const sluice::pipeline_error& e) {
    std::printf("  stopped: %s; %zu pictures were left\n", e.what(), line.unprocessed());
    return e.stage() == "decode";
  }
  return false;
}

}  // namespace

int main() {
  std::puts("120 pictures, one of them broken:");
  const bool went_well = run();
  std::puts("and when an error stops the line:");
  return stop_at_the_first_error() && went_well ? 0 : 1;
}
