// The makers of a result in wait reports, also in a cycle: an and_then forms one for a moment
// before it detects that it waits for itself.
#include "sluice/future/detail/cancel_node.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace sluice::cancel_node_test {
namespace {

using detail::cancel_node;
using detail::cancel_ref;

class node final : public cancel_node {
 public:
  node() noexcept : cancel_node(1) {}
  cancel_ref ref() noexcept {
    add_reference();
    return cancel_ref::adopt(this);
  }
  std::vector<cancel_node*> sources{};

 private:
  void destroy() noexcept override {}  // owned by the test
  void each_source(visitor& v) override {
    for (cancel_node* const each : sources) v.visit(*each);
  }
};

class cancel_node_test : public ::testing::Test {
 protected:
  // Returns the number of makers of a node's result.
  std::size_t count_makers(node& of) {
    return of.makers({&of, "a future", "get"}, found.data(), capacity);
  }

  static constexpr std::size_t capacity = 4;
  std::array<wait_report::subject, capacity> found{};
};

TEST_F(cancel_node_test, AWalkThroughACycleEnds) {
  node first;
  node second;
  first.wait_for(second.ref());
  second.wait_for(first.ref());
  EXPECT_EQ(count_makers(first), 1U);
  EXPECT_EQ(found[0].by, wait_report::served_by::unknown);
  EXPECT_EQ(found[0].object, &first);
  EXPECT_EQ(count_makers(second), 1U);
  first.wait_for({});
  second.wait_for({});
}

TEST_F(cancel_node_test, AWalkFromANodeThatWaitsForItselfEnds) {
  node self;
  self.wait_for(self.ref());
  EXPECT_EQ(count_makers(self), 1U);
  EXPECT_EQ(found[0].by, wait_report::served_by::unknown);
  self.wait_for({});
}

TEST_F(cancel_node_test, ALookThroughAFanInThatIsPartOfACircleEndsAndFindsTheOthers) {
  node all;
  node part;
  node other;
  all.sources = {&part, &other};
  part.wait_for(all.ref());
  other.made_by_next({}, wait_report::party::this_thread());
  EXPECT_EQ(count_makers(all), 2U);
  EXPECT_EQ(found[0].by, wait_report::served_by::unknown);
  EXPECT_EQ(found[1].by, wait_report::served_by::one);
  EXPECT_EQ(found[1].target, wait_report::party::this_thread());
  part.wait_for({});
}

// Each level leads to the next by several paths: without a bound the walk would visit every path.
TEST_F(cancel_node_test, AWalkOverVeryManyPathsEndsWhenTheOutputIsFull) {
  std::vector<node> levels(14);
  for (std::size_t i = 0; i + 1 < levels.size(); ++i) {
    levels[i].sources.assign(8, &levels[i + 1]);
  }
  EXPECT_EQ(count_makers(levels.front()), capacity + 1);
}

TEST_F(cancel_node_test, ALookGoesSoFarAndNoFurther) {
  std::vector<node> chain(1000);
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) chain[i].wait_for(chain[i + 1].ref());
  chain.back().made_by_next({}, wait_report::party::this_thread());
  EXPECT_EQ(count_makers(chain.front()), 1U);
  EXPECT_EQ(found[0].by, wait_report::served_by::unknown);
  EXPECT_EQ(count_makers(chain[chain.size() - 10]), 1U);
  EXPECT_EQ(found[0].target, wait_report::party::this_thread());
  for (auto& each : chain) each.wait_for({});
}

}  // namespace
}  // namespace sluice::cancel_node_test
