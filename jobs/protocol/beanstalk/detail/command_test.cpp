#include "jobs/protocol/beanstalk/detail/command.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sluice::jobs::beanstalk::command_test {
namespace {

using fault = command::fault;

TEST(command_test, EveryVerbIsKnownByItsName) {
  for (std::size_t i = 0; i < verb_count; ++i) {
    const auto v = static_cast<verb>(i);
    const command bare = parse_command(to_string(v));
    EXPECT_EQ(bare.action, v);
    EXPECT_NE(bare.problem, fault::unknown_command) << to_string(v);
  }
}

TEST(command_test, APutHasFourNumbers) {
  const command c = parse_command("put 1 2 3 4");
  EXPECT_EQ(c.problem, fault::none);
  EXPECT_EQ(c.action, verb::put);
  EXPECT_EQ(c.pri, 1U);
  EXPECT_EQ(c.delay, 2U);
  EXPECT_EQ(c.ttr, 3U);
  EXPECT_EQ(c.bytes, 4U);
}

TEST(command_test, AReleaseHasAnIdAPriorityAndADelay) {
  const command c = parse_command("release 18446744073709551615 4294967295 30");
  EXPECT_EQ(c.problem, fault::none);
  EXPECT_EQ(c.number, 18446744073709551615U);
  EXPECT_EQ(c.pri, 4294967295U);
  EXPECT_EQ(c.delay, 30U);
}

TEST(command_test, ABuryHasAnIdAndAPriority) {
  const command c = parse_command("bury 7 8");
  EXPECT_EQ(c.problem, fault::none);
  EXPECT_EQ(c.number, 7U);
  EXPECT_EQ(c.pri, 8U);
}

TEST(command_test, APauseHasATubeAndADelay) {
  const command c = parse_command("pause-tube a/b 60");
  EXPECT_EQ(c.problem, fault::none);
  EXPECT_EQ(c.tube, "a/b");
  EXPECT_EQ(c.delay, 60U);
  const command spaced = parse_command("pause-tube   a/b  60");
  EXPECT_EQ(spaced.problem, fault::none);
  EXPECT_EQ(spaced.tube, "a/b");
  EXPECT_EQ(spaced.delay, 60U);
}

TEST(command_test, OnlyATimeoutMayBeBelowZero) {
  const command c = parse_command("reserve-with-timeout -5");
  EXPECT_EQ(c.problem, fault::none);
  EXPECT_TRUE(c.is_endless);
  EXPECT_FALSE(parse_command("reserve-with-timeout 5").is_endless);
  for (const char* const wrong : {"reserve-with-timeout -", "reserve-with-timeout --1",
                                  "reserve-with-timeout", "reserve-with-timeout 1 2", "delete -1",
                                  "kick -1", "touch -1", "bury -1 0", "pause-tube a -1"}) {
    EXPECT_EQ(parse_command(wrong).problem, fault::bad_format) << wrong;
  }
}

TEST(command_test, AnUnknownVerbIsReported) {
  for (const std::string& wrong :
       {std::string(), std::string(" "), std::string(" put 0 0 1 1"), std::string("PUT 0 0 1 1"),
        std::string("statsx"), std::string("reserve-x 1"), std::string("put\t0 0 1 1"),
        std::string("stats\0", 6), std::string("peek-"), std::string(222, 'a')}) {
    EXPECT_EQ(parse_command(wrong).problem, fault::unknown_command) << wrong;
  }
}

TEST(command_test, TooFewAndTooManyWordsAreBadFormat) {
  for (const char* const wrong : {"put",
                                  "put 1 2 3",
                                  "put 1 2 3 4 5",
                                  "reserve 1",
                                  "delete",
                                  "delete ",
                                  "delete 1 2",
                                  "delete 1 ",
                                  "release 1 2",
                                  "release 1 2 3 4",
                                  "bury 1",
                                  "bury 1 2 3",
                                  "touch",
                                  "touch 1 2",
                                  "use",
                                  "use a b",
                                  "watch",
                                  "watch ",
                                  "ignore",
                                  "peek",
                                  "peek 1 2",
                                  "peek-ready 1",
                                  "kick",
                                  "kick 1 2",
                                  "kick-job",
                                  "stats 1",
                                  "stats-job",
                                  "stats-tube",
                                  "stats-tube a b",
                                  "list-tubes x",
                                  "list-tubes ",
                                  "quit now",
                                  "pause-tube",
                                  "pause-tube a",
                                  "pause-tube a 1 2",
                                  "pause-tube  -a 1",
                                  "use  a",
                                  "watch  a",
                                  "ignore  a",
                                  "stats-tube  a",
                                  "reserve-job",
                                  "reserve-job x",
                                  "list-tube-used x",
                                  "delete 1x",
                                  "delete 18446744073709551616"}) {
    EXPECT_EQ(parse_command(wrong).problem, fault::bad_format) << wrong;
  }
}

}  // namespace
}  // namespace sluice::jobs::beanstalk::command_test
