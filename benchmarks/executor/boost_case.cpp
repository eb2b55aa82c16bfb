// `boost`: boost::asio::thread_pool.
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include <utility>

#include "benchmarks/executor/workloads.hpp"

namespace sluice::bench {
namespace {

class boost_pool {
 public:
  explicit boost_pool(unsigned threads) : pool_(threads) {}
  template <class F>
  void submit(F&& f) {
    boost::asio::post(pool_, std::forward<F>(f));
  }
  void finish() { pool_.join(); }

 private:
  boost::asio::thread_pool pool_;
};

const registration added{[](suite& s) {
  add_pool<boost_pool>(s, "boost");
  s.add("idle_cpu_ms", "boost", idle_pool_cpu_ms<boost_pool>);
}};

}  // namespace
}  // namespace sluice::bench
