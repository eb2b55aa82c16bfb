// What a full mailbox drops when its lanes differ: never something for less.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "sluice/actor/actor_system.hpp"
#include "sluice/executor/manual_executor.hpp"

namespace sluice::overflow_lanes_test {
namespace {

template <lane In>
struct word {
  static constexpr lane in_lane = In;
  std::string text;
};
using urgent_word = word<lane::urgent>;
using normal_word = word<lane::normal>;
using low_word = word<lane::low>;

using heard = std::vector<std::string>;

class listener : public actor<listener, urgent_word, normal_word, low_word> {
 public:
  explicit listener(heard* to) : heard_(to) {}
  void on(urgent_word w) { heard_->push_back(std::move(w.text)); }
  void on(normal_word w) { heard_->push_back(std::move(w.text)); }
  void on(low_word w) { heard_->push_back(std::move(w.text)); }

 private:
  heard* heard_;
};

status send_in(lane in, const ref<listener>& to, std::string text) {
  switch (in) {
    case lane::urgent:
      return to.send(urgent_word{std::move(text)});
    case lane::normal:
      return to.send(normal_word{std::move(text)});
    case lane::low:
      break;
  }
  return to.send(low_word{std::move(text)});
}

class overflow_lanes_test
    : public ::testing::TestWithParam<std::tuple<sluice::overflow, lane, lane>> {
 protected:
  ref<listener> make(std::uint32_t capacity) {
    actor_options o;
    o.mailbox.capacity = capacity;
    o.mailbox.overflow = std::get<0>(GetParam());
    return system.spawn_with<listener>(o, &said);
  }
  ~overflow_lanes_test() override {
    system.stop();
    while (!system.join(deadline::after(std::chrono::nanoseconds(0)))) later.run_all();
  }

  heard said;
  manual_executor later;
  actor_system system{later};
};

TEST_P(overflow_lanes_test, AMessageTakesThePlaceOfNoneThatIsWorthMore) {
  const auto [policy, waits, comes] = GetParam();
  const auto to = make(2);
  ASSERT_TRUE(send_in(waits, to, "first"));
  ASSERT_TRUE(send_in(waits, to, "second"));
  const status how = send_in(comes, to, "new");
  later.run_all();
  if (comes > waits) {  // urgent is the least
    EXPECT_EQ(how, status::dropped);
    EXPECT_EQ(said, (heard{"first", "second"}));
  } else {
    EXPECT_EQ(how, status::ok);
    const std::string kept = policy == overflow::latest ? "first" : "second";
    EXPECT_EQ(said, comes < waits ? (heard{"new", kept}) : (heard{kept, "new"}));
  }
  EXPECT_EQ(system.stats().dropped, 1U);
}

TEST_P(overflow_lanes_test, TheLowestLaneOfTwoLosesFirst) {
  const auto [policy, one, other] = GetParam();
  if (one == other) return;  // there is no lower one
  const auto to = make(2);
  ASSERT_TRUE(send_in(one, to, one > other ? "low" : "high"));
  ASSERT_TRUE(send_in(other, to, one > other ? "high" : "low"));
  ASSERT_TRUE(to.send(urgent_word{"new"}));
  later.run_all();
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(std::ranges::count(said, "low"), 0);
}

INSTANTIATE_TEST_SUITE_P(
    all, overflow_lanes_test,
    ::testing::Combine(::testing::Values(overflow::drop_oldest, overflow::latest),
                       ::testing::Values(lane::urgent, lane::normal, lane::low),
                       ::testing::Values(lane::urgent, lane::normal, lane::low)));

}  // namespace
}  // namespace sluice::overflow_lanes_test
