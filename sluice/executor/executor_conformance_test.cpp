// inline_executor and manual_executor pass the suite of every executor.

#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/testing/executor_suite.hpp"

namespace sluice::testing::executor_conformance_test {

struct inline_kind {
  static constexpr const char* name = "inline_executor";
  static constexpr std::size_t workers = 1;
  static constexpr bool is_serial = false;  // every thread runs its own submissions
  static constexpr bool keeps_order = true;
  static constexpr bool is_bounded = false;
  explicit inline_kind(executor_setup&&) {}
  auto& get() { return here; }

  inline_executor here;
};

struct manual_kind {
  static constexpr const char* name = "manual_executor";
  static constexpr std::size_t workers = 0;
  static constexpr bool is_serial = true;  // the tests step it from one thread
  static constexpr bool keeps_order = true;
  static constexpr bool is_bounded = true;
  explicit manual_kind(executor_setup&& s)
      : later({.capacity = s.capacity,
               .overflow = s.overflow,
               .name = std::move(s.name),
               .on_drop = std::move(s.on_drop),
               .on_error = std::move(s.on_error)}) {}
  auto& get() { return later; }
  bool step() { return later.run_one(); }

  manual_executor later;
};

INSTANTIATE_TYPED_TEST_SUITE_P(inline_executor, executor_suite, inline_kind);
INSTANTIATE_TYPED_TEST_SUITE_P(inline_executor, executor_suite_DeathTest, inline_kind);
INSTANTIATE_TYPED_TEST_SUITE_P(manual_executor, executor_suite, manual_kind);
INSTANTIATE_TYPED_TEST_SUITE_P(manual_executor, executor_suite_DeathTest, manual_kind);
INSTANTIATE_TYPED_TEST_SUITE_P(manual_executor, bounded_executor_suite, manual_kind);
INSTANTIATE_TYPED_TEST_SUITE_P(manual_executor, bounded_executor_suite_DeathTest, manual_kind);

}  // namespace sluice::testing::executor_conformance_test
