// Drops of a full mailbox with several lanes: never a message for one of a lower lane.
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

using lines = std::vector<std::string>;

class listener : public actor<listener, urgent_word, normal_word, low_word> {
 public:
  explicit listener(lines* handled) : handled_(handled) {}
  void on(urgent_word w) { handled_->push_back(std::move(w.text)); }
  void on(normal_word w) { handled_->push_back(std::move(w.text)); }
  void on(low_word w) { handled_->push_back(std::move(w.text)); }

 private:
  lines* handled_;
};

status send_in(lane in, const ref<listener>& receiver, std::string text) {
  switch (in) {
    case lane::urgent:
      return receiver.send(urgent_word{std::move(text)});
    case lane::normal:
      return receiver.send(normal_word{std::move(text)});
    case lane::low:
      break;
  }
  return receiver.send(low_word{std::move(text)});
}

class overflow_lanes_test
    : public ::testing::TestWithParam<std::tuple<sluice::overflow, lane, lane>> {
 protected:
  ref<listener> make(std::uint32_t capacity) {
    actor_options o;
    o.mailbox.capacity = capacity;
    o.mailbox.overflow = std::get<0>(GetParam());
    return system.spawn_with<listener>(o, &handled);
  }
  ~overflow_lanes_test() override {
    system.stop();
    while (!system.join(deadline::after(std::chrono::nanoseconds(0)))) later.run_all();
  }

  lines handled;
  manual_executor later;
  actor_system system{later};
};

TEST_P(overflow_lanes_test, AMessageNeverReplacesOneOfAHigherLane) {
  const auto [policy, waits, comes] = GetParam();
  const auto receiver = make(2);
  ASSERT_TRUE(send_in(waits, receiver, "first"));
  ASSERT_TRUE(send_in(waits, receiver, "second"));
  const status outcome = send_in(comes, receiver, "new");
  later.run_all();
  if (comes > waits) {  // urgent has the smallest value
    EXPECT_EQ(outcome, status::dropped);
    EXPECT_EQ(handled, (lines{"first", "second"}));
  } else {
    EXPECT_EQ(outcome, status::ok);
    const std::string kept = policy == overflow::latest ? "first" : "second";
    EXPECT_EQ(handled, comes < waits ? (lines{"new", kept}) : (lines{kept, "new"}));
  }
  EXPECT_EQ(system.stats().dropped, 1U);
}

TEST_P(overflow_lanes_test, TheLowestLaneOfTwoLosesFirst) {
  const auto [policy, one, other] = GetParam();
  if (one == other) return;  // the lanes are equal
  const auto receiver = make(2);
  ASSERT_TRUE(send_in(one, receiver, one > other ? "low" : "high"));
  ASSERT_TRUE(send_in(other, receiver, one > other ? "high" : "low"));
  ASSERT_TRUE(receiver.send(urgent_word{"new"}));
  later.run_all();
  ASSERT_EQ(handled.size(), 2U);
  EXPECT_EQ(std::ranges::count(handled, "low"), 0);
}

INSTANTIATE_TEST_SUITE_P(
    all, overflow_lanes_test,
    ::testing::Combine(::testing::Values(overflow::drop_oldest, overflow::latest),
                       ::testing::Values(lane::urgent, lane::normal, lane::low),
                       ::testing::Values(lane::urgent, lane::normal, lane::low)));

}  // namespace
}  // namespace sluice::overflow_lanes_test
