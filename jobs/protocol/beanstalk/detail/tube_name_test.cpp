#include "jobs/protocol/beanstalk/detail/tube_name.hpp"

#include <gtest/gtest.h>

#include "jobs/model/job.hpp"
#include "sluice/base/random.hpp"

namespace sluice::jobs::beanstalk {
namespace {

TEST(tube_name_test, MostNamesAreTheSame) {
  for (const char* const name : {"default", "a", "mail.high", "a/b", "A_z-9", "sluice/webhooks"}) {
    EXPECT_EQ(queue_of(name), name);
    EXPECT_EQ(tube_of(name), name);
  }
}

TEST(tube_name_test, WhatAQueueCannotHaveIsWrittenInHex) {
  EXPECT_EQ(queue_of("a+b"), "a:2Bb");
  EXPECT_EQ(queue_of(";$()"), ":3B:24:28:29");
  EXPECT_EQ(tube_of("a:2Bb"), "a+b");
}

TEST(tube_name_test, AQueueWithAColonKeepsItsName) {
  for (const char* const queue : {"a:b", ":", "a:", "a:2", "a:2b", "::", "a:7Fb"}) {
    EXPECT_EQ(tube_of(queue), queue);
    EXPECT_EQ(queue_of(queue), queue);
  }
}

TEST(tube_name_test, WhatIsNoNameHasNoQueue) {
  for (const std::string& wrong :
       {std::string(), std::string("-a"), std::string("a b"), std::string("a\0", 2),
        std::string("a@"), std::string("\xc3\xa4"), std::string(201, 'a'), std::string("a\n")}) {
    EXPECT_EQ(queue_of(wrong), std::nullopt) << wrong;
    EXPECT_FALSE(is_tube_name(wrong));
  }
}

TEST(tube_name_test, ANameThatIsTooLongForAQueueHasNone) {
  EXPECT_TRUE(is_tube_name(std::string(200, 'a')));
  EXPECT_EQ(queue_of(std::string(129, 'a')), std::nullopt);
  EXPECT_EQ(queue_of(std::string(43, '$')), std::nullopt);
  EXPECT_TRUE(queue_of(std::string(128, 'a')));
}

TEST(tube_name_test, BothWaysLeadBack) {
  constexpr std::string_view tube_bytes = "aZ09-+/;.$_()";
  constexpr std::string_view queue_bytes = "aB2489._-/:";
  sluice::random dice(4);
  for (int i = 0; i < 20'000; ++i) {
    std::string tube(1, 'x');
    std::string queue(1, 'x');
    for (std::uint32_t n = dice.below(20); n > 0; --n) {
      tube += tube_bytes[dice.below(static_cast<std::uint32_t>(tube_bytes.size()))];
      queue += queue_bytes[dice.below(static_cast<std::uint32_t>(queue_bytes.size()))];
    }
    const auto as_queue = queue_of(tube);
    ASSERT_TRUE(as_queue) << tube;
    EXPECT_TRUE(validate_queue_name(*as_queue)) << tube;
    EXPECT_EQ(tube_of(*as_queue), tube);
    EXPECT_EQ(queue_of(tube_of(queue)), queue);
  }
}

}  // namespace
}  // namespace sluice::jobs::beanstalk
