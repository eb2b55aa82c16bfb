#include "sluice/actor/detail/json_text.hpp"

#include <gtest/gtest.h>

namespace sluice::detail::json_text_test {
namespace {

std::string quoted(std::string_view text) {
  std::string s;
  append_json_string(s, text);
  return s;
}

TEST(json_text_test, EscapesQuotesBackslashesAndControlCharacters) {
  EXPECT_EQ(quoted("a \"b\" \\ c"), R"("a \"b\" \\ c")");
  EXPECT_EQ(quoted("line\n\ttab"), R"("line\n\ttab")");
  EXPECT_EQ(quoted(std::string_view("\0\x1f\x7f", 3)), R"("\u0000\u001f\u007f")");
  EXPECT_EQ(quoted(""), R"("")");
}

TEST(json_text_test, KeepsUtf8AndReplacesInvalidBytes) {
  EXPECT_EQ(quoted("z\u00fcrich \u20ac \U0001F600"), "\"z\u00fcrich \u20ac \U0001F600\"");
  EXPECT_EQ(quoted("a\xff z"), "\"a\ufffd z\"");
  EXPECT_EQ(quoted("cut\xe2\x82"), "\"cut\ufffd\ufffd\"");
  EXPECT_EQ(quoted("\xc0\xaf"), "\"\ufffd\ufffd\"");            // a slash in overlong form
  EXPECT_EQ(quoted("\xed\xa0\x80"), "\"\ufffd\ufffd\ufffd\"");  // a surrogate
  // beyond the last character
  EXPECT_EQ(quoted("\xf4\x90\x80\x80"), "\"\ufffd\ufffd\ufffd\ufffd\"");
}

TEST(json_text_test, FieldsHaveCommasBetweenThem) {
  std::string s = "{";
  append_json_field(s, "n", std::uint64_t{7});
  append_json_field(s, "t", "x");
  EXPECT_EQ(s + "}", R"({"n":7,"t":"x"})");
}

}  // namespace
}  // namespace sluice::detail::json_text_test
