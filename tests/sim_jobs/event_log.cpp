#include "tests/sim_jobs/event_log.hpp"

#include <algorithm>
#include <chrono>
#include <cstdarg>

#include "sluice/base/seam.hpp"

namespace sluice::sim_jobs {
namespace {

constexpr std::uint64_t fnv_prime = 0x100000001b3ULL;
constexpr std::size_t line_max = 512;

}  // namespace

void event_log::add(const char* format, ...) {
  using std::chrono::microseconds;
  char line[line_max];
  const auto now = std::chrono::duration_cast<microseconds>(seam::now().time_since_epoch()).count();
  const int begun =
      std::snprintf(line, line_max, "%lld.%06lld #%u ", static_cast<long long>(now / 1'000'000),
                    static_cast<long long>(now % 1'000'000), seam::thread_number());
  const auto at = static_cast<std::size_t>(std::max(begun, 0));
  std::va_list values;
  va_start(values, format);
  const int added = std::vsnprintf(line + at, line_max - at, format, values);
  va_end(values);
  const auto end = std::min(at + static_cast<std::size_t>(std::max(added, 0)), line_max - 1);
  for (std::size_t i = 0; i < end; ++i) {
    hash_ = (hash_ ^ static_cast<unsigned char>(line[i])) * fnv_prime;
  }
  hash_ = (hash_ ^ '\n') * fnv_prime;
  ++lines_;
  if (shown_ != nullptr) std::fprintf(shown_, "%.*s\n", static_cast<int>(end), line);
}

}  // namespace sluice::sim_jobs
