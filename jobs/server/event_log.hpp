#pragma once

// The server's log: one line for each notable event, to standard error, for people or for log
// collectors.
//
// Guarantees: all functions may be called from any thread. Each line is written at once and as a
// whole.
// Cost: a suppressed line is one comparison. No line is written for each job.
//
//     log.info("listening", {{"url", url}, {"pid", 1234}});
//     2026-11-15T10:30:00.123Z info  listening url=http://127.0.0.1:7433 pid=1234
//     {"time":"2026-11-15T10:30:00.123Z","level":"info","event":"listening","url":"...","pid":1234}

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "jobs/model/time.hpp"

namespace sluice::jobs {

enum class log_level : std::uint8_t { debug, info, warn, error, off };
std::optional<log_level> log_level_from(std::string_view word) noexcept;

struct log_options {
  log_level level = log_level::info;
  bool json = false;
};

class event_log {
 public:
  // A name and a value of a line. The name consists of letters.
  class field {
   public:
    field(std::string_view name, std::string_view value) : name_(name), value_(value) {}
    field(std::string_view name, const char* value) : field(name, std::string_view(value)) {}
    field(std::string_view name, const std::string& value) : field(name, std::string_view(value)) {}
    field(std::string_view name, std::unsigned_integral auto number)
        : name_(name), value_(std::uint64_t{number}) {}
    field(std::string_view name, std::signed_integral auto number)
        : name_(name), value_(std::int64_t{number}) {}
    field(std::string_view name, milliseconds duration) : name_(name), value_(duration) {}

    std::string_view name() const noexcept { return name_; }
    void append_text(std::string& line) const;
    void append_json(std::string& line) const;

   private:
    std::string_view name_;
    std::variant<std::string_view, std::uint64_t, std::int64_t, milliseconds> value_;
  };
  using fields = std::initializer_list<field>;

  // Writes to `file`, or to standard error if it is null.
  explicit event_log(log_options o, std::FILE* file = nullptr);
  ~event_log();
  event_log(const event_log&) = delete;
  event_log& operator=(const event_log&) = delete;

  void debug(std::string_view event, fields more = {}) { write(log_level::debug, event, more); }
  void info(std::string_view event, fields more = {}) { write(log_level::info, event, more); }
  void warn(std::string_view event, fields more = {}) { write(log_level::warn, event, more); }
  void error(std::string_view event, fields more = {}) { write(log_level::error, event, more); }

 private:
  class impl;

  void write(log_level level, std::string_view event, fields more);

  log_options options_;
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
