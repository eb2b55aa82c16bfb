#include "jobs/worker/json_codec.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace sluice::jobs::json_codec_test {

struct color {
  int red = 0;
  int green = 0;
};

}  // namespace sluice::jobs::json_codec_test

namespace sluice::jobs {

using json_codec_test::color;

// A type with a JSON form of its own.
template <>
struct json_codec<color> {
  static color read(json::json_reader& in) {
    const std::string text = in.string();
    if (text.size() == 3 && text[0] == '#') return {text[1] - '0', text[2] - '0'};
    if (in.ok()) in.refuse("expected a color like #12");
    return {};
  }
  static void write(json::json_writer& out, const color& c) {
    out.value("#" + std::to_string(c.red) + std::to_string(c.green));
  }
};

}  // namespace sluice::jobs

namespace sluice::jobs::json_codec_test {
namespace {

enum class level : std::uint8_t { low = 1, high = 2 };

struct point {
  double x = 0;
  double y = 0;
  bool operator==(const point&) const = default;

  static constexpr auto fields = std::tuple{field("x", &point::x), field("y", &point::y)};
};

struct shape {
  std::string name;
  std::vector<point> corners;
  std::map<std::string, std::int64_t> tags;
  std::optional<point> center;
  level grade = level::low;
  bool filled = false;
  int layer = 7;
  bool operator==(const shape&) const = default;

  static constexpr auto fields =
      std::tuple{field("name", &shape::name),           field("corners", &shape::corners),
                 field("tags", &shape::tags),           field("center", &shape::center),
                 field("how", &shape::grade),           optional_field("filled", &shape::filled),
                 optional_field("layer", &shape::layer)};
};

struct nothing {
  static constexpr auto fields = std::tuple{};
};

template <class T>
std::string why_not(const std::string& text) {
  const auto read = decode<T>(payload{text}, "args");
  return read ? "it fits" : read.error().message;
}

TEST(JsonCodec, DecodesEncodedValues) {
  const shape whole{.name = "tri\"angle\n",
                    .corners = {{0, 0}, {1.5, -2}, {1e300, 0.1}},
                    .tags = {{"a \"b\"\\", 1}, {"", std::numeric_limits<std::int64_t>::min()}},
                    .center = point{1, 2},
                    .grade = level::high,
                    .filled = true,
                    .layer = -1};
  EXPECT_EQ(decode<shape>(encode(whole)).value(), whole);
  EXPECT_EQ(decode<shape>(encode(shape{})).value(), shape{});
}

TEST(JsonCodec, WritesFieldsInTheirOrder) {
  EXPECT_EQ(encode(point{1, 2.5}).data, R"({"x":1,"y":2.5})");
  EXPECT_EQ(encode(nothing{}).data, "{}");
  EXPECT_EQ(encode(std::vector<bool>{true, false}).data, "[true,false]");
  EXPECT_EQ(encode("text").data, R"("text")");
  EXPECT_EQ(encode(std::optional<int>()).data, "null");
  EXPECT_EQ(encode(color{1, 2}).data, R"("#12")");
  EXPECT_EQ(encode(std::map<std::string, int>{{"a", 1}, {"b", 2}}).data, R"({"a":1,"b":2})");
}

TEST(JsonCodec, KeepsTheDefaultOfAnOptionalFieldAndSkipsUnknownOnes) {
  const auto read =
      decode<shape>(payload{R"({"new":[1,{"x":2}],"name":"n","corners":[],"tags":{},"how":1})"});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->layer, 7);
  EXPECT_EQ(read->center, std::nullopt);
}

TEST(JsonCodec, NamesThePlaceOfAnError) {
  const std::string rest = R"("name":"n","tags":{},"how":1})";
  EXPECT_TRUE(why_not<shape>(R"({"corners":[{"x":1,"y":2},{"x":"1","y":2}],)" + rest)
                  .starts_with("args: corners[1].x: expected a number"))
      << why_not<shape>(R"({"corners":[{"x":1,"y":2},{"x":"1","y":2}],)" + rest);
  EXPECT_NE(why_not<shape>(R"({"corners":[{"x":1}],)" + rest).find("the field y is missing"),
            std::string::npos);
  EXPECT_NE(why_not<shape>(R"({"corners":[{"x":1}],)" + rest).find("corners[0]"), std::string::npos)
      << why_not<shape>(R"({"corners":[{"x":1}],)" + rest);
  using weights = std::map<std::string, int>;
  EXPECT_TRUE(why_not<weights>(R"({"a":1,"b":null})").starts_with("args: b: expected"))
      << why_not<weights>(R"({"a":1,"b":null})");
  EXPECT_NE(why_not<color>("\"red\"").find("expected a color like #12"), std::string::npos);
  EXPECT_TRUE(why_not<int>("{} garbage").starts_with("args: "));
  EXPECT_NE(why_not<int>("1 2"), "it fits");
  EXPECT_NE(why_not<int>(""), "it fits");
}

TEST(JsonCodec, RejectsNumbersThatDoNotFitTheirType) {
  EXPECT_NE(why_not<std::uint8_t>("256"), "it fits");
  EXPECT_NE(why_not<std::uint8_t>("-1"), "it fits");
  EXPECT_EQ(why_not<std::uint8_t>("255"), "it fits");
  EXPECT_NE(why_not<std::int8_t>("128"), "it fits");
  EXPECT_NE(why_not<int>("1.5"), "it fits");
  EXPECT_NE(why_not<std::int64_t>("9223372036854775808"), "it fits");
  EXPECT_EQ(decode<std::uint64_t>(payload{"18446744073709551615"}).value(),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_NE(why_not<float>("1e39"), "it fits");
  EXPECT_EQ(decode<double>(payload{"0.1"}).value(), 0.1);
}

TEST(JsonCodec, ReadsArraysOfTheirSizeOnly) {
  using three = std::array<int, 3>;
  EXPECT_EQ(decode<three>(payload{"[1,2,3]"}).value(), (three{1, 2, 3}));
  EXPECT_NE(why_not<three>("[1,2]").find("expected 3 elements, found 2"), std::string::npos);
  EXPECT_NE(why_not<three>("[1,2,3,4]").find("found 4"), std::string::npos);
}

TEST(JsonCodec, KeepsAPayloadUnchangedAndRejectsBytesForOtherTypes) {
  const payload bytes{"\xFF", content_type::bytes};
  EXPECT_EQ(decode<payload>(bytes).value(), bytes);
  EXPECT_EQ(encode(bytes), bytes);
  EXPECT_EQ(decode<int>(bytes, "args").error().message, "args: expected JSON, found 1 bytes");
}

TEST(JsonCodec, KeepsUnorderedMaps) {
  const std::unordered_map<std::string, std::vector<int>> map = {{"a", {1}}, {"b", {}}};
  EXPECT_EQ((decode<std::unordered_map<std::string, std::vector<int>>>(encode(map)).value()), map);
}

}  // namespace
}  // namespace sluice::jobs::json_codec_test
