// thread_pool passes the suite of every executor: with one thread, with several, elastic, by
// priority, and while it sizes itself.

#include "sluice/base/random.hpp"
#include "sluice/executor/testing/executor_suite.hpp"
#include "sluice/executor/thread_pool.hpp"

namespace sluice::testing::thread_pool_conformance_test {

inline thread_pool_options from(executor_setup&& s, thread_pool_options o) {
  o.capacity = s.capacity;
  o.overflow = s.overflow;
  o.name = std::move(s.name);
  o.on_drop = std::move(s.on_drop);
  o.on_error = std::move(s.on_error);
  return o;
}

template <std::size_t Workers, bool KeepsOrder>
struct pool_kind {
  static constexpr std::size_t workers = Workers;
  static constexpr bool is_serial = Workers == 1;
  static constexpr bool keeps_order = KeepsOrder;
  static constexpr bool is_bounded = true;

  explicit pool_kind(thread_pool_options o) : pool(std::move(o)) {}
  auto& get() { return pool; }
  void finish() { pool.drain(); }

  thread_pool pool;
};

struct one_thread_kind : pool_kind<1, true> {
  static constexpr const char* name = "one thread";
  explicit one_thread_kind(executor_setup&& s) : pool_kind(from(std::move(s), {.core = 1})) {}
};
struct four_threads_kind : pool_kind<4, false> {
  static constexpr const char* name = "four threads";
  explicit four_threads_kind(executor_setup&& s) : pool_kind(from(std::move(s), {.core = 4})) {}
};
struct elastic_kind : pool_kind<4, false> {
  static constexpr const char* name = "elastic";
  explicit elastic_kind(executor_setup&& s)
      : pool_kind(from(std::move(s),
                       {.core = 1, .max = 4, .keep_alive = std::chrono::microseconds(50)})) {}
};
struct by_priority_kind : pool_kind<1, true> {  // equal priorities keep their order
  static constexpr const char* name = "by priority";
  explicit by_priority_kind(executor_setup&& s)
      : pool_kind(from(std::move(s),
                       {.core = 1, .by_priority = true, .ageing = std::chrono::seconds(1)})) {}
};
// Random measurements of waiting and computing, so the limit of threads changes all the time.
struct sizing_kind : pool_kind<1, false> {
  static constexpr const char* name = "sizing itself";
  static constexpr bool is_serial = false;
  static seam::thread_times by_chance() {
    static thread_local seam::thread_times times;
    times.wall += std::chrono::milliseconds(1);
    if (thread_random().below(2) == 0) times.computing += std::chrono::milliseconds(1);
    return times;
  }
  explicit sizing_kind(executor_setup&& s)
      : pool_kind(from(std::move(s),
                       {.core = 1,
                        .max = 4,
                        .sizing = sizing::adaptive{.cores = 1, .window = 1, .measure = by_chance},
                        .time_every = 1})) {}
};

using pools = ::testing::Types<one_thread_kind, four_threads_kind, elastic_kind, by_priority_kind>;
INSTANTIATE_TYPED_TEST_SUITE_P(thread_pool, executor_suite, pools);
INSTANTIATE_TYPED_TEST_SUITE_P(thread_pool, executor_suite_DeathTest, one_thread_kind);
INSTANTIATE_TYPED_TEST_SUITE_P(thread_pool, bounded_executor_suite, pools);
INSTANTIATE_TYPED_TEST_SUITE_P(thread_pool, bounded_executor_suite_DeathTest, one_thread_kind);
// Its number of threads is unknown, so tests that block every thread do not apply.
INSTANTIATE_TYPED_TEST_SUITE_P(sizing_thread_pool, executor_suite, sizing_kind);

}  // namespace sluice::testing::thread_pool_conformance_test
