#include "jobs/protocol/detail/connection.hpp"

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <utility>

#include "sluice/base/check.hpp"

namespace sluice::jobs::protocol {
namespace {

using boost_error = boost::system::error_code;
constexpr auto wait_read = net::stream::socket_type::wait_read;
constexpr auto wait_write = net::stream::socket_type::wait_write;

// Input that is kept while the session waits for another event.
constexpr std::size_t input_kept_max = std::size_t{64} << 10;
// Grace period before the minimum rate of a long command applies.
constexpr auto slow_start = std::chrono::milliseconds(1000);
// For a client to read the last reply before the close.
constexpr auto linger_time = std::chrono::milliseconds(1000);

}  // namespace

connection::connection(wire_state& server, net::loop& home, net::stream::socket_type socket,
                       std::shared_ptr<const net::tls_context> tls)
    : server_(server),
      loop_(home),
      client_(std::move(socket), std::move(tls)),
      memory_(*server.memory),
      is_local_(client_.peer_address() == "local"),
      in_handshake_(client_.is_secure()),
      seen_at_(seam::now()) {}

void connection::begin(const wire_server::make_session& make) {
  boost_error ignored;
  client_.socket().non_blocking(true, ignored);
  if (!is_local_) {
    client_.socket().set_option(boost::asio::ip::tcp::no_delay(true), ignored);
    client_.detect_peer_loss();  // to release a worker's jobs even if its machine is lost
  }
  memory_.open(client_.is_secure(), [&l = loop_, me = std::weak_ptr(self())](auto notice) {
    l.run_soon([me, notice] {
      if (const auto here = me.lock()) here->on_memory(notice);
    });
  });
  session_ = make(*this);
  if (!in_handshake_) session_->begin();
  loop_.touch(*this);
}

// Returns false if the handshake waits for the socket, or the connection was closed.
bool connection::continue_handshake() {
  switch (client_.handshake()) {
    case net::stream::step::done:
      in_handshake_ = false;
      session_->begin();
      return true;
    case net::stream::step::wants_read:
      wait_readable();
      return false;
    case net::stream::step::wants_write:
      wait_writable();
      return false;
    case net::stream::step::plain_text:
    case net::stream::step::failed:
      break;
  }
  close();
  return false;
}

void connection::pump() {
  touched_ = false;
  if (closed_) return;
  if (in_handshake_ && !continue_handshake()) {
    if (!closed_) set_deadline();
    return;
  }
  process_input();
  write();
  if (closed_) return;
  if (has_finished() && !is_lingering_) begin_linger();
  if (closed_) return;
  count_memory();
  const bool reads = may_read();
  if (lacks_memory_ && reservation_ != reservation::waits) memory_.wait_to_read();
  if (reads) {
    client_.has_more() ? loop_.run_soon([me = self()] {
      if (!me->closed_ && !me->is_reading_) me->on_readable();
    })
                       : wait_readable();
  }
  set_deadline();
}

// Reading.

bool connection::may_read() const noexcept {
  if (is_lingering_) return !saw_end_;
  if (is_last_ || saw_end_ || reservation_ == reservation::waits) return false;
  if (out_.size() > server_.options.unsent_bytes_max) return false;
  return in_.size() < std::max(input_kept_max, session_->needs()) && has_memory();
}

void connection::wait_readable() {
  if (std::exchange(is_reading_, true)) return;
  const auto event = client_.read_wants_write() ? wait_write : wait_read;
  client_.socket().async_wait(event, [me = self()](const boost_error& ec) {
    me->is_reading_ = false;
    if (me->closed_) return;
    if (ec) {
      me->close();
    } else if (me->in_handshake_) {
      me->loop_.touch(*me);
    } else {
      me->on_readable();
    }
    me->loop_.run_touched();
  });
}

void connection::on_readable() {
  loop_.touch(*this);
  boost_error ec;
  char* const buffer = loop_.read_buffer();
  const std::size_t n = client_.read_some(buffer, net::loop::read_bytes, ec);
  if (ec == boost::asio::error::would_block) return;
  if (ec || n == 0) {
    if (is_lingering_ || (ec && ec != boost::asio::error::eof)) return close();
    saw_end_ = true;
    must_consume_ = true;
    return;
  }
  server_.bytes_in.fetch_add(n, relaxed);
  memory_.moved(n);
  if (!is_lingering_) take_in({buffer, n});
}

// Input that the session consumes at once is never copied.
void connection::take_in(std::string_view fresh) {
  seen_at_ = seam::now();
  if (in_.empty()) {
    fresh.remove_prefix(feed_session(fresh));
    if (is_last_ || fresh.empty()) return;
    in_since_ = seen_at_;
    must_consume_ = session_->needs() > input_kept_max;
  } else {
    must_consume_ = true;
  }
  in_ += fresh;
}

std::size_t connection::feed_session(std::string_view in) {
  std::size_t total = 0;
  while (total < in.size() && !is_last_) {
    const std::size_t used = session_->consume(in.substr(total));
    check(used <= in.size() - total, "sluice::jobs::protocol::session",
          "to consume at most the given bytes");
    if (used == 0) break;
    total += used;
  }
  return total;
}

void connection::process_input() {
  if (!std::exchange(must_consume_, false)) return;
  if (!in_.empty() && !is_last_ && in_.size() >= session_->needs()) {
    const std::size_t used = feed_session(in_);
    if (used > 0) {
      end_reservation();
      in_since_ = seam::now();
    }
    if (used == in_.size() || is_last_) {
      std::string().swap(in_);  // an assignment would keep the memory
    } else {
      in_.erase(0, used);
    }
  }
  if (!is_last_ && !saw_end_ && waits_for_reservation()) return;
  if (!saw_end_ || is_last_) return;
  // The session first consumes as much of the input as it can.
  if (!std::exchange(reported_end_, true)) session_->end_of_input();
  if (replies_.empty() && !must_consume_) is_last_ = true;
}

// Reserves memory for a long command: its length, or the maximum for a line, whose length is
// unknown. Returns whether the reservation still waits.
bool connection::waits_for_reservation() {
  const std::size_t needs = session_->needs();
  if (needs <= input_kept_max || reservation_ == reservation::granted) return false;
  if (reservation_ == reservation::waits) return true;
  check(needs <= server_.options.command_bytes_max, "sluice::jobs::protocol::session",
        "to refuse a command beyond command_bytes_max");
  const bool is_line = needs == in_.size() + 1;
  const std::size_t most = is_line ? server_.options.command_bytes_max : needs;
  const bool has = memory_.reserve(most);
  if (has) {
    begin_use_of_reservation();
    in_.reserve(needs);
  } else {
    reservation_ = reservation::waits;
  }
  return !has;
}

void connection::begin_use_of_reservation() {
  lacks_memory_ = false;
  reservation_ = reservation::granted;
  granted_at_ = seam::now();
  in_before_grant_ = in_.size();
}

// Returns the time by which a command with a reservation must make progress to keep the minimum
// rate. Extended while no other connection waits for memory.
time_point connection::progress_deadline() const {
  const auto received = static_cast<double>(in_.size() - std::min(in_.size(), in_before_grant_));
  const std::chrono::duration<double> earned(received /
                                             static_cast<double>(server_.options.command_rate));
  const time_point due =
      granted_at_ + slow_start + std::chrono::duration_cast<time_point::duration>(earned);
  const time_point now = seam::now();
  return due <= now && !server_.memory->is_wanted() ? now + slow_start : due;
}

void connection::end_reservation() {
  if (std::exchange(reservation_, reservation::none) != reservation::none)
    memory_.cancel_reservation();
}

// Memory.

void connection::on_memory(net::client_memory::account::notice received) {
  if (closed_) return;
  if (received == net::client_memory::account::notice::close) return close();
  if (std::exchange(lacks_memory_, false)) {
    // The wait for memory does not count against the client.
    seen_at_ = in_since_ = seam::now();
    must_consume_ = true;
  }
  if (reservation_ == reservation::waits && memory_.has_reservation()) begin_use_of_reservation();
  pump();
  memory_.pass_on();
}

void connection::count_memory() {
  memory_.report({.input = in_.capacity(),
                  .output = out_.memory() + held_bytes_ + replies_.size() * sizeof(reply) +
                            session_->held_bytes()});
}

// If it returns false, the end of `pump` requests a notice, which pumps again.
bool connection::has_memory() const noexcept {
  if (memory_.may_read()) return true;
  lacks_memory_ = true;
  return false;
}

// Replies.

std::uint64_t connection::open() {
  replies_.emplace_back();
  return first_reply_ + replies_.size() - 1;
}

void connection::answer(std::uint64_t number, std::string_view bytes) {
  if (closed_) return;
  check(number >= first_reply_ && number < first_reply_ + replies_.size(),
        "sluice::jobs::protocol::client", "an open reply");
  reply& r = replies_[static_cast<std::size_t>(number - first_reply_)];
  check(!r.is_ready, "sluice::jobs::protocol::client", "an open reply");
  if (out_.empty()) seen_at_ = out_since_ = seam::now();
  loop_.touch(*this);
  if (number != first_reply_) {
    r.bytes = bytes;
    r.is_ready = true;
    held_bytes_ += bytes.size();
    return count_memory();
  }
  const bool was_full = replies_left() == 0;
  out_.append(bytes);
  do {
    replies_.pop_front();
    ++first_reply_;
    if (replies_.empty() || !replies_.front().is_ready) break;
    out_.append(replies_.front().bytes);
    held_bytes_ -= replies_.front().bytes.size();
  } while (true);
  if (was_full || replies_.empty()) must_consume_ = true;
  count_memory();
}

std::size_t connection::replies_left() const {
  const bool is_full = out_.size() + held_bytes_ > server_.options.unsent_bytes_max;
  if (is_full || !has_memory()) return 0;
  return server_.options.replies_max - std::min(server_.options.replies_max, replies_.size());
}

void connection::end() {
  is_last_ = true;
  loop_.touch(*this);
}

void connection::resume() {
  must_consume_ = true;
  loop_.touch(*this);
}

void connection::call_ended() noexcept {
  loop_.call_ended();
  if (closed_) return;
  must_consume_ = true;
  loop_.touch(*this);
}

void connection::write() {
  if (is_writing_ || out_.empty()) return;
  boost_error ec;
  while (!out_.empty()) {
    const std::string_view next = out_.next();
    const std::size_t n = client_.write_some(next.data(), next.size(), ec);
    if (ec) break;
    server_.bytes_out.fetch_add(n, relaxed);
    const bool was_full = replies_left() == 0;
    out_.take(n);
    memory_.moved(n);
    out_since_ = seam::now();
    if (was_full && replies_left() > 0) resume();
  }
  if (ec == boost::asio::error::would_block) return wait_writable();
  if (ec) close();
}

void connection::wait_writable() {
  if (std::exchange(is_writing_, true)) return;
  client_.socket().async_wait(wait_write, [me = self()](const boost_error& ec) {
    me->is_writing_ = false;
    if (me->closed_) return;
    ec ? me->close() : me->loop_.touch(*me);
    me->loop_.run_touched();
  });
}

// The end.

void connection::begin_linger() {
  boost_error ec;
  client_.shutdown_send(ec);
  if (ec || saw_end_) return close();
  is_lingering_ = true;
  linger_deadline_ = seam::now() + linger_time;
}

void connection::finish_up() {
  if (closed_ || is_last_) return;
  if (!in_handshake_ && !saw_end_ && may_read()) on_readable();  // commands that have arrived
  if (closed_) return;
  process_input();
  if (!in_handshake_) session_->finish_up();
  is_last_ = true;
  loop_.touch(*this);
}

void connection::close() {
  if (std::exchange(closed_, true)) return;
  const std::shared_ptr<connection> kept = self();
  client_.close();
  end_reservation();
  memory_.close();
  wake_at_ = deadline_ = time_point::max();
  gone_.request_stop();
  session_->gone();
  if (loop_.remove(*this)) server_.open.fetch_sub(1, relaxed);
}

// Time.

void connection::wake_at(time_point when) {
  wake_at_ = when;
  if (closed_) return;
  loop_.touch(*this);
}

void connection::set_deadline() {
  const wire_server_options& o = server_.options;
  time_point when = time_point::max();
  const auto add_limit = [&](time_point t) { when = std::min(when, t); };
  if (is_lingering_) {
    add_limit(linger_deadline_);
  } else {
    if (in_handshake_) add_limit(seen_at_ + o.greeting_time);
    if (!out_.empty()) add_limit(out_since_ + o.send_time);
    if (server_.memory->is_exceeded()) add_limit(seam::now() + net::client_memory::enforce_every);
    if (!in_.empty() && replies_.empty() && reservation_ != reservation::waits && !lacks_memory_) {
      add_limit(in_since_ + o.command_time);
      if (reservation_ == reservation::granted) add_limit(progress_deadline());
    }
    const bool is_idle = in_.empty() && out_.empty() && replies_.empty();
    if (o.idle_time.count() > 0 && is_idle && !lacks_memory_) add_limit(seen_at_ + o.idle_time);
    add_limit(wake_at_);
  }
  deadline_ = when;
  if (when != time_point::max()) loop_.watch(when);
}

void connection::on_deadline() {
  if (closed_) return;
  const time_point now = seam::now();
  if (!is_lingering_ && wake_at_ <= now) {
    wake_at_ = time_point::max();
    session_->on_time();
    loop_.touch(*this);
    return;
  }
  server_.memory->enforce(now);
  set_deadline();
  if (deadline_ > now) return;
  if (!is_lingering_) server_.timeouts.fetch_add(1, relaxed);
  close();
}

}  // namespace sluice::jobs::protocol
