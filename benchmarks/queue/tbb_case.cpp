// `tbb`: tbb::concurrent_bounded_queue.
#include "benchmarks/peers/tbb_queue.hpp"
#include "benchmarks/queue/hand_over.hpp"

namespace sluice::bench {
namespace {

const registration added{[](suite& s) {
  add_many_to_many<tbb_queue>(s, "tbb");
  add_one_to_one<tbb_queue>(s, "tbb");
}};

}  // namespace
}  // namespace sluice::bench
