// Memory accounting of a connection: counting, bounds, and waits for the budget.
#include <algorithm>

#include "jobs/http/detail/connection.hpp"
#include "jobs/http/detail/handlers.hpp"

namespace sluice::jobs::http {
namespace {

// A longer body needs a reservation.
constexpr std::size_t body_bytes_free = std::size_t{64} << 10;
// Grace period before the minimum rate of a body with a reservation applies.
constexpr auto slow_start = std::chrono::milliseconds(1000);
// The largest job (arguments and result), or a page of jobs.
constexpr std::uint64_t long_answer_bytes = limits::args_bytes_max + limits::result_bytes_max;

// Returns whether a reply may contain jobs. Replies to pushes and to workers' reports do not, and
// health checks and metrics must not wait for a store that hangs.
bool may_be_long(const route& r) {
  return r.while_closing == closing_rule::answered && r.needs != access::open &&
         r.handle != get_metrics && r.handle != push_jobs;
}

// Returns whether a long reply is made at once. The others wait for an unknown time, so nothing is
// charged for them before `begin_load`. A lease is charged when it has jobs; they are released if
// the budget is exceeded. The other methods reply without jobs.
bool is_made_at_once(const route& r, const request_head& head) {
  if (!is_safe(head.method)) return r.handle == cancel_job || r.handle == retry_job;
  return !head.prefer_wait && head.query().find("wait=") == std::string_view::npos;
}

}  // namespace

void connection::on_memory(net::client_memory::account::notice received) {
  if (closed_) return;
  if (received == net::client_memory::account::notice::close) return close();
  lacks_memory_ = false;
  since_ = seam::now();  // the wait for memory does not count against the client
  if (reservation_ == reservation::waits && memory_.has_reservation()) {
    reservation_ = reservation::granted;
    begin_use_of_reservation();
  }
  pump();
  memory_.pass_on();
}

void connection::count_memory() {
  std::uint64_t expected = 0;
  std::size_t output = out_.memory();
  for (const slot& s : slots_) {
    expected += s.is_loading ? long_answer_bytes : s.expected_bytes;
    output += s.bytes.capacity();
  }
  std::size_t input = kept_bytes_ + rest_.capacity() + (parser_ ? parser_->memory() : 0);
  if (stream_ != nullptr) {
    input += stream_->input_memory();
    output += stream_->results_memory();
  }
  memory_.report({.input = input, .output = output, .expected = expected});
}

// Called at the end of `pump`. While the budget is exceeded all input waits, and parts of replies.
void connection::wait_for_memory() {
  if (closed_ || reservation_ == reservation::waits) return;
  if (lacks_memory_) {
    memory_.wait_to_read();
  } else if (!loads_.empty() || (is_held_ && long_answers_ == 0)) {
    memory_.wait_to_request();
  }
}

// For the first slot, ignores the bytes of the others: they cannot be sent before it.
bool connection::is_short_of_memory(const slot& s) const noexcept {
  const std::size_t unsent =
      &s == &slots_[first_ % slots_.size()] ? s.bytes.size() + out_.size() : unsent_bytes();
  return unsent > loop_.server().options.unsent_bytes_max || !has_memory();
}

// If it returns false, the end of `pump` requests a notice, which pumps again.
bool connection::has_memory() const noexcept {
  if (memory_.may_read()) return true;
  lacks_memory_ = true;
  return false;
}

// ---- long answers

bool connection::must_hold_request() const noexcept {
  if (refused_ || stream_ != nullptr || routed_.target == nullptr) return false;
  if (!may_be_long(*routed_.target)) return false;
  return long_answers_ > 0 || !memory_.may_request();
}

bool connection::end_held_request() {
  if (!is_held_ || must_hold_request()) return false;
  is_held_ = false;
  end_request();
  return true;
}

void connection::begin_long_answer(const route& target, const request_head& head) {
  slot& s = at(number_);
  if (s.is_ready || s.parts != nullptr || !may_be_long(target)) return;
  s.is_long = true;
  ++long_answers_;
  s.expected_bytes = is_made_at_once(target, head) ? long_answer_bytes : 0;
  count_memory();
}

void connection::end_long_answer(slot& s) {
  if (std::exchange(s.is_long, false)) --long_answers_;
  s.expected_bytes = 0;
  s.is_loading = false;
  kept_bytes_ -= std::exchange(s.kept_bytes, 0);
  count_memory();
  if (!parser_) end_reservation();
}

void connection::begin_load(std::uint64_t number, unique_function<void()> then) {
  if (closed_) return;
  loads_.push_back({number, std::move(then)});
  begin_next_load();
  if (!loads_.empty()) loop_.touch(*this);
}

// A request whose reply is already charged must not wait for its own charge.
bool connection::begin_next_load() {
  if (loads_.empty()) return false;
  if (at(loads_.front().number).expected_bytes == 0 && !memory_.may_request()) return false;
  load next = std::move(loads_.front());
  loads_.erase(loads_.begin());
  at(next.number).is_loading = true;
  count_memory();
  next.begin();
  return true;
}

void connection::end_load(std::uint64_t number) {
  if (closed_) return;
  at(number).is_loading = false;
  count_memory();
}

// Many waiting requests may get their replies at the same time. While the budget is exceeded, long
// replies that the client can request again are dropped.
bool connection::must_drop_answer(const slot& s, const response& r) const noexcept {
  constexpr std::size_t short_bytes = std::size_t{64} << 10;
  if (!s.is_long || r.body.size() <= short_bytes || s.target == nullptr) return false;
  return (is_safe(s.target->method) || !r.leases.empty()) && loop_.server().memory->is_exceeded();
}

// ---- long bodies

void connection::keep(std::uint64_t number, std::size_t bytes) {
  if (closed_) return;
  slot& s = at(number);
  kept_bytes_ += bytes - std::exchange(s.kept_bytes, bytes);
  count_memory();
  if (!parser_) end_reservation();
  loop_.touch(*this);
}

bool connection::keeps_much() const noexcept {
  return kept_bytes_ > body_bytes_free;
}

void connection::reserve_for_body() {
  const std::size_t held = stream_ != nullptr ? stream_->held_bytes() : parser_->kept_bytes();
  if (held < body_bytes_free) return end_reservation();
  if (reservation_ != reservation::none) return;
  std::uint64_t most = stream_ != nullptr ? stream_->held_bytes_max() : parser_->bytes_max();
  const auto length = parser_->content_length();
  if (length) most = std::min<std::uint64_t>(most, *length);
  const bool has = memory_.reserve(most);
  reservation_ = has ? reservation::granted : reservation::waits;
  if (has) begin_use_of_reservation();
}

// Keeps the reservation while a handler keeps a long body: it ends when the engine has the body.
void connection::end_reservation() {
  if (keeps_much()) return;
  if (std::exchange(reservation_, reservation::none) != reservation::none)
    memory_.cancel_reservation();
}

void connection::begin_use_of_reservation() {
  lacks_memory_ = false;
  granted_at_ = seam::now();
  body_before_grant_ = parser_ ? parser_->body_bytes() : 0;
  if (parser_ && stream_ == nullptr && parser_->content_length()) {
    parser_->reserve_body(static_cast<std::size_t>(*parser_->content_length()));
  }
}

// Returns the time by which a body with a reservation must make progress to keep the minimum rate.
// Extended while no other connection waits for memory.
time_point connection::progress_deadline() const {
  const server_state& server = loop_.server();
  const auto received = static_cast<double>(parser_->body_bytes() - body_before_grant_);
  const std::chrono::duration<double> earned(
      received / static_cast<double>(server.options.wanted_bytes_per_second));
  const time_point due =
      granted_at_ + slow_start + std::chrono::duration_cast<time_point::duration>(earned);
  const time_point now = seam::now();
  return due <= now && !server.memory->is_wanted() ? now + slow_start : due;
}

}  // namespace sluice::jobs::http
