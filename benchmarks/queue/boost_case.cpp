// `boost`: boost::concurrent::sync_bounded_queue.
#include "benchmarks/peers/boost_queue.hpp"
#include "benchmarks/queue/hand_over.hpp"

namespace sluice::bench {
namespace {

const registration added{[](suite& s) {
  add_many_to_many<boost_queue>(s, "boost");
  add_one_to_one<boost_queue>(s, "boost");
}};

}  // namespace
}  // namespace sluice::bench
