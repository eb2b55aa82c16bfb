// A pipeline of four stages, of which one passes a hundredth of the source's rate: once with
// bounded queues between the stages, once with queues that never get full. Prints and draws the
// number of items in flight and the memory of the process.
//
//   pipeline_memory [--quick] [--svg FILE]
#include <chrono>
#include <cstdio>
#include <string_view>

#include "examples/pipeline_memory/figure.hpp"
#include "examples/pipeline_memory/measure.hpp"

namespace {

constexpr std::size_t bounded_places = 16;
constexpr std::size_t so_many_that_it_is_never_full = 1'000'000;

void print(const pipeline_memory::measured& run) {
  std::printf("%s\n  %8s %12s %14s\n", run.name.c_str(), "time", "in flight", "resident");
  const std::size_t step = run.samples.size() / 8 + 1;
  for (std::size_t i = 0; i < run.samples.size(); i += step) {
    const auto& now = run.samples[i];
    std::printf("  %6.2f s %12lld %10.1f MiB\n", now.seconds, static_cast<long long>(now.in_flight),
                now.resident_mb);
  }
  std::printf("  made %llu, done %llu, at most %lld in flight, memory grew by %.1f MiB\n\n",
              static_cast<unsigned long long>(run.made), static_cast<unsigned long long>(run.done),
              static_cast<long long>(run.in_flight_most), run.grown_mb);
}

}  // namespace

int main(int argc, char** argv) {
  pipeline_memory::settings s;
  const char* svg = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--quick") {
      s.duration = std::chrono::milliseconds(300);
    } else if (argument == "--svg" && i + 1 < argc) {
      svg = argv[++i];
    } else {
      std::fputs("usage: pipeline_memory [--quick] [--svg FILE]\n", stderr);
      return 2;
    }
  }

  const auto bounded = pipeline_memory::run("queues of 16 places", bounded_places, s);
  print(bounded);
  s.in_flight_least = 2 * bounded.in_flight_most + 1;
  const auto unbounded =
      pipeline_memory::run("queues without a bound", so_many_that_it_is_never_full, s);
  print(unbounded);

  if (svg != nullptr) {
    std::FILE* const file = std::fopen(svg, "w");
    if (file == nullptr) {
      std::perror(svg);
      return 1;
    }
    std::fputs(pipeline_memory::to_svg(s, bounded, unbounded).c_str(), file);
    std::fclose(file);
  }
  // 4 queues of 16, one item in each of 5 workers, and each perhaps twice during a move.
  const bool flat = bounded.in_flight_most <= 2 * (4 * 16 + 5);
  const bool outrun = unbounded.in_flight_most > 2 * bounded.in_flight_most;
  if (!flat || !outrun) std::puts("that was not expected");
  return flat && outrun ? 0 : 1;
}
