#pragma once

// The job that a handler runs: its data, its stop token, and reporting of progress and log lines.
//
// The worker extends the lease while the handler runs. A handler that takes long should check
// `stop_token` regularly or pass it to every wait.
//
// Guarantees: all functions may be called from any thread and never block. `why_stopped` returns
// `none` until the stop token is triggered, and the same reason afterwards. Progress and log lines
// are sent together, at most every `report_every` (500 ms), and before the end of the job is
// reported. Only the latest progress is sent. Log lines are buffered up to
// limits::log_lines_at_once and 1 MiB; lines beyond that are dropped, and a last line counts them.
// Notes whose call fails are not sent again.
//
//     for (const page& p : book) {
//       if (ctx.stop_requested()) throw std::runtime_error("stopped between two pages");
//       render(p);
//       ctx.progress(100.0 * p.number / book.size(), "page " + std::to_string(p.number));
//     }

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "jobs/model/requests.hpp"
#include "jobs/worker/detail/attempt_notes.hpp"
#include "sluice/base/atomic.hpp"

namespace sluice::jobs {

enum class stop_reason : std::uint8_t {
  none,
  cancelled,   // the job was cancelled
  lease_lost,  // another worker may have the job; the handler's outcome is ignored
  time_limit,  // the job exceeded its time limit
  shutdown     // the worker stops; the job is released unless the handler succeeds
};
std::string_view to_string(stop_reason why) noexcept;

class job_context {
 public:
  explicit job_context(leased_job leased) : leased_(std::move(leased)) {}
  job_context(const job_context&) = delete;
  job_context& operator=(const job_context&) = delete;

  job_id id() const noexcept { return leased_.job->id; }
  const std::string& kind() const noexcept { return leased_.job->spec.kind; }
  const std::string& queue() const noexcept { return leased_.job->spec.queue; }
  std::uint32_t attempt() const noexcept { return leased_.attempt; }  // counts from 1
  const payload& args() const noexcept { return leased_.job->spec.args; }
  const std::string& metadata() const noexcept { return leased_.job->spec.metadata; }
  const job& whole() const noexcept { return *leased_.job; }
  lease_ref lease() const { return leased_.ref(); }
  job_ptr shared() const { return leased_.job; }

  std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  bool stop_requested() const noexcept { return stop_.stop_requested(); }
  // acquire: pairs with the release in request_stop.
  stop_reason why_stopped() const noexcept { return why_.load(acquire); }

  // Sets the progress, from 0 to 100, and a text for people.
  void progress(double percent, std::string text = {}) { notes_.note({percent, std::move(text)}); }
  // Adds lines to this attempt's log, which is kept as long as the job.
  void log(std::string_view text) { notes_.note_lines(text); }

  // Called by the worker. Only the first reason is kept.
  void request_stop(stop_reason why) noexcept;
  detail::attempt_notes& notes() noexcept { return notes_; }

 private:
  const leased_job leased_;
  std::stop_source stop_;
  detail::attempt_notes notes_;
  atomic<stop_reason> why_{stop_reason::none};
};

}  // namespace sluice::jobs
