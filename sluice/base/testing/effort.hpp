#pragma once

// The number of rounds and the random seed of a test. Only this header reads SLUICE_LONG and
// SLUICE_SEED. Depends only on std, so programs without GoogleTest can use it.
//
// Prints and flushes each count and seed at once, so the output of a hung or crashed run contains
// them.
//
//     [  EFFORT  ] kill_test.NothingAcknowledgedIsLost: 20 kills (of 500 with --long)
//     [   SEED   ] kill_test.NothingAcknowledgedIsLost: SLUICE_SEED=4711
//
// SLUICE_LONG=1 (`./test --long`) selects the full counts and fresh seeds; 0 and unset select the
// counts and the fixed seeds of CI. SLUICE_SEED=n repeats the choices of a run. Other values throw
// std::invalid_argument, which names the variable, the value and the accepted range.

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace sluice::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif
#else
inline constexpr bool is_sanitized = false;
#endif

struct effort_counts {
  std::uint64_t ci = 0;
  std::uint64_t full = 0;
  std::uint64_t sanitized = 0;  // replaces `ci` under asan and tsan; 0: no difference
};

// Returns the count to run. Under a sanitizer the full count is `full * sanitized / ci`. Throws
// std::invalid_argument unless 1 <= ci <= full and sanitized <= ci.
constexpr std::uint64_t count_of(const effort_counts& of, bool is_long, bool sanitized) {
  if (of.ci == 0 || of.full < of.ci || of.sanitized > of.ci) {
    throw std::invalid_argument("effort: expected 1 <= ci <= full and sanitized <= ci");
  }
  const std::uint64_t less = sanitized && of.sanitized != 0 ? of.sanitized : of.ci;
  return is_long ? of.full * less / of.ci : less;
}

// Returns the value of an environment variable, which must be a decimal number up to `max`.
inline std::optional<std::uint64_t> number_from_environment(const char* name, std::uint64_t max) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view value = text;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || number > max) {
    throw std::invalid_argument(std::string(name) + "='" + text +
                                "': expected a number from 0 to " + std::to_string(max));
  }
  return number;
}

// Returns whether the full counts run.
inline bool is_long_run() {
  return number_from_environment("SLUICE_LONG", 1) == 1;
}

inline std::optional<std::uint64_t> seed_from_environment() {
  return number_from_environment("SLUICE_SEED", UINT64_MAX);
}

// Returns and prints how many `units` ("kills") the suite runs.
inline std::uint64_t effort(const std::string& suite, const char* units, const effort_counts& of) {
  const bool is_long = is_long_run();
  const std::uint64_t count = count_of(of, is_long, is_sanitized);
  const std::uint64_t full = count_of(of, true, is_sanitized);
  const std::string rest = is_long         ? " (--long)"
                           : full == count ? ""
                                           : " (of " + std::to_string(full) + " with --long)";
  std::printf("[  EFFORT  ] %s: %llu %s%s\n", suite.c_str(), static_cast<unsigned long long>(count),
              units, rest.c_str());
  std::fflush(stdout);
  return count;
}

// Returns and prints SLUICE_SEED, or else `usual`, or else a fresh number in a long run and 1 in
// others: CI uses fixed seeds.
inline std::uint64_t seed(const std::string& suite,
                          std::optional<std::uint64_t> usual = std::nullopt) {
  std::optional<std::uint64_t> value = seed_from_environment();
  if (!value) value = usual;
  if (!value) value = is_long_run() ? std::random_device{}() : 1;
  std::printf("[   SEED   ] %s: SLUICE_SEED=%llu\n", suite.c_str(),
              static_cast<unsigned long long>(*value));
  std::fflush(stdout);
  return *value;
}

// The seeds of a suite that runs one round per seed: from 1 to the count of effort(), or only
// SLUICE_SEED. A failed round must print its own seed as SLUICE_SEED=n.
struct seed_range {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
};

inline seed_range seeds(const std::string& suite, const effort_counts& of) {
  if (seed_from_environment()) return {seed(suite), 1};
  return {1, effort(suite, "seeds, from 1", of)};
}

}  // namespace sluice::testing
