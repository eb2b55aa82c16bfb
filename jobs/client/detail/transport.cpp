#include "jobs/client/detail/transport.hpp"

#include <sys/socket.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <ctime>
#include <deque>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sluice/base/atomic.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/timers.hpp"

namespace sluice::jobs::detail {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds linger_time{2};

http::verb verb_of(http_request::verb method) {
  switch (method) {
    case http_request::verb::get:
      return http::verb::get;
    case http_request::verb::post:
      return http::verb::post;
    case http_request::verb::put:
      return http::verb::put;
    case http_request::verb::patch:
      return http::verb::patch;
    case http_request::verb::del:
      return http::verb::delete_;
  }
  return http::verb::get;
}

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::optional<unix_time> date_of(std::string_view text) {
  std::tm parts{};
  const std::string copy(text);
  if (strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts) == nullptr) return std::nullopt;
  return unix_time{std::int64_t{timegm(&parts)} * 1000};
}

struct connection {
  explicit connection(asio::io_context& io) : stream(io) {}

  beast::tcp_stream stream;
  std::optional<asio::ssl::stream<beast::tcp_stream&>> tls;  // over `stream`, for https
  beast::flat_buffer buffer;
  time_point idle_since{};

  // Calls `f` with the stream for requests.
  template <class F>
  void through(F f) {
    if (tls) {
      f(*tls);
    } else {
      f(stream);
    }
  }

  // Returns whether an idle connection has no input: any input is its end or a protocol error.
  bool is_quiet() {
    char byte = 0;
    const auto got = recv(stream.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && errno == EAGAIN;
  }
};

// One request in progress. Used only by the transport's thread once it has started.
struct exchange {
  http_request call;
  wait_limits limits;
  std::stop_token cancelled;
  transport::callback done;  // empty: ended

  std::unique_ptr<connection> conn;
  std::optional<tcp::resolver> resolver;
  http::request<http::string_body> request;
  std::optional<http::response_parser<http::string_body>> parser;
  bool kept = false;     // `conn` is a reused connection
  bool retried = false;  // on its second connection
  bool sent = false;     // at least in part
  bool reading = false;  // sent completely
  bool is_undo = false;  // sent even while the client is destroyed
  std::optional<asio::steady_timer> lingers;

  using stop_callback = std::stop_callback<unique_function<void()>>;
  std::optional<stop_callback> on_stop;
  std::optional<stop_callback> on_cancel;
  future<void> on_deadline;

  bool has_ended() const noexcept { return !done; }
};
using exchange_ptr = std::shared_ptr<exchange>;

}  // namespace

class transport::impl {
 public:
  impl(http_url server, const client_options& o, std::shared_ptr<asio::ssl::context> trust)
      : url_(std::move(server)),
        options_(o),
        trust_(std::move(trust)),
        io_(std::make_shared<asio::io_context>(1)) {
    thread_ = seam::thread([this] {
      thread_number_.store(seam::thread_number(), relaxed);  // relaxed: read by this thread
      io_->run();
    });
  }

  ~impl() {
    asio::post(*io_, [this] { shut_down(); });
    thread_ = {};  // joins
  }

  void send(exchange_ptr x) {
    asio::post(*io_, [this, x = std::move(x)] { begin(x); });
  }
  bool on_own_thread() const noexcept {
    return thread_number_.load(relaxed) == seam::thread_number();
  }

 private:
  // ---- limits

  void begin(const exchange_ptr& x) {
    active_.insert(x);
    if ((closing_ && !x->is_undo) || x->limits.stop.stop_requested() ||
        x->cancelled.stop_requested()) {
      return end(x, jobs::error_code::stopped);
    }
    if (x->limits.deadline.passed()) return end(x, jobs::error_code::timed_out);
    // These callbacks may run after the destruction of the transport: they share only the loop.
    const auto later = [io = io_, this](std::weak_ptr<exchange> target, jobs::error_code why) {
      return unique_function<void()>([io, this, target = std::move(target), why] {
        asio::post(*io, [this, target, why] {
          if (const exchange_ptr still = target.lock()) end(still, why);
        });
      });
    };
    if (x->limits.stop.stop_possible()) {
      x->on_stop.emplace(x->limits.stop, later(x, jobs::error_code::stopped));
    }
    if (x->cancelled.stop_possible()) {
      x->on_cancel.emplace(x->cancelled, later(x, jobs::error_code::stopped));
    }
    if (!x->limits.deadline.is_never()) {
      x->on_deadline = after(x->limits.deadline).then(later(x, jobs::error_code::timed_out));
    }
    fill(*x);
    find_connection(x);
  }

  // Ends the exchange because of a limit of the caller.
  void end(const exchange_ptr& x, jobs::error_code why) {
    if (x->has_ended()) return;
    std::string text = why == jobs::error_code::timed_out
                           ? "the deadline has passed before a response from "
                           : "stopped before a response from ";
    text += url_.text;
    if (x->sent && !x->call.repeatable) text += "; the server may have executed the request";
    // Frees its place for another call at once, even if no connection becomes free for long.
    if (!x->conn) std::erase(waiting_, x);
    // Operations in progress complete with an error and find the exchange ended.
    if (x->resolver) x->resolver->cancel();
    if (x->conn && x->sent && x->call.undo) {
      linger(x);
    } else if (x->conn) {
      close(*x->conn);
    }
    finish(x, jobs::error{why, std::move(text)});
  }

  // A response may be on its way. Closes the sending side, so that the server ends the call, and
  // reads the response so that it can be undone.
  void linger(const exchange_ptr& x) {
    if (x->reading) close_send_side(*x->conn);  // otherwise after the write
    x->lingers.emplace(*io_, linger_time);
    x->lingers->async_wait([x](error_code cancelled) {
      if (!cancelled && x->conn) close(*x->conn);
    });
  }
  static void close_send_side(connection& c) {
    error_code ignored;
    c.stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }
  void undo(const exchange_ptr& x) {
    const auto late = answer_in(*x);
    for (http_request& request : x->call.undo(late)) {
      auto sent = std::make_shared<exchange>();
      sent->call = std::move(request);
      sent->limits = deadline::after(linger_time);
      sent->done = [](const result<http_answer>&) {};
      sent->is_undo = true;
      begin(sent);
    }
  }

  void finish(const exchange_ptr& x, result<http_answer> reply) {
    x->on_stop.reset();
    x->on_cancel.reset();
    if (x->on_deadline.valid()) std::exchange(x->on_deadline, {}).cancel();
    active_.erase(x);
    auto done = std::exchange(x->done, nullptr);
    done(std::move(reply));
  }

  void shut_down() {
    closing_ = true;
    waiting_.clear();
    const auto all = active_;
    for (const exchange_ptr& x : all) {
      if (!x->is_undo) end(x, jobs::error_code::stopped);
    }
    idle_.clear();
    work_.reset();
  }

  // ---- connections

  void fill(exchange& x) {
    x.request.version(11);
    x.request.method(verb_of(x.call.method));
    x.request.target(url_.prefix + x.call.target);
    x.request.set(http::field::host, url_.authority);
    x.request.set(http::field::user_agent, options_.user_agent);
    x.request.set(http::field::accept, "application/json, application/problem+json");
    if (!options_.token.empty()) {
      x.request.set(http::field::authorization, "Bearer " + options_.token);
    }
    if (!x.call.body.empty()) {
      x.request.set(http::field::content_type, "application/json");
      x.request.body() = std::move(x.call.body);
    }
    x.request.prepare_payload();
  }

  void find_connection(const exchange_ptr& x) {
    while (!idle_.empty()) {
      auto kept = std::move(idle_.back());
      idle_.pop_back();
      if (seam::now() - kept->idle_since < options_.keep_idle && kept->is_quiet()) {
        x->conn = std::move(kept);
        x->kept = true;
        return write(x);
      }
      --open_;
    }
    if (open_ < options_.connections_max) return connect(x);
    if (waiting_.size() >= options_.waiting_max) {
      return finish(x, jobs::error{jobs::error_code::overloaded,
                                   "more than " + std::to_string(options_.waiting_max) +
                                       " calls are waiting for a connection to " + url_.text});
    }
    waiting_.push_back(x);
  }

  void connect(const exchange_ptr& x) {
    ++open_;
    x->kept = false;
    x->sent = false;
    x->conn = std::make_unique<connection>(*io_);
    const auto connected = [this, x](error_code failed, const tcp::endpoint&) {
      if (x->has_ended()) return drop(x);
      if (failed) return fail(x, "cannot connect", failed);
      x->conn->stream.socket().set_option(tcp::no_delay(true), failed);
      // Detects a vanished server even without a time limit.
      x->conn->stream.socket().set_option(asio::socket_base::keep_alive(true), failed);
      if (trust_ != nullptr) return begin_tls(x);
      write(x);
    };
    x->conn->stream.expires_after(options_.connect_timeout);
    error_code not_a_number;
    const auto address = asio::ip::make_address(url_.host, not_a_number);
    if (!not_a_number) {
      const auto port = static_cast<unsigned short>(std::stoul(url_.port));
      const std::vector<tcp::endpoint> one = {tcp::endpoint(address, port)};
      return x->conn->stream.async_connect(one, connected);
    }
    x->resolver.emplace(*io_);
    x->resolver->async_resolve(
        url_.host, url_.port,
        [this, x, connected](error_code failed, const tcp::resolver::results_type& found) {
          x->resolver.reset();
          if (x->has_ended()) return drop(x);
          if (failed) return fail(x, "cannot find the host", failed);
          x->conn->stream.async_connect(found, connected);
        });
  }

  // Uses the remaining connect_timeout.
  void begin_tls(const exchange_ptr& x) {
    x->conn->tls.emplace(x->conn->stream, *trust_);
    if (!expect_host(x->conn->tls->native_handle(), url_.host)) {
      return fail(x, "cannot begin TLS", asio::error::invalid_argument);
    }
    x->conn->tls->async_handshake(asio::ssl::stream_base::client, [this, x](error_code failed) {
      if (x->has_ended()) return drop(x);
      if (!failed) return write(x);
      if (failed == beast::error::timeout) return fail(x, "cannot begin TLS", failed);
      fail(x, "cannot begin TLS",
           handshake_failure(x->conn->tls->native_handle(), url_.host, failed), failed);
    });
  }

  void write(const exchange_ptr& x) {
    x->conn->stream.expires_after(options_.answer_timeout + x->call.waits);
    x->sent = true;
    const auto written = [this, x](error_code failed, std::size_t bytes) {
      if (x->has_ended()) {
        if (failed || !x->lingers) return drop(x);
        close_send_side(*x->conn);
        return read(x);
      }
      x->sent = bytes > 0;
      if (failed) return fail(x, "cannot send the request", failed);
      read(x);
    };
    x->conn->through([&](auto& stream) { http::async_write(stream, x->request, written); });
  }

  void read(const exchange_ptr& x) {
    x->reading = true;
    if (x->call.takes_long) x->conn->stream.expires_never();
    x->parser.emplace();
    x->parser->body_limit(options_.answer_bytes_max);
    const auto got = [this, x](error_code failed, std::size_t) {
      if (x->has_ended()) {
        x->lingers.reset();
        drop(x);
        if (!failed && x->call.undo) undo(x);
        return;
      }
      if (failed) return fail(x, "no response", failed);
      answered(x);
    };
    x->conn->through(
        [&](auto& stream) { http::async_read(stream, x->conn->buffer, *x->parser, got); });
  }

  static http_answer answer_in(exchange& x) {
    auto& answer = x.parser->get();
    return {.status = static_cast<int>(answer.result_int()),
            .body = std::move(answer.body()),
            .date = date_of(answer[http::field::date])};
  }

  void answered(const exchange_ptr& x) {
    const bool keep = x->parser->get().keep_alive() && x->conn->buffer.size() == 0 && !closing_;
    http_answer given = answer_in(*x);
    if (keep) {
      x->conn->stream.expires_never();
      x->conn->idle_since = seam::now();
      idle_.push_back(std::move(x->conn));
    } else {
      drop(x);
    }
    finish(x, std::move(given));
    serve_waiting();
  }

  void fail(const exchange_ptr& x, std::string_view step, error_code why) {
    fail(x, step, why == beast::error::timeout ? "timed out" : why.message(), why);
  }
  void fail(const exchange_ptr& x, std::string_view step, const std::string& cause,
            error_code why) {
    // The server may have closed a kept connection just as it was used again.
    const bool is_stale = x->kept && !x->retried && why != beast::error::timeout &&
                          !(x->parser && x->parser->got_some());
    x->reading = false;
    drop(x, /*serve=*/false);
    if (is_stale && (x->call.repeatable || !x->sent)) {
      x->retried = true;
      return connect(x);
    }
    std::string text = std::string(step) + ": " + cause;
    if (x->sent && !x->call.repeatable) text += "; the server may have executed the request";
    finish(x, jobs::error{jobs::error_code::unavailable,
                          "the job server at " + url_.text + ": " + text});
    serve_waiting();
  }

  static void close(connection& c) {
    error_code ignored;
    c.stream.socket().shutdown(tcp::socket::shutdown_both, ignored);
    c.stream.close();
  }

  // Closes the connection of an exchange.
  void drop(const exchange_ptr& x, bool serve = true) {
    if (!x->conn) return;
    close(*x->conn);
    x->conn.reset();
    --open_;
    if (serve) serve_waiting();
  }

  void serve_waiting() {
    while (!waiting_.empty() && (!idle_.empty() || open_ < options_.connections_max)) {
      const exchange_ptr next = std::move(waiting_.front());
      waiting_.pop_front();
      find_connection(next);
    }
  }

  // Constant after construction.
  const http_url url_;
  const client_options options_;
  const std::shared_ptr<asio::ssl::context> trust_;  // null: plain HTTP
  const std::shared_ptr<asio::io_context> io_;

  // Used only by the transport's thread.
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_->get_executor()};
  std::vector<std::unique_ptr<connection>> idle_;  // the most recently used last
  std::size_t open_ = 0;                           // connections, including idle ones
  std::deque<exchange_ptr> waiting_;               // for a connection, in order
  std::unordered_set<exchange_ptr> active_;
  bool closing_ = false;

  atomic<std::uint32_t> thread_number_{0};
  seam::thread thread_;
};

transport::transport(http_url server, const client_options& o,
                     std::shared_ptr<asio::ssl::context> trust)
    : impl_(std::make_unique<impl>(std::move(server), o, std::move(trust))) {}
transport::~transport() = default;

void transport::send(http_request request, wait_limits limits, std::stop_token cancelled,
                     callback done) {
  auto x = std::make_shared<exchange>();
  x->call = std::move(request);
  x->limits = std::move(limits);
  x->cancelled = std::move(cancelled);
  x->done = std::move(done);
  impl_->send(std::move(x));
}

bool transport::on_own_thread() const noexcept {
  return impl_->on_own_thread();
}

}  // namespace sluice::jobs::detail
