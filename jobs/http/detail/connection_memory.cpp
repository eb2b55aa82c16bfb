// The memory of a connection: counting, bounds, and waiting for the budget.
#include <algorithm>

#include "jobs/http/detail/connection.hpp"
#include "jobs/http/detail/handlers.hpp"

namespace sluice::jobs::http {
namespace {

// A longer body needs a reservation.
constexpr std::size_t body_bytes_free = std::size_t{64} << 10;
// For a client that has a reservation to begin to use it.
constexpr auto slow_start = std::chrono::milliseconds(1000);
// A job with the largest arguments and the largest result, or a page of jobs.
constexpr std::uint64_t long_answer_bytes = limits::args_bytes_max + limits::result_bytes_max;

// Whether an answer may contain jobs. Answers to pushes and to reports of workers do not, and
// health checks and metrics must not wait for a store that hangs.
bool may_be_long(const route& r) {
  return r.while_closing == closing_rule::answered && r.needs != access::open &&
         r.handle != get_metrics && r.handle != push_jobs;
}

// Whether a long answer is made at once. The time of the others is unknown, so nothing is charged
// for them before `begin_load`. A lease is charged when it has jobs; they are given back if the
// budget is exceeded. The other methods answer without jobs.
bool is_made_at_once(const route& r, const request_head& head) {
  if (!is_safe(head.method)) return r.handle == cancel_job || r.handle == retry_job;
  return !head.prefer_wait && head.query().find("wait=") == std::string_view::npos;
}

}  // namespace

void connection::on_memory(net::client_memory::account::notice what) {
  if (closed_) return;
  if (what == net::client_memory::account::notice::close) return close();
  lacks_memory_ = false;
  since_ = seam::now();  // the time that it waited is not the client's
  if (room_ == room::waits && memory_.has_reservation()) {
    room_ = room::has;
    begin_use_of_room();
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
  memory_.hold({.input = input, .output = output, .expected = expected});
}

// At the end of a pump. While the budget is exceeded everything waits, also parts of answers.
void connection::wait_for_memory() {
  if (closed_ || room_ == room::waits) return;
  if (lacks_memory_) {
    memory_.wait_to_read();
  } else if (!loads_.empty() || (is_held_ && long_answers_ == 0)) {
    memory_.wait_to_ask();
  }
}

// Ignore the other slots' bytes: they cannot be sent before the first slot's.
bool connection::is_short_of_memory(const slot& s) const noexcept {
  const std::size_t unsent =
      &s == &slots_[first_ % slots_.size()] ? s.bytes.size() + out_.size() : unsent_bytes();
  return unsent > loop_.server().options.unsent_bytes_max || !has_memory();
}

// While false, the end of the pump arranges for another one.
bool connection::has_memory() const noexcept {
  if (memory_.may_read()) return true;
  lacks_memory_ = true;
  return false;
}

// ---- long answers

bool connection::must_hold_request() const noexcept {
  if (refused_ || stream_ != nullptr || routed_.to == nullptr || !may_be_long(*routed_.to)) {
    return false;
  }
  return long_answers_ > 0 || !memory_.may_ask();
}

bool connection::end_held_request() {
  if (!is_held_ || must_hold_request()) return false;
  is_held_ = false;
  end_request();
  return true;
}

void connection::begin_long_answer(const route& to, const request_head& head) {
  slot& s = at(number_);
  if (s.is_ready || s.parts != nullptr || !may_be_long(to)) return;
  s.is_long = true;
  ++long_answers_;
  s.expected_bytes = is_made_at_once(to, head) ? long_answer_bytes : 0;
  count_memory();
}

void connection::end_long_answer(slot& s) {
  if (std::exchange(s.is_long, false)) --long_answers_;
  s.expected_bytes = 0;
  s.is_loading = false;
  kept_bytes_ -= std::exchange(s.kept_bytes, 0);
  count_memory();
  if (!parser_) leave_room();
}

void connection::begin_load(std::uint64_t number, unique_function<void()> then) {
  if (closed_) return;
  loads_.push_back({number, std::move(then)});
  begin_next_load();
  if (!loads_.empty()) loop_.touch(*this);
}

// A request whose answer is already charged must not wait for its own charge.
bool connection::begin_next_load() {
  if (loads_.empty()) return false;
  if (at(loads_.front().number).expected_bytes == 0 && !memory_.may_ask()) return false;
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

// Answers to requests that waited may all be made at once. While the budget is exceeded, the long
// ones that a client can request again are dropped.
bool connection::must_drop_answer(const slot& s, const response& r) const noexcept {
  constexpr std::size_t short_bytes = std::size_t{64} << 10;
  if (!s.is_long || r.body.size() <= short_bytes || s.to == nullptr) return false;
  return (is_safe(s.to->method) || !r.leases.empty()) && loop_.server().memory->is_over();
}

// ---- long bodies

void connection::keep(std::uint64_t number, std::size_t bytes) {
  if (closed_) return;
  slot& s = at(number);
  kept_bytes_ += bytes - std::exchange(s.kept_bytes, bytes);
  count_memory();
  if (!parser_) leave_room();
  loop_.touch(*this);
}

bool connection::keeps_much() const noexcept {
  return kept_bytes_ > body_bytes_free;
}

void connection::ask_for_room() {
  const std::size_t held = stream_ != nullptr ? stream_->held_bytes() : parser_->kept_bytes();
  if (held < body_bytes_free) return leave_room();
  if (room_ != room::none) return;
  std::uint64_t most = stream_ != nullptr ? stream_->held_bytes_max() : parser_->bytes_max();
  const auto length = parser_->content_length();
  if (length) most = std::min<std::uint64_t>(most, *length);
  const bool has = memory_.reserve(most);
  room_ = has ? room::has : room::waits;
  if (has) begin_use_of_room();
}

// Not while a handler keeps a long body: its reservation ends when the engine has the body.
void connection::leave_room() {
  if (keeps_much()) return;
  if (std::exchange(room_, room::none) != room::none) memory_.cancel_reservation();
}

void connection::begin_use_of_room() {
  lacks_memory_ = false;
  room_since_ = seam::now();
  body_before_room_ = parser_ ? parser_->body_bytes() : 0;
  if (parser_ && stream_ == nullptr && parser_->content_length()) {
    parser_->reserve_body(static_cast<std::size_t>(*parser_->content_length()));
  }
}

// The deadline of a connection that has a reservation and uses it too slowly. It is extended while
// no other connection waits for memory.
time_point connection::must_have_come_on_by() const {
  const server_state& server = loop_.server();
  const auto brought = static_cast<double>(parser_->body_bytes() - body_before_room_);
  const std::chrono::duration<double> worth(
      brought / static_cast<double>(server.options.wanted_bytes_per_second));
  const time_point by =
      room_since_ + slow_start + std::chrono::duration_cast<time_point::duration>(worth);
  const time_point now = seam::now();
  return by <= now && !server.memory->is_wanted() ? now + slow_start : by;
}

}  // namespace sluice::jobs::http
