#pragma once

// Who changed what: one line for every administrative act, also for those that were refused.
//
// The lines go where the log goes, marked `audit`, or to a file of their own, whatever the level of
// the log. They have ids of tokens, addresses and paths in them, and never a secret.
//
// Guarantees: any thread may call anything. A line is written as a whole, at the end of the file.
//
//     audit.write({.who = "k3v9x0aq", .from = "10.0.0.7", .act = "POST /v1/queues/mail/purge",
//                  .outcome = "200"});
//     2026-11-15T10:30:00.123Z info  audit who=k3v9x0aq from=10.0.0.7 act="POST ..." outcome=200

#include <memory>
#include <string>
#include <string_view>

#include "jobs/model/result.hpp"
#include "jobs/server/event_log.hpp"

namespace sluice::jobs {

struct audit_line {
  std::string_view who;   // the id of a token, or "local"
  std::string_view from;  // an address, a signal, a command
  std::string_view act;
  std::string_view outcome = "ok";
};

class audit_log {
 public:
  // `file` empty: standard error. io_error names the file.
  static result<std::unique_ptr<audit_log>> open(std::string file, log_options form);
  ~audit_log();
  audit_log(const audit_log&) = delete;
  audit_log& operator=(const audit_log&) = delete;

  void write(const audit_line& line);
  // Opens the file anew, after it was moved away. An error, and it goes on with the old one.
  void_result reopen();

 private:
  class impl;
  explicit audit_log(std::unique_ptr<impl> it);
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
