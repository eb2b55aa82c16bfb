#pragma once

// Posts jobs to URLs, so that they need no worker process, and posts the ends of jobs to webhooks.
//
// Every queue with a `deliver` target is delivered: its jobs are leased, up to the target's
// concurrency at a time, and posted to its URL. The response decides the outcome
// (docs/reference/delivery.md): 2xx is done; 408, 425, 429, 5xx and no response are retried; any
// other is dead. The queue "sluice/webhooks" is always delivered: each of its jobs has the URL for
// the end of another job.
//
// Guarantees: all functions may be called from any thread; `stop` and the destructor must not be
// called from `on_event`. A job is leased only when it can be sent at once. Delivery is at least
// once: if a response is lost, the job is posted again with the same Idempotency-Key. A request
// ends before its lease expires. Every URL is checked against the rules before each post: a queue
// whose URL is no longer allowed keeps its jobs; a webhook whose URL is not allowed is dead, with
// the reason.
// Circuit breaker: a receiver that keeps failing does not use up the attempts of its queue. After
// `failures_in_a_row` failures, no job is leased for `pause_first`, then one as a probe, and so on
// with pauses that double up to `pause_longest`, until a probe succeeds. A Retry-After of a 429 or
// 503 is such a pause, too. For webhooks, every host and port has its own pauses; jobs for a paused
// receiver are released until its end, and their attempts are not counted.
// Shutdown: `close` stops leasing; `stop` waits for requests within its limits, then cancels the
// others and releases their jobs. The engine must be neither destroyed nor stopped before that.
// Cost: one thread. Limits: see the options; memory is requests_max times the size of a job and a
// response.
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

// An event for logs. `message` is for people and contains no secret.
struct delivery_event {
  enum class event_kind : std::uint8_t {
    paused,          // a receiver keeps failing: no requests for some time
    resumed,         // the receiver works again
    not_allowed,     // no rule allows the URL of a queue: its jobs wait
    result_dropped,  // the job is done, but its response cannot be stored as its result
    lost             // the outcome could not be stored; the job is posted again after its lease
  };
  event_kind kind = event_kind::paused;
  std::string queue{};
  std::string receiver{};  // scheme, host and port
  job_id job = 0;          // 0: not about a job
  std::string message{};
};
std::string_view to_string(delivery_event::event_kind kind) noexcept;

struct deliverer_options {
  url_rules rules{};
  std::vector<std::string> secrets{};  // each signs every request; none: no signature
  std::string version{};               // for User-Agent
  std::string ca_file{};               // PEM, for TLS; empty: the system's authorities

  std::size_t requests_max = 256;  // in progress at a time, of all targets
  std::uint32_t webhook_concurrency = 32;
  milliseconds webhook_timeout{30'000};
  milliseconds connect_timeout{10'000};                 // within the timeout of the target
  milliseconds keep_idle{20'000};                       // for a connection without a request
  std::size_t answer_bytes_max = std::size_t{1} << 20;  // kept of a response, as the job's result

  std::uint32_t failures_in_a_row = 5;  // of a receiver, before a pause
  milliseconds pause_first{1'000};
  milliseconds pause_longest{60'000};

  time_source* time = nullptr;  // null: real_time()
  std::function<void(const delivery_event&)>
      on_event{};  // on the deliverer's thread; must be short
};

// Totals of a queue since it has a target, and current values.
struct delivery_stats {
  std::string queue{};
  std::uint64_t delivered = 0;   // responses with 2xx
  std::uint64_t failed = 0;      // to be retried, or dead after the last attempt
  std::uint64_t rejected = 0;    // dead at once: 3xx, other 4xx, a webhook that is not allowed
  std::uint64_t given_back = 0;  // released: not posted, or cancelled at shutdown
  std::uint64_t lost = 0;
  std::uint64_t in_flight = 0;  // requests in progress
  bool is_paused = false;       // the receiver keeps failing, or the URL is not allowed
};

class deliverer {
 public:
  using options = deliverer_options;

  // Starts delivering at once. Fails with `invalid` if a secret, the file of authorities or a
  // number is invalid.
  static result<std::unique_ptr<deliverer>> open(engine& jobs, options o);
  deliverer(const deliverer&) = delete;
  deliverer& operator=(const deliverer&) = delete;
  ~deliverer();  // as `stop` without time to finish

  // Reads the targets of the queues at once. Call it after configuring a queue.
  void refresh();

  // Replaces rules and secrets for new requests. Fails with `invalid` if a secret is invalid.
  void_result update(url_rules rules, std::vector<std::string> secrets);

  // Stops leasing. Does not block.
  void close();
  // Waits after `close` until no request is in progress. Returns timed_out or stopped at the
  // limits.
  status drained(const wait_limits& limits = {});
  // Closes, waits for requests within the limits, cancels the others, and ends. Returns ok if none
  // was cancelled.
  status stop(const wait_limits& finish_within = {});

  std::vector<delivery_stats> stats() const;  // by queue

 private:
  class impl;
  explicit deliverer(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
