#pragma once

// Posts jobs to URLs, so that a team can have workers with no worker process, and tells URLs how
// jobs ended.
//
// Every queue with a `deliver` target is one: its jobs are leased, as many at a time as the
// target's concurrency says, and posted to its URL. The answer decides what becomes of the job, see
// docs/reference/delivery.md: 2xx is done, 408, 425, 429, 5xx and no answer are tried again,
// anything else is dead. The queue "sluice/webhooks" is another, always: each job of it says where
// the end of some job is to be posted to.
//
// Guarantees: any thread may call anything; `stop` and the destructor not from `on_event`. A job is
// leased only when it can be sent at once. Delivery is at least once: an answer that is lost means
// that the job is posted again, with the same Idempotency-Key. A request has ended before its lease
// does. Every URL is held against the rules again before it is posted to: a queue whose URL is not
// allowed any more keeps its jobs, and a webhook whose URL is not is dead, with the reason.
// A receiver that keeps failing does not use up the attempts of its queue: after
// `failures_in_a_row` failures no job is leased for `pause_first`, then one to try it, and so on
// with pauses that double up to `pause_longest`, until one succeeds. A Retry-After of a 429 or 503
// is such a pause, too. Of webhooks every host and port has its own pauses, and jobs for one that
// pauses are given back until then; their attempts are not counted. Shutdown: `close` leases no
// more; `stop` lets requests finish until its limits, then cuts them off and gives their jobs back.
// The engine must exist until after that, and must not be stopped before. Cost: one thread for
// everything. Limits: in the options; memory is requests_max times the size of a job and an answer.
//
//     auto posts = deliverer::open(*engine, {.rules = rules, .secrets = {secret}}).value();
//     engine->configure("mail", {.deliver_url = "https://hooks.example.com/mail"}).get();
//     posts->refresh();
//     ...
//     posts->stop(deadline::after(20s));

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/deliver/url_rules.hpp"
#include "jobs/engine/engine.hpp"
#include "jobs/model/queue.hpp"
#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::jobs {

// Something that a log would want to say. `message` is for people; no secret is in it.
struct delivery_event {
  enum class what : std::uint8_t {
    paused,          // a receiver keeps failing: no requests for a while
    resumed,         // ... it works again
    not_allowed,     // no rule allows the URL of a queue: its jobs wait
    result_dropped,  // the job is done, but what was answered cannot be kept as its result
    lost             // how it ended could not be stored; it is posted again when its lease ends
  };
  what kind = what::paused;
  std::string queue{};
  std::string receiver{};  // scheme, host and port
  job_id job = 0;          // zero: not about a job
  std::string message{};
};
std::string_view to_string(delivery_event::what kind) noexcept;

struct deliverer_options {
  url_rules rules{};
  std::vector<std::string> secrets{};  // each signs every request; none: nothing is signed
  std::string version{};               // for User-Agent
  std::string ca_file{};               // PEM, for TLS; empty: the authorities of the system

  std::size_t requests_max = 256;  // under way at a time, of all targets
  std::uint32_t webhook_concurrency = 32;
  milliseconds webhook_timeout{30'000};
  milliseconds connect_timeout{10'000};                 // within the timeout of the target
  milliseconds keep_idle{20'000};                       // for a connection without a request
  std::size_t answer_bytes_max = std::size_t{1} << 20;  // kept of an answer; the result of a job

  std::uint32_t failures_in_a_row = 5;  // of a receiver, before it pauses
  milliseconds pause_first{1'000};
  milliseconds pause_longest{60'000};

  time_source* time = nullptr;                            // null: real_time()
  std::function<void(const delivery_event&)> on_event{};  // on the own thread; must be short
};

// Of one queue, since it has a target, and as of now.
struct delivery_stats {
  std::string queue{};
  std::uint64_t delivered = 0;   // answered with 2xx
  std::uint64_t failed = 0;      // to be tried again, or dead because it was the last attempt
  std::uint64_t rejected = 0;    // dead at once: 3xx, other 4xx, a webhook that is not allowed
  std::uint64_t given_back = 0;  // not posted, or cut off at shutdown
  std::uint64_t lost = 0;
  std::uint64_t in_flight = 0;  // requests under way
  bool is_paused = false;       // its receiver keeps failing, or its URL is not allowed
};

class deliverer {
 public:
  using options = deliverer_options;

  // invalid: a secret, the file of authorities or a number cannot be used. Begins at once.
  static result<std::unique_ptr<deliverer>> open(engine& jobs, options o);
  deliverer(const deliverer&) = delete;
  deliverer& operator=(const deliverer&) = delete;
  ~deliverer();  // as stop, without time to finish

  // Looks at once which queues have a target. To be called after a queue was configured.
  void refresh();

  // Other rules and secrets from now on, for what is not under way. invalid: a secret is.
  void_result update(url_rules rules, std::vector<std::string> secrets);

  // Leases no more. Does not wait.
  void close();
  // After close: until nothing is under way. timed_out or stopped when it still is.
  status drained(const wait_limits& limits = {});
  // close; then lets requests finish within the limits, cuts off the others, and ends. ok: all
  // ended by themselves.
  status stop(const wait_limits& finish_within = {});

  std::vector<delivery_stats> stats() const;  // by queue

 private:
  class impl;
  explicit deliverer(std::unique_ptr<impl> it);
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
