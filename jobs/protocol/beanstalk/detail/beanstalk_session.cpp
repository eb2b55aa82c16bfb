// Input, puts and reserves; the other commands are in session_commands.cpp.
#include "jobs/protocol/beanstalk/detail/beanstalk_session.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "jobs/protocol/beanstalk/detail/session_words.hpp"
#include "jobs/protocol/beanstalk/detail/stats.hpp"
#include "jobs/protocol/browser_line.hpp"
#include "jobs/protocol/frames.hpp"

namespace sluice::jobs::beanstalk {
namespace {

// Limit of one client's pending puts: while a queue blocks, the client must wait instead of filling
// the server's memory.
constexpr std::uint64_t put_bytes_max = std::uint64_t{4} << 20;
constexpr std::size_t granted_bytes_max = std::size_t{1} << 20;
constexpr std::size_t puts_at_once = 1000;
constexpr std::size_t reserves_at_once = 1000;
constexpr milliseconds safety_margin{1000};
constexpr unix_time no_end{std::numeric_limits<std::int64_t>::max()};

// Returns the number of a line such as "delete 7\r\n"; zero: another line.
job_id deleted_in(std::string_view line) {
  constexpr std::string_view begins = "delete ";
  if (!line.starts_with(begins)) return 0;
  line.remove_prefix(begins.size());
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  return protocol::parse_number(line).value_or(0);
}

std::string_view why_refused(const error& why) {
  switch (why.code) {
    case error_code::queue_full:
    case error_code::overloaded:
    case error_code::disk_full:
    case error_code::timed_out:
      return words::out_of_memory;
    case error_code::too_large:
      return words::job_too_big;
    case error_code::shutting_down:
      return words::draining;
    default:
      return words::internal_error;
  }
}

}  // namespace

beanstalk_session::beanstalk_session(protocol::client& client, server_state& server)
    : client_(client),
      server_(server),
      address_(client.address()),
      used_(server.tubes.get("default")),
      earliest_(no_end) {
  // The table may be full of tubes in use.
  if (used_ == nullptr) used_ = std::make_shared<tube>("default");
  watched_ = {used_};
  watched_queues_ = {used_->name};
  used_->using_now.fetch_add(1, relaxed);
  used_->watching.fetch_add(1, relaxed);
  server_.connections.fetch_add(1, relaxed);
  server_.connections_total.fetch_add(1, relaxed);
}

beanstalk_session::~beanstalk_session() {
  leave();
}

// Input.

std::size_t beanstalk_session::consume(std::string_view in) {
  needs_ = 0;
  std::size_t used = 0;
  while (used < in.size()) {
    const std::size_t taken = step(in.substr(used));
    if (taken == 0) break;
    used += taken;
  }
  flush();
  if (no_more_input_) end_skip();
  return used;
}

std::size_t beanstalk_session::step(std::string_view in) {
  if (skip_left_ > 0) return skip_body(in);
  if (in_long_line_) return skip_line(in);
  if (is_reserving_ || has_yielded_ || is_ended_ || client_.replies_left() == 0) return 0;
  const auto line = protocol::cut_line(in, line_bytes_max);
  if (line.is == protocol::line_cut::kind::incomplete) return 0;
  if (line.is == protocol::line_cut::kind::too_long) {
    if (protocol::is_browser_line(in.substr(0, line.used))) return hang_up(line.used);
    in_long_line_ = in[line.used - 1] != '\n';
    server_.bad_commands.fetch_add(1, relaxed);
    client_.respond(words::bad_format);
    return line.used;
  }
  const command c = parse_command(line.text);
  if (c.problem != command::fault::none) {
    if (protocol::is_browser_line(line.text)) return hang_up(line.used);
    server_.bad_commands.fetch_add(1, relaxed);
    client_.respond(c.problem == command::fault::bad_format ? words::bad_format
                                                            : words::unknown_command);
    return line.used;
  }
  if (c.action == verb::put) return put(c, line.used, in);
  if (!may_begin(c)) return 0;
  server_.count(c.action);
  run(c, in.substr(0, line.used), in.substr(line.used));
  return line.used;
}

std::size_t beanstalk_session::skip_body(std::string_view in) {
  const std::uint64_t skipped = std::min<std::uint64_t>(skip_left_, in.size());
  if (skipped == skip_left_) {
    end_skip();
  } else {
    skip_left_ -= skipped;
  }
  return static_cast<std::size_t>(skipped);
}

// Called at the end of the body, or at the end of the input.
void beanstalk_session::end_skip() {
  if (std::exchange(skip_left_, 0) > 0) client_.answer(skip_reply_, words::job_too_big);
}

std::size_t beanstalk_session::skip_line(std::string_view in) {
  const std::size_t end = in.find('\n');
  if (end == std::string_view::npos) return in.size();
  in_long_line_ = false;
  return end + 1;
}

// Returns whether the command may begin, given the pending ones.
bool beanstalk_session::may_begin(const command& c) {
  switch (c.action) {
    case verb::use:
    case verb::watch:
    case verb::ignore:
    case verb::list_tube_used:
    case verb::list_tubes_watched:
      return true;
    default:
      break;
  }
  if (put_calls_ + other_calls_ > 0 || !puts_.empty()) return false;
  const bool may_overtake_deletes =
      c.action == verb::reserve || c.action == verb::reserve_with_timeout ||
      (c.action == verb::delete_ && reserved_.find(c.number) != nullptr);
  return may_overtake_deletes || is_finished();
}

bool beanstalk_session::is_finished() const {
  return put_calls_ + delete_calls_ + other_calls_ == 0 && puts_.empty() && deletes_.empty();
}

// Closes the connection at the first line of a web browser: no later line is executed.
std::size_t beanstalk_session::hang_up(std::size_t used) {
  if (!is_finished()) return 0;
  server_.bad_commands.fetch_add(1, relaxed);
  client_.respond(words::unknown_command);
  leave();
  client_.end();
  return used;
}

void beanstalk_session::flush() {
  flush_puts();
  flush_deletes();
}

void beanstalk_session::end_of_input() {
  no_more_input_ = true;
  end_skip();
  if (std::exchange(has_yielded_, false)) client_.resume();
  if (is_reserving_) wait_stop_.request_stop();
}

void beanstalk_session::finish_up() {
  is_ended_ = true;
  wait_stop_.request_stop();
}

void beanstalk_session::gone() {
  leave();
}

// Ends the session, perhaps before the connection: a client may keep its socket open after a quit.
void beanstalk_session::leave() {
  if (std::exchange(is_gone_, true)) return;
  is_ended_ = true;
  wait_stop_.request_stop();
  std::vector<lease_ref> held;
  for (const reserved_job& each : reserved_.take_all()) held.push_back(each.lease);
  server_.reserved.fetch_sub(held.size(), relaxed);
  for (const leased_job& each : granted_) held.push_back(each.ref());
  granted_.clear();
  granted_bytes_ = 0;
  release_leases(std::move(held));
  used_->using_now.fetch_sub(1, relaxed);
  for (const tube_ptr& each : watched_) each->watching.fetch_sub(1, relaxed);
  set_waiting(false);
  server_.connections.fetch_sub(1, relaxed);
  if (is_producer_) server_.producers.fetch_sub(1, relaxed);
  if (is_worker_) server_.workers.fetch_sub(1, relaxed);
}

// Puts.

std::size_t beanstalk_session::put(const command& c, std::size_t line_bytes, std::string_view in) {
  if (c.bytes > server_.job_bytes_max) {
    server_.count(c.action);
    server_.refused.fetch_add(1, relaxed);
    skip_reply_ = client_.open();
    skip_left_ = std::uint64_t{c.bytes} + 2;
    return line_bytes;
  }
  const auto body = protocol::cut_bulk(in.substr(line_bytes), c.bytes);
  if (body.is == protocol::bulk_cut::kind::incomplete) {
    needs_ = line_bytes + c.bytes + 2;
    return 0;
  }
  if (delete_calls_ + other_calls_ > 0 || !deletes_.empty()) return 0;
  if (put_bytes_ > 0 && put_bytes_ + c.bytes > put_bytes_max) return 0;
  const std::size_t used = line_bytes + body.used;
  server_.count(c.action);
  if (!std::exchange(is_producer_, true)) server_.producers.fetch_add(1, relaxed);
  if (body.is == protocol::bulk_cut::kind::unended) {
    client_.respond(words::expected_crlf);
    return used;
  }
  if (server_.is_draining.load(relaxed)) {
    server_.refused.fetch_add(1, relaxed);
    client_.respond(words::draining);
    return used;
  }
  puts_.push_back(spec_of(c, body.bytes));
  put_replies_.push_back(client_.open());
  put_bytes_ += c.bytes;
  if (puts_.size() >= puts_at_once) flush_puts();
  return used;
}

job_spec beanstalk_session::spec_of(const command& c, std::string_view body) const {
  job_spec spec;
  spec.queue = used_->name;
  spec.kind = "beanstalk";
  spec.args.data = body;
  spec.args.type = content_type::bytes;
  spec.priority = priority_of(c.pri);
  if (c.delay > 0) spec.run_at = server_.time.after(std::chrono::seconds(c.delay));
  spec.lease_for = duration_of(std::max(c.ttr, std::uint32_t{1}));
  spec.retry = server_.retry;
  return spec;
}

void beanstalk_session::flush_puts() {
  if (puts_.empty()) return;
  ++put_calls_;
  std::vector<job_spec> specs = std::exchange(puts_, {});
  std::vector<reply> replies = std::exchange(put_replies_, {});
  puts_.reserve(specs.size());  // the next group likely has the same size
  put_replies_.reserve(replies.size());
  std::uint64_t bytes = 0;
  for (const job_spec& each : specs) bytes += each.args.data.size();
  const wait_limits limits(deadline::after(server_.put_wait, server_.time.timers()),
                           client_.gone_token());
  client_.when_done(server_.jobs.push_many(std::move(specs), bulk::each, limits),
                    [this, bytes, numbers = std::move(replies),
                     target = used_](settled<std::vector<result<push_receipt>>> ended) {
                      --put_calls_;
                      put_bytes_ -= bytes;
                      puts_ended(numbers, *target, std::move(ended));
                    });
}

void beanstalk_session::puts_ended(const std::vector<reply>& replies, tube& target,
                                   settled<std::vector<result<push_receipt>>> ended) {
  std::uint64_t accepted = 0;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (!ended) {
      client_.answer(replies[i], words::internal_error);
      continue;
    }
    const result<push_receipt>& each = ended.value()[i];
    if (each && each->outcome == push_receipt::fate::accepted) {
      ++accepted;
      answer_number(replies[i], "INSERTED ", each->id);
    } else {
      client_.answer(replies[i], each ? words::out_of_memory : why_refused(each.error()));
    }
  }
  target.total_jobs.fetch_add(accepted, relaxed);
  server_.refused.fetch_add(replies.size() - accepted, relaxed);
}

// Reserves.

void beanstalk_session::reserve(const command& c, std::string_view line, std::string_view after) {
  if (!std::exchange(is_worker_, true)) server_.workers.fetch_add(1, relaxed);
  while (!granted_.empty()) {
    leased_job next = take_granted();
    // If the client reads slowly, the lease may have expired, and another worker may have the job.
    if (next.until > server_.time.now()) return send_reserved(client_.open(), std::move(next));
  }
  reserve_reply_ = client_.open();
  is_reserving_ = true;
  reserve_max_ =
      1 + count_following(line, after, std::min(client_.replies_left(), reserves_at_once - 1));
  reserve_until_ = time_point::max();
  if (c.action == verb::reserve_with_timeout && !c.is_endless) {
    const auto now = server_.time.timers().now();
    const milliseconds wait = duration_of(c.number);
    reserve_until_ = wait == milliseconds(0) ? time_point::min() : now + wait;
  }
  if (no_more_input_) reserve_until_ = time_point::min();
  request_lease();
}

// Returns the number of following reserves equal to `line` that can share its lease call: only
// deletes of reserved jobs may be between them. Any other command may refer to a job that one of
// them gets.
std::size_t beanstalk_session::count_following(std::string_view line, std::string_view after,
                                               std::size_t most) {
  const unix_time now = server_.time.now();
  std::size_t count = 0;
  while (count < most) {
    const std::size_t end = after.find('\n');
    if (end == std::string_view::npos) break;
    const std::string_view next = after.substr(0, end + 1);
    if (next == line) {
      ++count;
    } else {
      const reserved_job* const held = reserved_.find(deleted_in(next));
      if (held == nullptr || held->until <= now) break;
    }
    after.remove_prefix(end + 1);
  }
  return count;
}

void beanstalk_session::request_lease() {
  do {
    clock& timers = server_.time.timers();
    time_point until = reserve_until_;
    if (reserved_.empty()) {
      earliest_ = no_end;
    } else {
      const unix_time now = server_.time.now();
      if (earliest_ - safety_margin <= now) earliest_ = first_end();
      if (earliest_ < no_end) {
        until = std::min(until, timers.now() + (earliest_ - safety_margin - now));
      }
    }
    const wait_limits limits(deadline::at(until, timers),
                             no_more_input_ ? std::stop_token() : wait_stop_.get_token());
    auto answer = server_.jobs.lease({.queues = watched_queues_,
                                      .pick = lease_request::order::urgent,
                                      .max = reserve_max_,
                                      .worker = address_},
                                     limits);
    if (!answer.is_ready()) {
      set_waiting(true);
      client_.when_done(std::move(answer), [this](settled<result<leased>> ended) {
        result<leased> got = ended ? std::move(ended).value()
                                   : error{error_code::io_error, "the engine has stopped", 0};
        if (!on_leased(std::move(got))) request_lease();
      });
      return;
    }
    if (on_leased(answer.get())) return;
  } while (true);
}

// Bounds the memory of leased jobs that the client has not read: keeps one job, and more up to
// `bytes_max`.
void beanstalk_session::release_granted_beyond(std::size_t bytes_max) {
  std::size_t bytes = 0;
  std::size_t kept = 0;
  while (kept < granted_.size() && (kept == 0 || bytes < bytes_max)) {
    bytes += granted_[kept++].job->spec.args.data.size();
  }
  granted_bytes_ = bytes;
  std::vector<lease_ref> rest;
  for (std::size_t i = kept; i < granted_.size(); ++i) rest.push_back(granted_[i].ref());
  granted_.resize(kept);
  if (!rest.empty()) release_leases(std::move(rest));
}

leased_job beanstalk_session::take_granted() {
  leased_job next = std::move(granted_.back());
  granted_.pop_back();
  granted_bytes_ -= next.job->spec.args.data.size();
  return next;
}

bool beanstalk_session::on_leased(result<leased> got) {
  if (got) {
    is_reserving_ = false;
    set_waiting(false);
    if (is_gone_) {
      std::vector<lease_ref> held;
      for (const leased_job& each : *got) held.push_back(each.ref());
      release_leases(std::move(held));
      return true;
    }
    granted_ = *std::move(got);
    release_granted_beyond(granted_bytes_max);
    std::ranges::reverse(granted_);
    send_reserved(reserve_reply_, take_granted());
    return true;
  }
  const error_code why = got.error().code;
  const bool is_short = why == error_code::timed_out || why == error_code::overloaded;
  if (is_short && (delete_calls_ > 0 || !deletes_.empty())) {
    retries_after_deletes_ = true;  // they may make a job available
    return true;
  }
  std::string_view word = words::internal_error;
  if (why == error_code::timed_out) {
    earliest_ = first_end();
    if (earliest_ < no_end && earliest_ - safety_margin <= server_.time.now()) {
      word = words::deadline_soon;
      server_.deadline_soon.fetch_add(1, relaxed);
    } else if (reserve_until_ <= server_.time.timers().now()) {
      word = words::timed_out;
    } else {
      return false;  // the job whose lease was about to end is no longer reserved
    }
  } else if (why == error_code::stopped || why == error_code::shutting_down) {
    word = words::timed_out;
  } else if (why == error_code::overloaded) {
    word = words::out_of_memory;
  }
  if (word == words::timed_out) server_.timed_out.fetch_add(1, relaxed);
  is_reserving_ = false;
  set_waiting(false);
  client_.answer(reserve_reply_, word);
  // Close the connection of a client without reserved jobs.
  if (why == error_code::shutting_down && reserved_.empty()) {
    is_ended_ = true;
    client_.end();
  }
  return true;
}

void beanstalk_session::retry_after_deletes() {
  if (is_gone_) return;
  if (no_more_input_) reserve_until_ = time_point::min();
  request_lease();
}

void beanstalk_session::set_waiting(bool waits) {
  if (std::exchange(is_waiting_, waits) == waits) return;
  for (const tube_ptr& each : watched_) {
    waits ? each->waiting.fetch_add(1, relaxed) : each->waiting.fetch_sub(1, relaxed);
  }
  waits ? server_.waiting.fetch_add(1, relaxed) : server_.waiting.fetch_sub(1, relaxed);
}

unix_time beanstalk_session::first_end() {
  const std::size_t before = reserved_.size();
  const unix_time first = reserved_.forget_ended(server_.time.now());
  server_.reserved.fetch_sub(before - reserved_.size(), relaxed);
  return first;
}

void beanstalk_session::send_reserved(reply number, leased_job job) {
  const auto from = std::ranges::find(watched_queues_, job.job->spec.queue);
  reserved_job held{job.ref(), job.until, nullptr};
  if (from != watched_queues_.end()) {
    held.from = watched_[static_cast<std::size_t>(from - watched_queues_.begin())];
  } else {  // reserve-job leases from any tube
    held.from = server_.tubes.find(job.job->spec.queue);
  }
  earliest_ = std::min(earliest_, job.until);
  if (reserved_.insert(std::move(held))) server_.reserved.fetch_add(1, relaxed);
  answer_job(number, "RESERVED ", *job.job);
}

}  // namespace sluice::jobs::beanstalk
