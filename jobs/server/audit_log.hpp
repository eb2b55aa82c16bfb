#pragma once

// Writes one line for every administrative act, including rejected ones: who did what.
//
// Lines go to the log, marked `audit`, or to a separate file, independent of the log level. They
// contain token ids, addresses and paths, and never a secret.
//
// Guarantees: all functions may be called from any thread. Each line is appended with one write.
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
  // An empty `file` is standard error. Fails with `io_error` and the file's name.
  static result<std::unique_ptr<audit_log>> open(std::string file, log_options form);
  ~audit_log();
  audit_log(const audit_log&) = delete;
  audit_log& operator=(const audit_log&) = delete;

  void write(const audit_line& line);
  // Opens the file again after it was moved away. On failure the old file stays in use.
  void_result reopen();

 private:
  class impl;
  explicit audit_log(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
