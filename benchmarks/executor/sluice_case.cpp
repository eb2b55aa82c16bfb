// `sluice`: thread_pool with its defaults. `sluice_stealing`: work_stealing_pool with its own.
#include <cstddef>
#include <utility>

#include "benchmarks/executor/workloads.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"

namespace sluice::bench {
namespace {

template <class Pool>
class sluice_pool {
 public:
  explicit sluice_pool(std::size_t threads) : pool_(options_for(threads)) {}
  template <class F>
  void submit(F&& f) {
    if (!pool_.submit(std::forward<F>(f))) fail("a pool rejected a function");
  }
  void finish() { pool_.drain(); }

 private:
  static typename Pool::options options_for(std::size_t threads) {
    if constexpr (requires(typename Pool::options o) { o.core; }) {
      return {.core = threads};
    } else {
      return {.threads = threads};
    }
  }
  Pool pool_;
};

const registration added{[](suite& s) {
  add_pool<sluice_pool<thread_pool>>(s, "sluice");
  add_pool<sluice_pool<work_stealing_pool>>(s, "sluice_stealing");
  s.add("idle_cpu_ms", "sluice", idle_pool_cpu_ms<sluice_pool<thread_pool>>);
  s.add("idle_cpu_ms", "sluice_stealing", idle_pool_cpu_ms<sluice_pool<work_stealing_pool>>);
}};

}  // namespace
}  // namespace sluice::bench
