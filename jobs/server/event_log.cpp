#include "jobs/server/event_log.hpp"

#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <array>
#include <cstdio>
#include <mutex>
#include <utility>

#include "jobs/json/json_writer.hpp"
#include "jobs/json/text.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::jobs {
namespace {

constexpr std::array level_words = {
    std::pair{log_level::debug, "debug"}, std::pair{log_level::info, "info"},
    std::pair{log_level::warn, "warn"}, std::pair{log_level::error, "error"},
    std::pair{log_level::off, "off"}};

spdlog::level::level_enum to_spdlog(log_level level) {
  switch (level) {
    case log_level::debug:
      return spdlog::level::debug;
    case log_level::info:
      return spdlog::level::info;
    case log_level::warn:
      return spdlog::level::warn;
    case log_level::error:
      return spdlog::level::err;
    case log_level::off:
      break;
  }
  return spdlog::level::off;
}

std::string_view word_of(log_level level) {
  return level_words[static_cast<std::size_t>(level)].second;
}

// Returns whether the text needs no quotes.
bool is_plain(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t\r\n\"=\\") == std::string_view::npos;
}

std::string json_string(std::string_view text) {
  std::string out;
  json::json_writer(out).value(text);
  return out;
}

// Unsynchronized: event_log has the lock.
class file_sink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit file_sink(std::FILE* file) : file_(file) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::fwrite(line.data(), 1, line.size(), file_);
    std::fflush(file_);
  }
  void flush_() override { std::fflush(file_); }

  std::FILE* file_;
};

}  // namespace

std::optional<log_level> log_level_from(std::string_view word) noexcept {
  for (const auto& [level, name] : level_words) {
    if (word == name) return level;
  }
  return std::nullopt;
}

void event_log::field::append_text(std::string& line) const {
  struct visitor {
    std::string& line;
    void operator()(std::string_view text) const {
      line += is_plain(text) ? std::string(text) : json_string(text);
    }
    void operator()(std::uint64_t number) const { line += std::to_string(number); }
    void operator()(std::int64_t number) const { line += std::to_string(number); }
    void operator()(milliseconds duration) const { line += format_duration(duration); }
  };
  std::visit(visitor{line}, value_);
}

void event_log::field::append_json(std::string& line) const {
  json::json_writer out(line);
  std::visit([&](const auto& value) { out.value(value); }, value_);
}

class event_log::impl {
 public:
  impl(const log_options& o, std::FILE* file)
      : logger("sluice", std::make_shared<file_sink>(file == nullptr ? stderr : file)) {
    // The message is the whole line except the time, which spdlog adds.
    logger.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        o.json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v})" : "%Y-%m-%dT%H:%M:%S.%eZ %v",
        spdlog::pattern_time_type::utc));
    logger.set_level(to_spdlog(o.level));
  }

  mutex writing;
  spdlog::logger logger;  // protected by `writing`
};

event_log::event_log(log_options o, std::FILE* file)
    : options_(o), impl_(std::make_unique<impl>(o, file)) {}

event_log::~event_log() = default;

void event_log::write(log_level level, std::string_view event, fields more) {
  if (level < options_.level) return;
  std::string line;
  if (options_.json) {
    line += R"("level":)" + json_string(word_of(level)) + R"(,"event":)" + json_string(event);
    for (const field& f : more) {
      line += "," + json_string(f.name()) + ":";
      f.append_json(line);
    }
  } else {
    line += word_of(level);
    line.append(6 - word_of(level).size(), ' ');
    line += event;
    for (const field& f : more) {
      line += ' ';
      line += f.name();
      line += '=';
      f.append_text(line);
    }
  }
  const std::lock_guard hold(impl_->writing);
  impl_->logger.log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace sluice::jobs
