#include "jobs/json/base64.hpp"

#include <gtest/gtest.h>

#include "sluice/base/random.hpp"

namespace sluice::jobs::json::base64_test {
namespace base64_test {
namespace {

std::string encoded(std::string_view bytes) {
  std::string out;
  append_base64(out, bytes);
  return out;
}

TEST(Base64, MatchesTheExamplesOfTheStandard) {
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(from_base64("Zm9vYg=="), "foob");
}

TEST(Base64, NeedsNoPadding) {
  EXPECT_EQ(from_base64("Zg"), "f");
  EXPECT_EQ(from_base64("Zm8"), "fo");
}

TEST(Base64, RejectsInvalidText) {
  for (const std::string_view text : {"Z", "Zm9vY", "Zg=", "Zg===", "=", "====", "Z===", "Zh==",
                                      "Zm9=", "Zm 9v", "Zm9v\n", "Zm-_", "Zg==Zg=="}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
}

TEST(Base64, ComesBackAsItWasWritten) {
  random chance(3);
  for (std::uint32_t size = 0; size < 300; ++size) {
    std::string bytes;
    for (std::uint32_t i = 0; i < size; ++i) bytes += static_cast<char>(chance.below(256));
    EXPECT_EQ(from_base64(encoded(bytes)), bytes);
  }
}

}  // namespace
}  // namespace base64_test
}  // namespace sluice::jobs::json::base64_test
