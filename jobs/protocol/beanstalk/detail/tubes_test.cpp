#include "jobs/protocol/beanstalk/detail/tubes.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs::beanstalk::tubes_test {
namespace {

TEST(tubes_test, ATubeIsSharedByAllClients) {
  tube_table all;
  const tube_ptr a = all.get("a+b");
  EXPECT_EQ(a->name, "a+b");
  EXPECT_EQ(all.get("a+b"), a);
  EXPECT_EQ(all.find("a+b"), a);
  EXPECT_EQ(all.find("b"), nullptr);
}

TEST(tubes_test, WhenThereAreTooManyUnreferencedTubesAreDropped) {
  tube_table all(3);
  const tube_ptr held = all.get("held");
  for (int i = 0; i < 100; ++i) EXPECT_NE(all.get("t" + std::to_string(i)), nullptr);
  EXPECT_LE(all.size(), 3U);
  EXPECT_EQ(all.find("held"), held);
  const tube_ptr b = all.get("b");
  const tube_ptr c = all.get("c");
  EXPECT_EQ(all.get("d"), nullptr);
}

TEST(tubes_test, OnlyUsedAndWatchedTubesAreInUse) {
  tube_table all;
  (void)all.get("idle");
  const tube_ptr used = all.get("used");
  used->using_now = 1;
  const tube_ptr watched = all.get("watched");
  watched->watching = 2;
  EXPECT_EQ(all.in_use().size(), 2U);
}

TEST(tubes_test, TheNewestJobNotesAreKept) {
  job_notes notes(2);
  notes.released(1, 30);
  notes.released(1, 5);
  notes.kicked(1);
  ASSERT_TRUE(notes.find(1));
  EXPECT_EQ(notes.find(1)->releases, 2U);
  EXPECT_EQ(notes.find(1)->kicks, 1U);
  EXPECT_EQ(notes.find(1)->delay_s, 5U);
  notes.kicked(2);
  notes.kicked(3);
  EXPECT_FALSE(notes.find(1));
  EXPECT_TRUE(notes.find(2));
  EXPECT_TRUE(notes.find(3));
}

}  // namespace
}  // namespace sluice::jobs::beanstalk::tubes_test
