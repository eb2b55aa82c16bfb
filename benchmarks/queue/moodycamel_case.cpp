// `moodycamel`: BlockingConcurrentQueue bounded by a LightweightSemaphore; where there is one
// producer and one consumer, BlockingReaderWriterCircularBuffer.
#include "benchmarks/peers/moodycamel_queue.hpp"
#include "benchmarks/queue/hand_over.hpp"

namespace sluice::bench {
namespace {

const registration added{[](suite& s) {
  add_many_to_many<moodycamel_queue>(s, "moodycamel");
  add_one_to_one<moodycamel_ring>(s, "moodycamel");
}};

}  // namespace
}  // namespace sluice::bench
