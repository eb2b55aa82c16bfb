#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "examples/chat/lobby.hpp"
#include "examples/chat/room.hpp"
#include "examples/chat/terminal.hpp"
#include "sluice/actor/actor_error.hpp"
#include "sluice/actor/actor_test_kit.hpp"
#include "sluice/executor/manual_executor.hpp"

namespace chat::chat_test {
namespace {

using names = std::vector<std::string>;

class chat_test : public ::testing::Test {
 protected:
  void SetUp() override {
    lobby_ = kit_.spawn_with<lobby>(lobby::options());
    auto opened = lobby_.ask(open_room{"garden"});
    kit_.settle();
    room_ = opened.get();
  }

  bool enters(const std::string& name, terminal& at) {
    auto entered = lobby_.ask(enter{name, &at, room_});
    kit_.settle();
    return entered.get();
  }
  void says(const std::string& name, const std::string& text) {
    ASSERT_TRUE(room_.send(say{name, text}));
    kit_.settle();
  }
  names who() {
    auto asked = room_.ask(who_is_there{});
    kit_.settle();
    return asked.get();
  }

  terminal ada_;
  terminal bob_;
  sluice::actor_test_kit kit_;
  sluice::ref<lobby> lobby_;
  sluice::ref<room> room_;
};

TEST_F(chat_test, ALineReachesEverySession) {
  ASSERT_TRUE(enters("ada", ada_));
  ASSERT_TRUE(enters("bob", bob_));
  says("ada", "hello");
  says("eve", "I am not even here");
  EXPECT_EQ(ada_.lines(), (names{"room: bob is here", "ada: hello"}));
  EXPECT_EQ(bob_.lines(), (names{"ada: hello"}));
}

TEST_F(chat_test, ANameIsTakenOnce) {
  ASSERT_TRUE(enters("ada", ada_));
  const auto live = kit_.system().stats().live;
  EXPECT_FALSE(enters("ada", bob_));
  EXPECT_EQ(who(), names{"ada"});
  EXPECT_EQ(kit_.system().stats().live, live) << "the session that was turned away is still there";
}

TEST_F(chat_test, AJoinOfAClosedRoomFailsAndLeavesNoSession) {
  room_.close();
  kit_.settle();
  auto entered = lobby_.ask(enter{"ada", &ada_, room_});
  kit_.settle();
  EXPECT_THROW((void)entered.get(), sluice::actor_error);
  EXPECT_EQ(kit_.system().stats().live, 1U) << "the lobby alone";
}

TEST_F(chat_test, AJoinOfAFullRoomFailsAndLeavesNoSession) {
  sluice::manual_executor not_now;
  const auto busy = kit_.spawn_with<room>(
      {.mailbox = {.capacity = 1, .overflow = sluice::overflow::reject}, .on = &not_now});
  ASSERT_TRUE(busy.send(say{"ada", "is anybody there?"}));
  const auto live = kit_.system().stats().live;
  auto entered = lobby_.ask(enter{"ada", &ada_, busy});
  kit_.settle();
  EXPECT_THROW((void)entered.get(), sluice::actor_error);
  EXPECT_EQ(kit_.system().stats().live, live);
  busy.stop();
  not_now.run_all();
}

TEST_F(chat_test, AJoinWhileTheRoomStopsLeavesNoSession) {
  sluice::manual_executor not_now;
  const auto busy = kit_.spawn_with<room>({.on = &not_now});
  auto entered = lobby_.ask(enter{"ada", &ada_, busy});
  kit_.settle();
  busy.stop();
  not_now.run_all();
  kit_.settle();
  EXPECT_THROW((void)entered.get(), sluice::actor_error);
  EXPECT_EQ(kit_.system().stats().live, 2U) << "the lobby, and the garden";
}

TEST_F(chat_test, ASlowSessionMissesLinesAndDelaysNoOther) {
  ASSERT_TRUE(enters("ada", ada_));
  ASSERT_TRUE(enters("bob", bob_));
  ada_.look_away();
  for (int i = 1; i <= 20; ++i) says("bob", std::to_string(i));
  EXPECT_EQ(bob_.lines().size(), 20U);
  EXPECT_EQ(who(), (names{"ada", "bob"}));

  ada_.look();
  kit_.settle();
  // The line that was being shown, and the last eight.
  EXPECT_EQ(ada_.lines(), (names{"room: bob is here", "bob: 1", "bob: 13", "bob: 14", "bob: 15",
                                 "bob: 16", "bob: 17", "bob: 18", "bob: 19", "bob: 20"}));
  EXPECT_EQ(kit_.system().stats().dropped, 11U);
}

TEST_F(chat_test, AFailedSessionIsRestartedAndStaysInTheRoom) {
  ASSERT_TRUE(enters("ada", ada_));
  ada_.stumble();
  says("ada", "lost");
  says("ada", "seen");
  EXPECT_EQ(ada_.lines(), names{"ada: seen"});
  EXPECT_EQ(who(), names{"ada"});
  EXPECT_EQ(kit_.system().stats().restarts, 1U);
}

TEST_F(chat_test, ASessionThatEndsLeavesTheRoom) {
  ASSERT_TRUE(enters("ada", ada_));
  ASSERT_TRUE(enters("bob", bob_));
  ada_.pull_the_plug();
  says("bob", "ada?");
  EXPECT_EQ(bob_.lines(), (names{"bob: ada?", "room: ada is gone"}));
  EXPECT_EQ(who(), names{"bob"});
  EXPECT_EQ(kit_.system().stats().restarts, 0U);
}

TEST_F(chat_test, ALeftSessionReceivesNothing) {
  ASSERT_TRUE(enters("ada", ada_));
  ASSERT_TRUE(enters("bob", bob_));
  ASSERT_TRUE(room_.send(leave{"ada"}));
  says("bob", "alone at last");
  EXPECT_EQ(ada_.lines(), names{"room: bob is here"});
  EXPECT_EQ(bob_.lines(), (names{"room: ada has left", "bob: alone at last"}));
}

TEST_F(chat_test, TheEndOfAnEarlierSessionDoesNotTakeOutALaterOne) {
  ASSERT_TRUE(enters("ada", ada_));
  ASSERT_TRUE(room_.send(leave{"ada"}));
  EXPECT_TRUE(enters("ada", ada_));  // before the end of the first one is reported to the room
  EXPECT_EQ(who(), names{"ada"});
}

TEST_F(chat_test, AClosingRoomAnnouncesItAndEndsEverySession) {
  ASSERT_TRUE(enters("ada", ada_));
  says("ada", "late already");
  ASSERT_TRUE(room_.send(say{"ada", "bye"}));
  room_.close();
  kit_.settle();
  EXPECT_EQ(ada_.lines(), (names{"ada: late already", "ada: bye", "room: good night"}));
  EXPECT_TRUE(room_.is_terminated());
  EXPECT_EQ(kit_.system().stats().live, 1U) << "all but the lobby have ended";
  EXPECT_EQ(room_.send(say{"ada", "hello?"}), sluice::status::closed);
}

}  // namespace
}  // namespace chat::chat_test
