// Lines of the log as text and JSON.
#include "jobs/server/event_log.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace sluice::jobs::event_log_test {
namespace {

// Returns the output of a log with these options while `say` writes to it.
template <class Say>
std::string lines_of(log_options o, Say say) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* file = ::open_memstream(&text, &size);
  {
    event_log log(o, file);
    say(log);
  }
  std::fclose(file);
  std::string lines(text, size);
  std::free(text);
  return lines;
}

// Returns the line after the time, which is 24 characters and a space.
std::string after_time(const std::string& line) {
  return line.size() > 25 ? line.substr(25) : "too short: " + line;
}

TEST(EventLog, WritesTheEventThenItsFields) {
  const auto line = lines_of({}, [](event_log& log) {
    log.info("listening",
             {{"url", "http://127.0.0.1:1"}, {"pid", 12}, {"grace", milliseconds(1500)}});
  });
  EXPECT_EQ(after_time(line), "info  listening url=http://127.0.0.1:1 pid=12 grace=1500ms\n");
}

TEST(EventLog, BeginsALineWithTheTimeInUtc) {
  const auto line = lines_of({}, [](event_log& log) { log.warn("x"); });
  ASSERT_GT(line.size(), 25U);
  EXPECT_EQ(line[4], '-');
  EXPECT_EQ(line[10], 'T');
  EXPECT_EQ(line[19], '.');
  EXPECT_EQ(line.substr(23, 2), "Z ");
}

TEST(EventLog, QuotesValuesThatAreNotOneWord) {
  const auto line = lines_of({}, [](event_log& log) {
    log.error("store fails", {{"reason", "disk \"full\"\nreally"}, {"empty", ""}});
  });
  EXPECT_EQ(after_time(line),
            "error store fails reason=\"disk \\\"full\\\"\\nreally\" empty=\"\"\n");
}

TEST(EventLog, WritesOneJsonObjectALine) {
  const auto line = lines_of({.json = true}, [](event_log& log) {
    log.info("store open", {{"store", "a \"b\""}, {"ready", 3U}, {"diff", -1}});
  });
  EXPECT_EQ(line.substr(0, 9), "{\"time\":\"");
  const auto rest = line.substr(line.find(",\"level\""));
  EXPECT_EQ(rest,
            ",\"level\":\"info\",\"event\":\"store open\",\"store\":\"a \\\"b\\\"\",\"ready\":3,"
            "\"diff\":-1}\n");
}

TEST(EventLog, SuppressesLinesBelowItsLevel) {
  const auto text = lines_of({.level = log_level::warn}, [](event_log& log) {
    log.debug("a");
    log.info("b");
    log.warn("c");
    log.error("d");
  });
  EXPECT_EQ(text.find("info"), std::string::npos);
  EXPECT_NE(text.find("warn  c"), std::string::npos);
  EXPECT_NE(text.find("error d"), std::string::npos);
  EXPECT_EQ(lines_of({.level = log_level::off}, [](event_log& log) { log.error("d"); }), "");
}

TEST(EventLog, WritesBracesUnchanged) {
  const auto line = lines_of({}, [](event_log& log) { log.info("{}", {{"x", "{0}%v"}}); });
  EXPECT_EQ(after_time(line), "info  {} x={0}%v\n");
}

TEST(EventLog, KnowsItsLevelsByName) {
  EXPECT_EQ(log_level_from("warn"), log_level::warn);
  EXPECT_EQ(log_level_from("off"), log_level::off);
  EXPECT_EQ(log_level_from("WARN"), std::nullopt);
}

}  // namespace
}  // namespace sluice::jobs::event_log_test
