// A strand passes the suite of every executor, on any underlying executor.

#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/strand.hpp"
#include "sluice/executor/testing/executor_suite.hpp"
#include "sluice/executor/thread_pool.hpp"

namespace sluice::testing::strand_conformance_test {

// Turns are short, so that the tests see many of them.
inline strand_options strand_setup(executor_setup&& s) {
  return {.capacity = s.capacity,
          .overflow = s.overflow,
          .per_turn = 3,
          .name = std::move(s.name),
          .on_drop = std::move(s.on_drop),
          .on_error = std::move(s.on_error)};
}

struct strand_kind {
  static constexpr bool is_serial = true;
  static constexpr bool keeps_order = true;
  static constexpr bool is_bounded = true;
  static constexpr bool refuses_caller_runs = true;
};

struct strand_on_manual : strand_kind {
  static constexpr const char* name = "strand on manual_executor";
  static constexpr std::size_t workers = 0;
  explicit strand_on_manual(executor_setup&& s) : serial(later, strand_setup(std::move(s))) {}
  ~strand_on_manual() {
    serial.close();
    later.run_all();
  }
  auto& get() { return serial; }
  bool step() { return later.run_one(); }

  manual_executor later;
  strand serial;
};

struct strand_on_pool : strand_kind {
  static constexpr const char* name = "strand on thread_pool";
  static constexpr std::size_t workers = 1;
  explicit strand_on_pool(executor_setup&& s) : serial(pool, strand_setup(std::move(s))) {}
  auto& get() { return serial; }

  thread_pool pool{3};
  strand serial;
};

struct strand_on_inline : strand_kind {
  static constexpr const char* name = "strand on inline_executor";
  static constexpr std::size_t workers = 1;
  explicit strand_on_inline(executor_setup&& s) : serial(here, strand_setup(std::move(s))) {}
  auto& get() { return serial; }

  inline_executor here;
  strand serial;
};

using strand_kinds = ::testing::Types<strand_on_manual, strand_on_pool, strand_on_inline>;

INSTANTIATE_TYPED_TEST_SUITE_P(strand, executor_suite, strand_kinds);
INSTANTIATE_TYPED_TEST_SUITE_P(strand, executor_suite_DeathTest, strand_kinds);
INSTANTIATE_TYPED_TEST_SUITE_P(strand, bounded_executor_suite, strand_kinds);
INSTANTIATE_TYPED_TEST_SUITE_P(strand, bounded_executor_suite_DeathTest, strand_kinds);

}  // namespace sluice::testing::strand_conformance_test
