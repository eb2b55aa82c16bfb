#include "jobs/http/detail/connection.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <utility>

namespace sluice::jobs::http {
namespace {

using boost::asio::ip::tcp;
using boost_error = boost::system::error_code;
namespace beast_http = boost::beast::http;

constexpr std::string_view status_100 = "HTTP/1.1 100 Continue\r\n\r\n";
// A reply buffer larger than this is freed after use.
constexpr std::size_t answer_bytes_kept = std::size_t{1} << 10;
constexpr std::size_t input_bytes_kept = std::size_t{4} << 10;
// Poll interval for the end of a client whose calls wait while nothing is read.
constexpr auto end_poll_interval = std::chrono::milliseconds(1000);
// The body of a refused request is read up to this size, to keep the connection usable.
constexpr std::size_t unwanted_bytes_max = std::size_t{64} << 10;

void clear_keeping_little(std::string& s, std::size_t bytes_kept = answer_bytes_kept) {
  if (s.capacity() > bytes_kept) {
    std::string().swap(s);  // an assignment would keep the memory
  } else {
    s.clear();
  }
}

}  // namespace

connection::connection(loop& home, net::stream::socket_type socket,
                       std::shared_ptr<const net::tls_context> tls)
    : loop_(home),
      client_(std::move(socket), std::move(tls)),
      memory_(*home.server().memory),
      in_handshake_(client_.is_secure()),
      slots_(2),
      since_(seam::now()) {}

void connection::begin() {
  boost_error ignored;
  client_.socket().non_blocking(true, ignored);
  client_.socket().set_option(tcp::no_delay(true), ignored);
  memory_.open(client_.is_secure(), [&l = loop_, me = std::weak_ptr(self())](auto notice) {
    l.run_soon([me, notice] {
      if (const auto here = me.lock()) here->on_memory(notice);
    });
  });
  loop_.touch(*this);
}

void connection::begin_refused() {
  begin();
  // Before the handshake, the client could not read the reply.
  one_too_many_ = in_handshake_;
  if (!in_handshake_) refuse_as_one_too_many();
}

void connection::refuse_as_one_too_many() {
  number_ = open_slot();
  is_last_ = true;
  ticket(self(), number_)
      .refuse({error_code::overloaded, "the limit of " +
                                           std::to_string(loop_.server().options.connections_max) +
                                           " connections is reached; try again later"});
}

bool connection::continue_handshake() {
  is_readable_ = false;
  switch (client_.handshake()) {
    case net::stream::step::done:
      in_handshake_ = false;
      is_readable_ = true;  // a request may have arrived with the last handshake bytes
      since_ = seam::now();
      if (one_too_many_) refuse_as_one_too_many();
      return true;
    case net::stream::step::plain_text:
      in_handshake_ = false;
      client_.become_plain();
      number_ = open_slot();
      is_last_ = true;
      ticket(self(), number_)
          .refuse({error_code::invalid, "this port uses TLS: use https:// instead of http://"});
      return true;
    case net::stream::step::wants_read:
      wait_readable();
      break;
    case net::stream::step::wants_write:
      if (!waits_writable_) wait_writable();
      break;
    case net::stream::step::failed:
      close();
      return false;
  }
  set_deadline();
  return false;
}

// Repeats until there is no progress: a write allows further reads, and a read may produce a reply.
// Yields to other connections after reads_left reads.
void connection::pump() {
  touched_ = false;
  if (closed_ || (in_handshake_ && !continue_handshake())) return;
  int reads_left = 16;
  bool moved = true;
  while (moved && !closed_) {
    moved = flush();
    if (closed_ || is_lingering_) break;
    moved = end_held_request() || moved;
    moved = begin_next_load() || moved;
    if (!may_read()) break;
    const std::size_t used = rest_.empty() ? 0 : consume_rest();
    moved = moved || used > 0;
    if (used > 0 || !is_readable_ || !may_read()) continue;
    if (reads_left-- == 0) break;
    on_readable();
    moved = true;
  }
  resume_parts();
  if (!closed_ && has_finished() && !is_lingering_) begin_linger();
  if (reads_no_more()) drop_unfinished_request();
  if ((is_lingering_ || reads_for_the_end()) && is_readable_ && !closed_) on_readable();
  if (closed_) return;
  count_memory();
  const bool reads = is_lingering_ || reads_for_the_end() || may_read();
  wait_for_memory();
  if (reads) {
    is_readable_ ? schedule_read() : wait_readable();
  }
  set_deadline();
}

// ---- reading

bool connection::may_read() const noexcept {
  const http_server_options& o = loop_.server().options;
  if (closed_ || saw_end_ || is_held_ || keeps_much() || reads_no_more()) return false;
  if (reservation_ == reservation::waits || (stream_ != nullptr && !stream_->is_ready_for_more()))
    return false;
  // The request that is being read has its slot from its head until its reply, which may precede
  // the end of its body.
  const std::size_t others = slots_open() - (head_done_ && number_ >= first_ ? 1 : 0);
  return others < o.pipelined_max && unsent_bytes() <= o.unsent_bytes_max && has_memory();
}

// A request that is never read to its end must not leave a deadline behind.
void connection::drop_unfinished_request() {
  if (is_held_) return;  // it is complete
  end_reservation();
  parser_.reset();
  head_done_ = false;
  routed_ = {};
  clear_keeping_little(rest_, input_bytes_kept);
}

void connection::wait_readable() {
  if (waits_readable_ || is_readable_) return;
  waits_readable_ = true;
  client_.socket().async_wait(tcp::socket::wait_read, [me = self()](const boost_error& ec) {
    me->waits_readable_ = false;
    if (me->closed_ || ec == boost::asio::error::operation_aborted) return;
    me->is_readable_ = true;
    me->loop_.touch(*me);
    me->loop_.run_touched();
  });
}

// Reads again after the other connections. Does not wait for the socket: OpenSSL may hold the
// bytes.
void connection::schedule_read() {
  if (std::exchange(reads_soon_, true)) return;
  loop_.run_soon([me = self()] {
    me->reads_soon_ = false;
    if (!me->closed_) me->loop_.touch(*me);
  });
}

void connection::on_readable() {
  boost_error ec;
  char* const buffer = loop_.read_buffer();
  const std::size_t n = client_.read_some(buffer, loop::read_bytes, ec);
  is_readable_ = false;
  if (ec == boost::asio::error::would_block || ec == boost::asio::error::try_again) {
    if (client_.read_wants_write() && !waits_writable_) wait_writable();
    return;
  }
  if (ec == boost::asio::error::eof) return end_of_input();
  if (ec) return close();
  loop_.counts().bytes_in.fetch_add(n, relaxed);
  memory_.moved(n);
  is_readable_ = n == loop::read_bytes || client_.has_more();  // a full buffer: there is more
  if (is_lingering_ || reads_no_more()) return;
  if (rest_.empty()) {
    const std::size_t used = consume({buffer, n});
    rest_.assign(buffer + used, n - used);
  } else {
    rest_.append(buffer, n);
    consume_rest();
  }
}

std::size_t connection::consume_rest() {
  std::string held = std::move(rest_);
  rest_.clear();
  const std::size_t used = consume(held);
  used == held.size() ? clear_keeping_little(held, input_bytes_kept) : void(held.erase(0, used));
  rest_ = std::move(held);
  return used;
}

void connection::end_of_input() {
  saw_end_ = true;
  if (is_lingering_) return close();
  // Ends waits for jobs: the client cannot take them. Pushes are still answered: the client may
  // have closed only its own direction.
  gone_.request_stop();
  is_last_ = true;
  if (head_done_ && !refused_) {
    // The request is incomplete: it is not answered.
    if (stream_ != nullptr) return close();
    at(number_).is_ready = true;
    is_held_ = false;
    refused_ = true;
  }
}

std::size_t connection::consume(std::string_view in) {
  std::size_t used = 0;
  while (used < in.size() && may_read()) {
    if (!parse_some(in, used)) break;
  }
  return closed_ || is_last_ ? in.size() : used;
}

// Returns false if more bytes are needed, or no further request is read.
bool connection::parse_some(std::string_view in, std::size_t& used) {
  if (!parser_) {
    parser_.emplace(static_cast<std::uint32_t>(loop_.server().options.head_bytes_max));
    since_ = seam::now();
  }
  boost_error ec;
  const std::string_view left = in.substr(used);
  used += parser_->put(boost::asio::buffer(left.data(), left.size()), ec);
  if (ec == beast_http::error::need_more) return false;
  if (ec) {
    refuse_bad_bytes(ec, left);
    return false;
  }
  if (!head_done_ && parser_->is_header_done()) {
    head_done_ = true;
    window_from_ = 0;
    since_ = seam::now();
    begin_request();
  }
  if (is_last_) return false;
  if (stream_ != nullptr) {
    stream_->feed(parser_->piece());
    if (stream_->is_refused()) {
      is_last_ = true;
      return false;
    }
  }
  if (parser_->is_done()) {
    is_held_ = must_hold_request();
    is_held_ ? parser_->keep_body() : end_request();
  } else if (head_done_) {
    note_progress();
    reserve_for_body();
  }
  return true;
}

// Restarts body_time whenever the body grew by body_bytes_per_second * body_time since the last
// restart. Faster progress before that does not extend it.
void connection::note_progress() {
  const http_server_options& o = loop_.server().options;
  const auto due = static_cast<std::uint64_t>(o.body_time.count()) * o.body_bytes_per_second / 1000;
  if (parser_->body_bytes() - window_from_ < std::max<std::uint64_t>(1, due)) return;
  window_from_ = parser_->body_bytes();
  since_ = seam::now();
}

// Called when the head is complete: finds the route, checks the request, and decides about its
// body.
void connection::begin_request() {
  const http_server_options& o = loop_.server().options;
  const request_head& head = parser_->head();
  number_ = open_slot();
  at(number_).without_body = head.method == method::head;
  at(number_).is_last = !parser_->keep_alive();
  at(number_).is_old = head.is_old;
  refused_ = false;
  routed_ = {};
  parser_->use_body(request_parser::body_use::discard, o.body_bytes_max);
  const auto invalid = [](std::string why) { return error{error_code::invalid, std::move(why)}; };

  if (!head.ambiguity.empty()) {
    is_last_ = true;  // the begin of the next request is ambiguous
    return refuse_early(invalid(std::string(head.ambiguity)), 400);
  }
  if (is_foreign_host(head.host_or_none(), o.hosts)) {
    return refuse_early(
        invalid("the Host header has a name that this server does not know; use localhost or an "
                "IP address, or add the name to http.hosts"),
        421);
  }
  // A browser sends requests of any web page, and sends bodies without a JSON content type even
  // without a preflight.
  if (may_be_cross_origin(head, client_.is_secure() ? "https" : "http", o.hosts)) {
    return refuse_early(
        invalid("a web page of another origin may have sent this request to " +
                head.host.value_or("a server without a name") +
                "; send a bearer token, or, behind a proxy with TLS, add the host name of the page "
                "to http.hosts"),
        403);
  }
  routed_ = find_route(head.method, head.path());
  at(number_).target = routed_.target;
  const std::string allow = routed_.allow.empty() ? "" : "Allow: " + routed_.allow + "\r\n";
  if (routed_.target == nullptr && routed_.status != 204) {
    const error_code code = routed_.status == 404 ? error_code::not_found : error_code::invalid;
    return refuse_early({code, routed_.detail}, routed_.status, allow);
  }
  if (routed_.target != nullptr && !is_authorized()) return;
  if (head.expects_other) {
    return refuse_early(invalid("the only supported Expect is 100-continue"), 417);
  }
  const auto length = parser_->content_length();
  const body_rule rule = routed_.target != nullptr ? routed_.target->body : body_rule::none;
  const bool streams = rule == body_rule::stream && head.media == media::ndjson;
  std::uint64_t bytes_max = o.body_bytes_max;
  if (rule != body_rule::none) {
    if (!head.has_length) {
      return refuse_early(invalid("this request needs a body, with a Content-Length or chunked"),
                          411);
    }
    // No web page of this server sends a form.
    const bool is_form_of_a_page = head.media == media::form && head.origin;
    if ((!is_read_as_json(head.media) && !streams) || is_form_of_a_page) {
      return refuse_early(invalid("the Content-Type must be application/json" +
                                  std::string(rule == body_rule::stream
                                                  ? ", or application/x-ndjson with one job per "
                                                    "line"
                                                  : "")),
                          415);
    }
    if (streams) {
      begin_stream();
      if (refused_) return;
      bytes_max = stream_->bytes_max();
    }
    parser_->use_body(streams ? request_parser::body_use::stream : request_parser::body_use::keep,
                      bytes_max);
  }
  if (length && *length > bytes_max) {
    stream_.reset();
    return refuse_early(
        {error_code::too_large, "the body is longer than " + std::to_string(bytes_max) + " bytes"},
        413);
  }
  if (head.expects_continue && !parser_->is_done()) {
    at(number_).bytes = status_100;
    made_bytes_ += status_100.size();
  }
}

// Checks the token and its role; the handler checks the queues.
bool connection::is_authorized() {
  caller_ = identity();
  const access needs = routed_.target->needs;
  if (needs == access::open) return true;
  const auto rules = loop_.server().tokens.load();
  if (!rules->has_value()) {
    note_for_audit();
    return true;
  }
  const std::string_view shown = parser_->head().bearer;
  if (shown.empty()) {
    refuse_early({error_code::unauthenticated,
                  parser_->head().has_authorization
                      ? "the Authorization header must be one token: Bearer slk_ID_SECRET"
                      : "this needs a token, in the header Authorization: Bearer slk_ID_SECRET"},
                 401, "WWW-Authenticate: Bearer\r\n");
    return false;
  }
  auto known = (*rules)->authenticate(shown, loop_.server().time.now());
  if (!known) {
    refuse_token(known.error());
    return false;
  }
  caller_ = *std::move(known);
  note_for_audit();
  if (const role needed = role_of(needs); !caller_.may(needed)) {
    refuse_early(caller_.refusal(needed), 403);
    return false;
  }
  return true;
}

// Slows the guessing of tokens: one attempt per connection, with a delayed reply.
void connection::refuse_token(const error& why) {
  loop_.server().note_intrusion(client_address());
  at(number_).held_until = seam::now() + loop_.server().options.wrong_token_delay;
  is_last_ = true;
  refuse_early(why, 401, "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n");
}

void connection::note_for_audit() {
  if (!is_audited(*routed_.target) || !loop_.server().options.on_audit) return;
  slot& s = at(number_);
  s.who = caller_.id();
  s.from = client_address();
  // Without the query, which may contain secrets.
  s.act =
      std::string(to_string(parser_->head().method)) + " " + std::string(parser_->head().path());
}

std::string connection::client_address() {
  std::string address = client_.peer_address();
  return address.empty() ? "unknown" : address;
}

void connection::begin_stream() {
  call c{loop_.server(), loop_.jobs(), parser_->head(), {}, ticket(self(), number_)};
  c.caller = caller_;
  const auto asked = read_push_parameters(c);
  if (!asked) return refuse_early(asked.error(), 0);
  stream_ = std::make_shared<ndjson_push>(loop_.server(), loop_.jobs(), std::move(c.reply), *asked,
                                          caller_);
}

// Refuses a request before its body. A short body is read and discarded, and the connection stays
// usable; otherwise, or if the client sent Expect: 100-continue, this is the last reply.
void connection::refuse_early(const error& why, int status, std::string_view headers) {
  refused_ = true;
  const auto length = parser_->content_length();
  const bool is_short = parser_->is_done() || (length && *length <= unwanted_bytes_max &&
                                               !parser_->head().expects_continue);
  if (!is_short) is_last_ = true;
  ticket(self(), number_).refuse(why, status, headers);
}

void connection::end_request() {
  if (!parser_->keep_alive()) is_last_ = true;
  if (stream_ != nullptr) {
    std::exchange(stream_, nullptr)->end();
  } else if (!refused_) {
    dispatch(parser_->body());
  }
  parser_.reset();
  end_reservation();
  head_done_ = false;
  routed_ = {};
  since_ = seam::now();
}

void connection::dispatch(std::string_view body) {
  ticket reply(self(), number_);
  if (routed_.target == nullptr) {  // OPTIONS
    return reply.answer({.status = 204, .headers = "Allow: " + routed_.allow + "\r\n"});
  }
  call c{loop_.server(),   loop_.jobs(), parser_->head(),         body,
         std::move(reply), routed_.id,   std::move(routed_.name), std::move(caller_)};
  begin_call(*routed_.target, c);
  begin_long_answer(*routed_.target, parser_->head());
}

void connection::refuse_bad_bytes(const boost_error& ec, std::string_view in) {
  const http_server_options& o = loop_.server().options;
  error why{error_code::invalid, "this is not HTTP/1.1: " + ec.message()};
  int status = 400;
  if (ec == beast_http::error::body_limit || ec == beast_http::error::header_limit) {
    why.code = error_code::too_large;
  }
  if (ec == beast_http::error::body_limit) {
    status = 413;
    why.message = "the body is longer than " + std::to_string(parser_->bytes_max()) + " bytes";
  } else if (ec == beast_http::error::header_limit && head_done_) {
    status = 431;
    why.message = "a chunk's size and extensions, or the trailers, are longer than " +
                  std::to_string(o.head_bytes_max) + " bytes";
  } else if (ec == beast_http::error::header_limit) {
    const bool is_target = in.substr(0, o.head_bytes_max).find('\n') == std::string_view::npos;
    status = is_target ? 414 : 431;
    why.message = std::string(is_target ? "the request line is" : "the headers are") +
                  " longer than " + std::to_string(o.head_bytes_max) + " bytes";
  } else if (ec == beast_http::error::bad_version) {
    status = 505;
    why.message = "this server speaks HTTP/1.1 and HTTP/1.0";
  }
  if (!head_done_) {
    number_ = open_slot();
  } else if (refused_) {
    is_last_ = true;
    return;
  }
  stream_.reset();
  refused_ = true;
  is_last_ = true;
  ticket(self(), number_).refuse(why, status);
}

// ---- answers

std::uint64_t connection::open_slot() {
  if (slots_open() == slots_.size()) {
    std::vector<slot> larger(slots_.size() * 2);
    for (std::uint64_t i = first_; i < next_; ++i) larger[i % larger.size()] = std::move(at(i));
    slots_ = std::move(larger);
  }
  slot& s = at(next_);
  clear_keeping_little(s.bytes);
  s.is_ready = s.is_last = s.without_body = s.is_full = s.is_long = false;
  s.expected_bytes = 0;
  s.is_loading = false;
  s.kept_bytes = 0;
  s.parts.reset();
  s.target = nullptr;
  s.leases.clear();
  s.held_until = {};
  s.who.clear();
  s.from.clear();
  s.act.clear();
  return next_++;
}

void connection::answer(std::uint64_t number, response&& r) {
  if (closed_) return give_back(r.leases);
  slot& s = at(number);
  check(number >= first_ && number < next_ && !s.is_ready && s.parts == nullptr,
        "sluice::jobs::http::connection", "one answer for each request");
  if (must_drop_answer(s, r)) {
    give_back(r.leases);
    return ticket(self(), number)
        .refuse({error_code::overloaded,
                 "the memory for connections (client_memory) is used up; try again later"});
  }
  const bool drains = loop_.server().is_closing() &&
                      (s.target == nullptr || s.target->while_closing != closing_rule::of_workers);
  if (drains || loop_.is_stopping()) ends_soon_ = true;
  // Pipelined requests behind it are answered too.
  s.is_last = s.is_last || r.is_last || ((is_last_ || ends_soon_) && number + 1 == next_);
  const std::size_t before = s.bytes.size();
  append_response(
      s.bytes, r,
      {.date = loop_.date(), .keeps_alive = !s.is_last, .without_body = s.without_body});
  made_bytes_ += s.bytes.size() - before;
  s.leases = std::move(r.leases);
  s.is_ready = true;
  end_long_answer(s);
  loop_.counts().count(s.target, r.status);
  if (!s.act.empty()) {
    loop_.server().options.on_audit(
        {.who = s.who, .from = s.from, .act = s.act, .status = r.status});
  }
  loop_.touch(*this);
}

void connection::resume() {
  if (closed_) return;
  since_ = seam::now();  // the server's own delay does not count against the client
  if (reservation_ == reservation::granted) begin_use_of_reservation();
  if (stream_ != nullptr && stream_->is_refused()) is_last_ = true;
  loop_.touch(*this);
}

// Moves the replies that are next in order to `out_` and writes them. Returns whether it moved any.
bool connection::flush() {
  bool moved = false;
  while (slots_open() > 0) {
    slot& s = at(first_);
    if (!s.is_ready) {
      // Moves 100 Continue or parts.
      moved = moved || !s.bytes.empty();
      made_bytes_ -= s.bytes.size();
      out_.adopt(std::move(s.bytes));
      clear_keeping_little(s.bytes);
      break;
    }
    if (s.held_until > seam::now()) break;
    made_bytes_ -= s.bytes.size();
    out_.adopt(std::move(s.bytes));
    if (!s.leases.empty()) {
      unsent_leases_.push_back({out_.end_offset(), std::move(s.leases)});
      s.leases.clear();
    }
    clear_keeping_little(s.bytes);
    ++first_;
    moved = true;
    if (s.is_last) is_last_ = true;
    if (slots_open() == 0 && !parser_) since_ = seam::now();  // idle from here on
  }
  if (unsent() && !waits_writable_) write();
  return moved;
}

void connection::write() {
  boost_error ec;
  while (unsent()) {
    const std::string_view next = out_.next();
    const std::size_t n = client_.write_some(next.data(), next.size(), ec);
    if (ec == boost::asio::error::would_block || ec == boost::asio::error::try_again) {
      return wait_writable();
    }
    if (ec) return close();
    out_.take(n);
    memory_.moved(n);
    written_ = seam::now();
    loop_.counts().bytes_out.fetch_add(n, relaxed);
  }
  unsent_leases_.clear();
}

void connection::wait_writable() {
  std::erase_if(unsent_leases_,
                [&](const unsent_leases& u) { return u.end <= out_.begin_offset(); });
  waits_writable_ = true;
  client_.socket().async_wait(tcp::socket::wait_write, [me = self()](const boost_error& ec) {
    me->waits_writable_ = false;
    if (me->closed_ || ec == boost::asio::error::operation_aborted) return;
    if (me->client_.read_wants_write()) me->is_readable_ = true;
    if (!me->in_handshake_) me->write();
    me->loop_.touch(*me);
    me->loop_.run_touched();
  });
}

void connection::give_back(const std::vector<lease_ref>& leases) {
  for (const lease_ref lease : leases) const auto given = loop_.jobs().release(lease);
}

// ---- the end

// Returns the deadline for the next input of the client.
time_point connection::input_deadline() const {
  const http_server_options& o = loop_.server().options;
  if (is_idle() && loop_.is_stopping()) return since_ + o.last_request_time;
  if (lacks_memory_ || is_held_) return time_point::max();
  if (!parser_) return is_idle() ? since_ + o.idle_time : time_point::max();
  if (!head_done_) return since_ + o.head_time;
  if (reservation_ == reservation::waits || (stream_ != nullptr && !stream_->is_ready_for_more())) {
    return time_point::max();
  }
  const time_point due = since_ + o.body_time;
  return reservation_ == reservation::granted ? std::min(due, progress_deadline()) : due;
}

void connection::set_deadline() {
  const http_server_options& o = loop_.server().options;
  time_point when = time_point::max();
  if (is_lingering_) {
    when = linger_deadline_;
  } else if (in_handshake_) {
    when = since_ + (loop_.is_stopping() ? o.last_request_time : o.head_time);
  } else {
    if (slots_open() > 0 && at(first_).held_until != time_point()) {
      when = std::min(when, at(first_).held_until);
    }
    if (unsent()) when = std::min(when, written_ + o.body_time);
    if (loop_.server().memory->is_exceeded()) {
      when = std::min(when, seam::now() + net::client_memory::enforce_every);
    }
    if (must_poll_for_the_end()) when = std::min(when, seam::now() + end_poll_interval);
    when = std::min(when, input_deadline());
  }
  deadline_ = when;
  if (when != time_point::max()) loop_.watch(when);
}

void connection::on_deadline() {
  loop_.server().memory->enforce(seam::now());
  // Ends only the waits: requests that were sent before the end are still read and answered.
  if (must_poll_for_the_end() && client_.has_ended()) gone_.request_stop();
  set_deadline();  // may have moved: other connections may no longer wait for memory
  if (deadline_ > seam::now()) return;
  const bool too_slow_to_read = unsent();
  if (in_handshake_) {
    loop_.counts().timeouts.fetch_add(1, relaxed);
    return close();
  }
  if (!too_slow_to_read && slots_open() > 0 && at(first_).held_until != time_point()) {
    at(first_).held_until = {};
    return loop_.touch(*this);
  }
  if (is_idle() && loop_.is_stopping()) {
    on_readable();  // a request that has arrived by now is answered
    if (closed_) return;
    return is_idle() ? close() : loop_.touch(*this);
  }
  if (is_lingering_ || (!too_slow_to_read && !parser_)) return close();
  loop_.counts().timeouts.fetch_add(1, relaxed);
  if (too_slow_to_read) return close();
  if (!head_done_) {
    number_ = open_slot();
  } else if (refused_) {
    return close();
  }
  stream_.reset();
  refused_ = true;
  is_last_ = true;
  ticket(self(), number_).refuse({error_code::timed_out, too_slow()}, 408);
  loop_.touch(*this);
}

std::string connection::too_slow() const {
  if (!head_done_) return "the head of the request arrived too slowly";
  const http_server_options& o = loop_.server().options;
  if (since_ + o.body_time <= seam::now()) return "the body arrived too slowly";
  return "the body arrived too slowly: other requests wait for its memory, so it must arrive at " +
         std::to_string(o.wanted_bytes_per_second) + " bytes per second or more";
}

// Called when the last reply was written. Closing a socket with unread input sends a reset, which
// may drop that reply, so input is read and discarded for up to linger_time.
void connection::begin_linger() {
  if (saw_end_) return close();
  boost_error ec;
  client_.shutdown_send(ec);
  if (ec) return close();
  is_lingering_ = true;
  clear_keeping_little(rest_, input_bytes_kept);
  linger_deadline_ = seam::now() + loop_.server().options.linger_time;
}

// The client of an idle or new connection may be sending a request now. Such a connection waits for
// it, and ends after its reply, which has `Connection: close`.
void connection::finish_up() {
  if (closed_) return;
  gone_.request_stop();
  if (slots_open() > 0) {
    ends_soon_ = true;
  } else if (!parser_) {
    since_ = seam::now();
  }
  loop_.touch(*this);
}

void connection::close() {
  if (std::exchange(closed_, true)) return;
  const std::shared_ptr<connection> keep = self();
  gone_.request_stop();
  for (const unsent_leases& u : unsent_leases_) give_back(u.leases);
  for (std::uint64_t i = first_; i < next_; ++i) {
    give_back(at(i).leases);
    at(i).parts.reset();
  }
  unsent_leases_.clear();
  end_reservation();
  memory_.close();
  std::exchange(loads_, {}).clear();
  if (stream_ != nullptr) std::exchange(stream_, nullptr)->abandon();
  client_.close();
  deadline_ = time_point::max();
  loop_.remove(*this);
}

}  // namespace sluice::jobs::http
