#include "sluice/base/this_thread.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <thread>

#include "sluice/base/seam.hpp"

namespace sluice::seam {
namespace {

// The largest number of processors that Linux supports.
constexpr std::size_t cpus_max = 8192;

struct free_cpu_set {
  void operator()(cpu_set_t* set) const noexcept { CPU_FREE(set); }
};
using cpu_set = std::unique_ptr<cpu_set_t, free_cpu_set>;

// Reads the second number of schedstat: nanoseconds on a run queue, waiting for a processor. Stays
// open until the thread ends, so that each read is one system call.
class run_delay_file {
 public:
  run_delay_file() noexcept
      : file_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
  run_delay_file(const run_delay_file&) = delete;
  run_delay_file& operator=(const run_delay_file&) = delete;
  ~run_delay_file() {
    if (file_ >= 0) ::close(file_);
  }

  std::optional<std::chrono::nanoseconds> read() const noexcept {
    if (file_ < 0) return std::nullopt;
    std::array<char, 96> text{};
    const auto got = ::pread(file_, text.data(), text.size(), 0);
    if (got <= 0) return std::nullopt;
    const char* const end = text.data() + got;
    const char* const space = std::find<const char*>(text.data(), end, ' ');
    if (space == end) return std::nullopt;
    long long ns = 0;
    if (std::from_chars(space + 1, end, ns).ec != std::errc{}) return std::nullopt;
    return std::chrono::nanoseconds(ns);
  }

 private:
  const int file_;
};

std::optional<std::chrono::nanoseconds> run_delay() noexcept {
  thread_local const run_delay_file file;
  return file.read();
}

}  // namespace

void name_thread(std::string_view name) noexcept {
  std::array<char, thread_name_max + 1> shown{};
  std::copy_n(name.begin(), std::min(name.size(), thread_name_max), shown.begin());
  ::pthread_setname_np(::pthread_self(), shown.data());  // fails only if the name is too long
}

std::vector<unsigned> usable_cpus() {
  std::vector<unsigned> cpus;
  const cpu_set set(CPU_ALLOC(cpus_max));
  const auto bytes = CPU_ALLOC_SIZE(cpus_max);
  if (set != nullptr && ::sched_getaffinity(0, bytes, set.get()) == 0) {
    for (unsigned cpu = 0; cpu < cpus_max; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set.get())) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) {  // the kernel did not return the set: take all processors
    for (unsigned cpu = 0; cpu < std::max(1U, std::thread::hardware_concurrency()); ++cpu) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

bool pin_thread(std::span<const unsigned> cpus) noexcept {
  const cpu_set set(CPU_ALLOC(cpus_max));
  if (set == nullptr) return false;
  const auto bytes = CPU_ALLOC_SIZE(cpus_max);
  CPU_ZERO_S(bytes, set.get());
  for (const unsigned cpu : cpus) {
    if (cpu < cpus_max) CPU_SET_S(cpu, bytes, set.get());
  }
  return ::sched_setaffinity(0, bytes, set.get()) == 0;
}

bool runnable_time_is_known() noexcept { return run_delay().has_value(); }

thread_times this_thread_times() noexcept {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return {.wall = now().time_since_epoch(),
          .computing = std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec),
          .runnable = run_delay().value_or(std::chrono::nanoseconds(0))};
}

}  // namespace sluice::seam
