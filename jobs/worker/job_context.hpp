#pragma once

// What a handler knows about the job it is doing, and how it hears that it should stop.
//
// Nothing has to be done to keep the job: the worker extends its lease for as long as the handler
// runs. What a handler that takes long should do is look at `stop_token` now and then, or hand it
// to whatever it waits in.
//
// Guarantees: any thread may call anything, and nothing waits. `why_stopped` says `none` until the
// token asks, and then always the same. What is said with `progress` and `log` goes out together,
// every half second at most, and before the job's end is told: of progress the last that was said,
// of lines all that there is room for (limits::log_lines_at_once and 1 MiB at a time; how many were
// left out is the last line). A line that could not be told is not told again.
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
  cancelled,   // somebody called the job off
  lease_lost,  // it is no longer this worker's: what the handler says will not be heard
  time_limit,  // it has taken longer than the job allows
  shutdown     // the worker ends; unless the handler succeeds, the job is given back
};
std::string_view to_string(stop_reason why) noexcept;

class job_context {
 public:
  explicit job_context(leased_job leased) : leased_(std::move(leased)) {}
  job_context(const job_context&) = delete;
  job_context& operator=(const job_context&) = delete;

  job_id id() const noexcept { return leased_.it->id; }
  const std::string& kind() const noexcept { return leased_.it->spec.kind; }
  const std::string& queue() const noexcept { return leased_.it->spec.queue; }
  std::uint32_t attempt() const noexcept { return leased_.attempt; }  // counts from 1
  const payload& args() const noexcept { return leased_.it->spec.args; }
  const std::string& metadata() const noexcept { return leased_.it->spec.metadata; }
  const job& whole() const noexcept { return *leased_.it; }
  lease_ref lease() const { return leased_.ref(); }
  job_ptr shared() const { return leased_.it; }

  std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  bool stop_requested() const noexcept { return stop_.stop_requested(); }
  // acquire: pairs with the release in request_stop.
  stop_reason why_stopped() const noexcept { return why_.load(acquire); }

  // How far it is, from 0 to 100, and a line for people.
  void progress(double percent, std::string text = {}) { notes_.note({percent, std::move(text)}); }
  // Lines of this attempt's log, kept as long as the job is.
  void log(std::string_view text) { notes_.note_lines(text); }

  // For the worker. The first reason stays.
  void request_stop(stop_reason why) noexcept;
  detail::attempt_notes& notes() noexcept { return notes_; }

 private:
  const leased_job leased_;
  std::stop_source stop_;
  detail::attempt_notes notes_;
  atomic<stop_reason> why_{stop_reason::none};
};

}  // namespace sluice::jobs
