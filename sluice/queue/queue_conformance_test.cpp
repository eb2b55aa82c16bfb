#include "sluice/queue/testing/conformance.hpp"

namespace sluice::testing::queue_conformance_test {

INSTANTIATE_TYPED_TEST_SUITE_P(Queue, QueueConformance, queue_kinds, kind_name);

}  // namespace sluice::testing::queue_conformance_test
