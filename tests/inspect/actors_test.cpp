#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "sluice/actor/actor_watch.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/inspect/deadlock.hpp"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

// Two actors as a system would tell of them, each in the middle of a message.
class watched_actors : public ::testing::Test {
 protected:
  watched_actors() {
    watch_.spawned(1, 0, "desk", "desk_actor");
    watch_.spawned(2, 0, "store", "store_actor");
    watch_.begun(1, "order", 0);
    watch_.begun(2, "take", 0);
  }

  manual_clock time_;
  actor_watch watch_{{.period = 0s, .time = &time_}};
};

TEST_F(watched_actors, AreListedWithWhomTheyWaitFor) {
  watch_.waits(1, 2, actor_wait::answer, 7);
  time_.advance(3s);
  const auto waits = inspect::waits();
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].who.text(), "actor 1 (desk)");
  EXPECT_EQ(waits[0].time, 3s);
  EXPECT_EQ(waits[0].on.at(0).wants, "hear from");
  EXPECT_EQ(waits[0].on.at(0).servers.at(0).who.text(), "actor 2 (store)");
  EXPECT_TRUE(inspect::find_deadlocks().empty());
  watch_.waits_no_more(1, 2, actor_wait::answer, 7);
  EXPECT_TRUE(inspect::waits().empty());
}

TEST_F(watched_actors, ThatWaitForEachOtherAreADeadlock) {
  watch_.waits(1, 2, actor_wait::answer, 7);
  watch_.waits(2, 1, actor_wait::room, 8);
  const auto found = inspect::find_deadlocks();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].steps.size(), 2U);
  EXPECT_FALSE(found[0].ends_by_itself());
  EXPECT_NE(found[0].text().find("actor 2 (store) waits to send to actor desk"), std::string::npos)
      << found[0].text();
}

TEST_F(watched_actors, AreNotListedByAWatchThatIsGone) {
  {
    actor_watch other({.period = 0s, .time = &time_});
    other.spawned(5, 0, "brief", "brief_actor");
    other.begun(5, "x", 0);
    other.waits(5, 1, actor_wait::answer, 9);
    EXPECT_EQ(inspect::waits().size(), 1U);
  }
  EXPECT_TRUE(inspect::waits().empty());
}

}  // namespace
}  // namespace sluice::testing
