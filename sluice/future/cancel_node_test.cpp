// Who is to make a result, as whoever looks finds it: also while what is looked at goes round in a
// circle, which an and_then makes for a moment before it finds that it waits for itself.
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
  void destroy() noexcept override {}  // it is the test's
  void each_source(visitor& v) override {
    for (cancel_node* const each : sources) v.visit(*each);
  }
};

class cancel_node_test : public ::testing::Test {
 protected:
  // So many are to make the result of this one.
  std::size_t look_at(node& of) { return of.makers({&of, "a future", "get"}, found.data(), room); }

  static constexpr std::size_t room = 4;
  std::array<watch::subject, room> found{};
};

TEST_F(cancel_node_test, ALookThatComesRoundToItsBeginningEnds) {
  node first;
  node second;
  first.wait_for(second.ref());
  second.wait_for(first.ref());
  EXPECT_EQ(look_at(first), 1U);
  EXPECT_EQ(found[0].by, watch::served_by::unknown);
  EXPECT_EQ(found[0].object, &first);
  EXPECT_EQ(look_at(second), 1U);
  first.wait_for({});
  second.wait_for({});
}

TEST_F(cancel_node_test, ALookAtOneThatWaitsForItselfEnds) {
  node self;
  self.wait_for(self.ref());
  EXPECT_EQ(look_at(self), 1U);
  EXPECT_EQ(found[0].by, watch::served_by::unknown);
  self.wait_for({});
}

TEST_F(cancel_node_test, ALookThroughAFanInThatIsPartOfACircleEndsAndFindsTheOthers) {
  node all;
  node part;
  node other;
  all.sources = {&part, &other};
  part.wait_for(all.ref());
  other.made_by_next({}, watch::party::this_thread());
  EXPECT_EQ(look_at(all), 2U);
  EXPECT_EQ(found[0].by, watch::served_by::unknown);
  EXPECT_EQ(found[1].by, watch::served_by::one);
  EXPECT_EQ(found[1].whom, watch::party::this_thread());
  part.wait_for({});
}

// Each of so many levels leads to the next by several ways: without a bound a look would take all.
TEST_F(cancel_node_test, ALookThroughVeryManyWaysEndsWithWhatThereIsRoomFor) {
  std::vector<node> levels(14);
  for (std::size_t i = 0; i + 1 < levels.size(); ++i) {
    levels[i].sources.assign(8, &levels[i + 1]);
  }
  EXPECT_EQ(look_at(levels.front()), room + 1);
}

TEST_F(cancel_node_test, ALookGoesSoFarAndNoFurther) {
  std::vector<node> chain(1000);
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) chain[i].wait_for(chain[i + 1].ref());
  chain.back().made_by_next({}, watch::party::this_thread());
  EXPECT_EQ(look_at(chain.front()), 1U);
  EXPECT_EQ(found[0].by, watch::served_by::unknown);
  EXPECT_EQ(look_at(chain[chain.size() - 10]), 1U);
  EXPECT_EQ(found[0].whom, watch::party::this_thread());
  for (auto& each : chain) each.wait_for({});
}

}  // namespace
}  // namespace sluice::cancel_node_test
