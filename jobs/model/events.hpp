#pragma once

// Events of jobs as they happen, for a dashboard or a program that would otherwise poll.
//
// The server keeps the newest events in memory, numbered. A reader that was disconnected requests
// the events after the last number it has; `event_page::missed` reports if some are no longer kept.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/job.hpp"

namespace sluice::jobs {

enum class event_type : std::uint8_t {
  pushed,    // a job was added: scheduled, held or ready
  released,  // its dependencies are met
  started,   // leased
  progress,  // its worker reported progress
  retrying,  // the attempt failed, another follows
  done,
  dead,
  cancelled,
  returned,  // its worker released it without a failure
  retried,   // made ready or held by hand: it was dead, cancelled, scheduled or retrying
  removed,   // deleted, dropped from a full queue, or skipped: it can never run
  batch_done,
  batch_failed,
  queue_changed,
  cron_ran,
};
std::string_view to_string(event_type type) noexcept;
std::optional<event_type> event_type_from(std::string_view word) noexcept;

struct job_event {
  std::uint64_t number = 0;  // counts up by one
  unix_time at{};
  event_type type = event_type::pushed;
  job_id job = 0;  // or the batch; zero: neither
  std::string queue{};
  std::uint32_t attempt = 0;
  job_id batch = 0;
  double percent = 0;
  std::string text{};  // of progress; of retrying and dead, the error's type; of cron, its name
};

struct event_request {
  // Events after this number; none: future events only. `epoch` identifies one run of the server:
  // a number of another run is answered with all events that are kept, and `missed`.
  std::optional<std::uint64_t> after{};
  std::uint64_t epoch = 0;
  std::string queue{};              // empty: every queue
  job_id job = 0;                   // zero: every job
  job_id batch = 0;                 // zero: of any batch
  std::vector<event_type> types{};  // empty: all
  std::size_t limit = 1000;
};

struct event_page {
  std::vector<job_event> events{};
  std::uint64_t epoch = 0;
  std::uint64_t next = 0;  // `after` of the next request; also set if no event matched
  bool missed = false;     // some of the requested events are no longer kept
};

struct log_line {
  std::uint64_t number = 0;  // within the job's lines, from 1
  std::uint32_t attempt = 0;
  unix_time at{};
  std::string text{};

  friend bool operator==(const log_line&, const log_line&) = default;
};

struct log_page {
  std::vector<log_line> lines{};
  std::optional<std::uint64_t> cursor{};
};

}  // namespace sluice::jobs
