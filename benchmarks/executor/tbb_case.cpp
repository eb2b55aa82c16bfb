// `tbb`: tbb::task_group. The submitting thread runs tasks while it waits.
#include <tbb/task_group.h>

#include <utility>

#include "benchmarks/executor/workloads.hpp"

namespace sluice::bench {
namespace {

class tbb_pool {
 public:
  explicit tbb_pool(unsigned) {}  // TBB has one thread for each core
  template <class F>
  void submit(F&& f) {
    tasks_.run(std::forward<F>(f));
  }
  void finish() { tasks_.wait(); }

 private:
  tbb::task_group tasks_;
};

const registration added{[](suite& s) { add_pool<tbb_pool>(s, "tbb"); }};

}  // namespace
}  // namespace sluice::bench
