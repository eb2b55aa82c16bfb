#include "jobs/json/json_reader.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "jobs/json/codec.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"

namespace sluice::jobs::json::json_reader_test {
namespace {

std::string message_of(std::string_view text) {
  const auto read = check_json(text);
  return read ? "" : read.error().message;
}

std::string string_of(std::string_view text) {
  json_reader in(text);
  std::string value = in.string();
  const auto read = in.finish();
  EXPECT_TRUE(read) << text << ": " << read.error().message;
  return value;
}

TEST(JsonReader, TakesEveryKindOfValue) {
  for (const std::string_view text : {"null",
                                      "true",
                                      "false",
                                      "0",
                                      "-0",
                                      "12",
                                      "-1.5",
                                      "1e5",
                                      "1E-5",
                                      "0.1e+2",
                                      "\"\"",
                                      "\"a\"",
                                      "[]",
                                      "{}",
                                      " [ 1 , 2 ] ",
                                      "{\"a\":{\"b\":[{}]}}",
                                      "\t\n\r 1 \n",
                                      "\"\\u00e9\\n\\\"\\/\"",
                                      "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"",
                                      "\"\x7F\"",
                                      "[[],[[]],{}]"}) {
    EXPECT_EQ(message_of(text), "") << text;
  }
}

TEST(JsonReader, RejectsInvalidJson) {
  for (const std::string_view text :
       {"",          " ",           "nul",    "nulll",     "True",
        "+1",        "01",          "-",      "1.",        ".5",
        "1e",        "1e+",         "0x1",    "NaN",       "Infinity",
        "'a'",       "\"",          "\"a",    "\"\\",      "\"\\x\"",
        "\"\\u12\"", "\"\\u12G4\"", "\"\n\"", "[",         "]",
        "[1",        "[1,",         "[1,]",   "[,1]",      "[1 2]",
        "{",         "}",           "{\"a\"", "{\"a\":",   "{\"a\":1",
        "{\"a\":1,", "{\"a\":1,}",  "{a:1}",  "{\"a\" 1}", "{1:1}",
        "[}",        "{]",          "1 1",    "[] []",     "\xEF\xBB\xBF{}",
        "// c\n1",   "\"\\u-123\""}) {
    EXPECT_NE(message_of(text), "") << text;
  }
}

TEST(JsonReader, ErrorsHaveThePositionOfTheMistake) {
  EXPECT_EQ(message_of("{\n  \"a\": 1,\n  \"b\": x\n}"),
            "line 3, column 8: expected a value: an object, an array, a string, a number, true, "
            "false or null; found 'x'");
  EXPECT_EQ(message_of("[1 2]"), "line 1, column 4: expected ',' or ']', found '2'");
  EXPECT_EQ(message_of("[\"\xC3\xA9\xC3\xA9\" 2]"),
            "line 1, column 7: expected ',' or ']', found '2'");
  EXPECT_EQ(message_of("[1"), "line 1, column 3: expected ',' or ']', found the end of the text");
  EXPECT_EQ(message_of("[\x01]").substr(0, 17), "line 1, column 2:");
  EXPECT_EQ(message_of("{\"a\":1}\xFF"),
            "line 1, column 8: expected the end of the text after the value, "
            "found bytes that are not UTF-8");
  EXPECT_EQ(message_of("[\"abc"), "line 1, column 2: this string has no closing quote");
  EXPECT_EQ(message_of("01"), "line 1, column 1: not a valid JSON number");
}

TEST(JsonReader, RefusesBytesThatAreNotUtf8) {
  for (const std::string_view bytes :
       {"\x80", "\xC3", "\xC3\x28", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x82", "\xF0\x9F\x98"}) {
    for (const std::string& before :
         {std::string(), std::string("1234567"), std::string(64, 'x')}) {
      const std::string text = '"' + before + std::string(bytes) + '"';
      EXPECT_EQ(message_of(text), "line 1, column " + std::to_string(before.size() + 2) +
                                      ": these bytes are not UTF-8");
    }
  }
}

TEST(JsonReader, TurnsEscapesIntoCharacters) {
  EXPECT_EQ(string_of(R"("a\"\\\/\b\f\n\r\tz")"), "a\"\\/\b\f\n\r\tz");
  EXPECT_EQ(string_of(R"("\u0041\u00e9\u20AC\ud83d\ude00")"),
            "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(string_of(R"("\u0000")"), std::string(1, '\0'));
}

TEST(JsonReader, RejectsHalfOfASurrogatePair) {
  for (const std::string_view text :
       {R"("\ud800")", R"("\udc00")", R"("\ud800\u0041")", R"("\ud800x")", R"("\ud800\ud800")"}) {
    json_reader in(text);
    in.string();
    const auto read = in.finish();
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().message.find("surrogate"), std::string::npos);
  }
  // raw() does not decode escapes, so it accepts them: the text is returned unchanged.
  EXPECT_EQ(message_of(R"(["\ud800"])"), "");
}

TEST(JsonReader, LimitsNesting) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(message_of(nested(json_reader::depth_max)), "");
  EXPECT_EQ(message_of(nested(json_reader::depth_max + 1)),
            "line 1, column 101: nested deeper than 100 levels");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_NE(message_of(objects).find("nested deeper"), std::string::npos);
}

TEST(JsonReader, ReadsWholeNumbersExactly) {
  const auto whole = [](std::string_view text) {
    json_reader in(text);
    const auto value = in.whole(std::numeric_limits<std::int64_t>::min(),
                                std::numeric_limits<std::int64_t>::max());
    EXPECT_TRUE(in.finish()) << text;
    return value;
  };
  EXPECT_EQ(whole("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(whole("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(whole("5.0"), 5);
  EXPECT_EQ(whole("1e3"), 1000);
  EXPECT_EQ(whole("-0"), 0);
}

TEST(JsonReader, RefusesNumbersOutOfRange) {
  for (const std::string_view text : {"101", "-1", "1.5", "1e400", "9223372036854775808", "-1e400",
                                      "123456789012345678901234567890", "1e-400"}) {
    json_reader in(text);
    EXPECT_EQ(in.natural(0, 100), 0U);
    const auto read = in.finish();
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(
        read.error().message,
        "line 1, column 1: expected a whole number from 0 to 100, found " + std::string(text));
  }
  json_reader in("1e400");
  in.number(0, 1);
  EXPECT_FALSE(in.finish());
}

TEST(JsonReader, KeepsTheFirstError) {
  json_reader in(R"([1, "x", 1e9])");
  std::int64_t sum = 0;
  for (in.begin_array(); in.next_element();) sum += in.whole(0, 10);
  EXPECT_EQ(sum, 1);
  EXPECT_EQ(in.string(), "");
  EXPECT_EQ(in.raw(), "");
  EXPECT_FALSE(in.boolean());
  EXPECT_FALSE(in.skip_null());
  EXPECT_EQ(in.duration().count(), 0);
  EXPECT_EQ(in.finish().error().message,
            "[1]: expected a whole number from 0 to 10, found a string (line 1, column 5)");
}

TEST(JsonReader, ReturnsRawValuesUnchanged) {
  json_reader in(R"(  [ {"a" : 1.10 } , "x\u0041" ,-0]  )");
  std::vector<std::string> parts;
  for (in.begin_array(); in.next_element();) parts.emplace_back(in.raw());
  EXPECT_TRUE(in.finish());
  EXPECT_EQ(parts, (std::vector<std::string>{R"({"a" : 1.10 })", R"("x\u0041")", "-0"}));
}

// ---- random input

const std::vector<std::string>& documents() {
  static const std::vector<std::string> all = {
      R"({"queue":"mail","kind":"welcome","args":{"to":"ada","n":[1,2.5,-3e7,null,true]},)"
      R"("priority":5,"run_at":"2026-01-31T12:00:00Z","retry":{"attempts":3,"first":"1s",)"
      R"("factor":1.5,"longest":60,"jitter":0.25},"unique":{"key":"k\u00e9","until":"elapsed",)"
      R"("for":"1d"},"metadata":{"a":"b"},"keep_for":"7d"})",
      R"({"jobs":[{"kind":"a"},{"kind":"b","args_base64":"AAEC"}],"mode":"all_or_nothing"})",
      R"([{"kind":"a","delay":"500ms"},{"kind":"b","args":"\ud83d\ude00 text"}])",
      R"({"queues":["default","mail"],"max":10,"wait":"30s","worker":"w1","lease_for":"60s"})",
      R"({"id":7,"state":"dead","queue":"q","kind":"k","attempts":2,"created_at":)"
      R"("2026-01-01T00:00:00.000Z","errors":[{"attempt":1,"at":"2026-01-01T00:00:00.000Z",)"
      R"("type":"t","message":"m","backtrace":"b"}],"result":[1],"lease":5,"attempt":3})",
      R"({"acks":[{"id":1,"lease":2,"result":{"x":1}},{"id":2,"lease":3}]})",
      R"({"name":"q","capacity_jobs":5,"when_full":"block","counts":{"ready":1,"bytes":2}})",
  };
  return all;
}

template <class T>
bool value_or_located_error(const std::string& text, int& values) {
  const auto value = read<T>(text);
  if (value) {
    ++values;
    return true;
  }
  const std::string& message = value.error().message;
  return value.error().code == error_code::invalid && message.find("line ") != std::string::npos &&
         message.size() < 1000;
}

// Every mutation: bytes changed, cut, doubled, swapped with parts of other documents.
std::string mutate(std::string text, random& chance) {
  const auto below = [&](std::size_t n) { return chance.below(static_cast<std::uint32_t>(n)); };
  static constexpr std::string_view likely = "{}[]\",:\\/-+.0eEu \n\t\x01\x7F\x80\xC3\xED\xF0\xFF";
  for (std::uint32_t i = 0, n = 1 + chance.below(3); i < n && !text.empty(); ++i) {
    const std::size_t at = below(text.size());
    const std::size_t length = std::min<std::size_t>(text.size() - at, 1 + below(16));
    switch (chance.below(9)) {
      case 0:
        text[at] = static_cast<char>(chance.below(256));
        break;
      case 1:
        text[at] = likely[below(likely.size())];
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      case 4:
        text.resize(at);
        break;
      default: {
        const std::string& other = documents()[below(documents().size())];
        text.insert(at, other.substr(below(other.size()), length));
      }
    }
  }
  return text;
}

TEST(JsonReader, RoundTripsEveryString) {
  random chance(99);
  for (int i = 0; i < 20'000; ++i) {
    job_spec spec{.kind = "k"};
    for (std::uint32_t n = chance.below(40); n > 0; --n) {
      static constexpr std::array<std::string_view, 8> parts = {
          "a", "\"", "\\", "\n", "\x01", "\xC3\xA9", "\xF0\x9F\x98\x80", "/"};
      spec.kind += parts[chance.below(8)];
    }
    spec.priority = static_cast<std::int64_t>(chance.next() >> 31U) - (std::int64_t{1} << 32U);
    spec.retry.factor = 1 + static_cast<double>(chance.below(1'000'000)) / 3000;
    spec.retry.jitter = static_cast<double>(chance.below(1000)) / 1000;
    spec.run_at.ms = static_cast<std::int64_t>(chance.next() >> 24U);
    const auto back = read<job_spec>(to_json(spec));
    ASSERT_TRUE(back) << back.error().message;
    ASSERT_EQ(*back, spec);
  }
}

TEST(JsonReader, ReturnsAValueOrALocatedErrorForAnyInput) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 20260131);
  constexpr int rounds = 60'000;
  random chance(seed);
  int values = 0;
  int pushes = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::string& origin =
        documents()[chance.below(static_cast<std::uint32_t>(documents().size()))];
    const std::string text = mutate(origin, chance);
    ASSERT_TRUE(value_or_located_error<push_call>(text, values)) << text;
    ASSERT_TRUE(value_or_located_error<lease_call>(text, values)) << text;
    ASSERT_TRUE(value_or_located_error<std::vector<leased_job>>(text, values)) << text;
    ASSERT_TRUE(value_or_located_error<job>(text, values)) << text;
    ASSERT_TRUE(value_or_located_error<acks_call>(text, values)) << text;
    ASSERT_TRUE(value_or_located_error<queue_info>(text, values)) << text;
    // A value that was read is written and read again as an equal value.
    if (auto pushed = read<push_call>(text)) {
      ++pushes;
      const auto again = read<push_call>(to_json(*pushed));
      ASSERT_TRUE(again) << text << "\n" << to_json(*pushed) << "\n" << again.error().message;
      ASSERT_EQ(again->jobs, pushed->jobs) << text;
    }
  }
  std::printf("seed %llu, %d texts, %d readings gave a value, %d of them a push\n",
              static_cast<unsigned long long>(seed), rounds, values, pushes);
  // Both outcomes occurred: not every text failed at its first byte.
  EXPECT_GT(values, rounds / 50);
  EXPECT_GT(pushes, rounds / 500);
}

}  // namespace
}  // namespace sluice::jobs::json::json_reader_test
