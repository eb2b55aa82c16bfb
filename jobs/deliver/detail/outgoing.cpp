#include "jobs/deliver/detail/outgoing.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>

#include "jobs/deliver/detail/kept_body.hpp"
#include "jobs/json/text.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {
namespace {

namespace asio = boost::asio;
namespace ssl = asio::ssl;
namespace http = boost::beast::http;
using asio::ip::tcp;
using failed_code = boost::system::error_code;
using fault = outgoing_end::fault;
using tls_stream = ssl::stream<tcp::socket>;

constexpr int interim_answers_max = 8;  // of status 1xx, before the final response
constexpr std::size_t field_bytes_max = 1024;

struct connection {
  explicit connection(asio::io_context& on) : stream(std::in_place_type<tcp::socket>, on) {}
  connection(asio::io_context& on, ssl::context& tls)
      : stream(std::in_place_type<tls_stream>, on, tls) {}

  std::variant<tcp::socket, tls_stream> stream;
  boost::beast::flat_buffer buffer{std::size_t{128} << 10};
  std::string origin;
  loop::alarm expires;

  tcp::socket& socket() {
    auto* const plain = std::get_if<tcp::socket>(&stream);
    return plain != nullptr ? *plain : std::get<tls_stream>(stream).next_layer();
  }
  void close() {
    failed_code ignored;
    socket().close(ignored);
  }
  // Returns whether an idle connection has no input: any input is its end or a protocol error.
  bool is_quiet() {
    char byte = 0;
    const auto got = recv(socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && errno == EAGAIN;
  }
};

// One request in progress. Callbacks check has_ended first.
struct exchange {
  outgoing::request_id id = 0;
  web_url url;
  milliseconds timeout{};
  outgoing::callback done;  // empty: ended
  http::request<http::string_body> request;

  std::unique_ptr<connection> conn;
  std::optional<tcp::resolver> resolver;
  std::optional<http::response_parser<kept_body>> parser;
  int interim = 0;       // responses of status 1xx
  std::string unsent{};  // why it could not be sent completely
  loop::alarm limit;
  loop::alarm connect_limit;

  bool has_ended() const noexcept { return !done; }
};
using exchange_ptr = std::shared_ptr<exchange>;

std::string why_tls(const failed_code& code, tls_stream& stream) {
  const long verdict = SSL_get_verify_result(stream.native_handle());
  if (verdict == X509_V_OK) return code.message();
  // The check of the name has no code of its own.
  if (verdict == X509_V_ERR_UNSPECIFIED) return "the certificate does not name the host";
  return std::string("the certificate is not trusted: ") + X509_verify_cert_error_string(verdict);
}

std::string field_of(const http::response<kept_body>& from, http::field name) {
  const auto value = from[name];
  return std::string(value.data(), std::min<std::size_t>(value.size(), field_bytes_max));
}

}  // namespace

std::string_view to_string(outgoing_end::fault cause) noexcept {
  switch (cause) {
    case fault::none:
      return "none";
    case fault::host_not_found:
      return "host_not_found";
    case fault::connect_failed:
      return "connect_failed";
    case fault::tls_failed:
      return "tls_failed";
    case fault::connection_lost:
      return "connection_lost";
    case fault::bad_answer:
      return "bad_answer";
    case fault::timed_out:
      return "timed_out";
    case fault::cancelled:
      return "cancelled";
  }
  return "unknown";
}

class outgoing::impl {
 public:
  impl(loop& l, outgoing_options o) : loop_(l), options_(std::move(o)) {}

  void_result prepare_tls() {
    failed_code failed;
    tls_.set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 |
                         ssl::context::no_sslv3 | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1,
                     failed);
    tls_.set_verify_mode(ssl::verify_peer, failed);
    if (options_.ca_file.empty()) {
      tls_.set_default_verify_paths(failed);
    } else {
      tls_.load_verify_file(options_.ca_file, failed);
    }
    ERR_clear_error();
    if (!failed) return jobs::done{};
    return error{error_code::invalid,
                 "cannot read certificate authorities from " +
                     (options_.ca_file.empty() ? std::string("the system") : options_.ca_file) +
                     ": " + failed.message()};
  }

  request_id send(outgoing_request request, callback done) {
    check(active_.size() < options_.requests_max, "sluice::jobs::outgoing",
          "at most requests_max requests at a time");
    const auto x = std::make_shared<exchange>();
    x->id = ++last_id_;
    x->timeout = request.timeout;
    x->done = std::move(done);
    fill(*x, request);
    x->url = std::move(request.url);
    active_.emplace(x->id, x);
    x->limit = loop_.after(x->timeout, [this, x] {
      x->limit = {};
      end(x, {.cause = fault::timed_out,
              .message = "no complete response within " + format_duration(x->timeout)});
    });
    find_connection(x);
    return x->id;
  }

  void cancel(request_id id) {
    if (const auto found = active_.find(id); found != active_.end()) {
      const exchange_ptr x = found->second;
      end(x, {.cause = fault::cancelled, .message = "cancelled"});
    }
  }

  void close() {
    closed_ = true;
    while (!active_.empty()) cancel(active_.begin()->first);
    for (const auto& c : idle_) loop_.cancel(c->expires);
    idle_.clear();
  }

  std::size_t in_progress() const noexcept { return active_.size(); }
  std::size_t idle() const noexcept { return idle_.size(); }

 private:
  static void fill(exchange& x, outgoing_request& request) {
    x.request.version(11);
    x.request.method(http::verb::post);
    x.request.target(request.url.target());
    x.request.set(http::field::host, request.url.authority());
    for (const auto& [name, value] : request.headers) x.request.set(name, value);
    x.request.body() = std::move(request.body);
    x.request.prepare_payload();
  }

  // Ends the exchange if it has not ended, and closes its connection.
  void end(const exchange_ptr& x, outgoing_end result) {
    if (x->has_ended()) return;
    if (x->resolver) x->resolver->cancel();
    // Operations in progress complete with an error and find the exchange ended.
    if (x->conn) x->conn->close();
    finish(x, std::move(result));
  }

  void finish(const exchange_ptr& x, outgoing_end result) {
    loop_.cancel(x->limit);
    loop_.cancel(x->connect_limit);
    active_.erase(x->id);
    auto done = std::exchange(x->done, nullptr);
    done(std::move(result));
  }

  // ---- connections

  void find_connection(const exchange_ptr& x) {
    const std::string origin = x->url.origin();
    while (true) {
      const auto found = std::find_if(idle_.rbegin(), idle_.rend(),
                                      [&](const auto& c) { return c->origin == origin; });
      if (found == idle_.rend()) return connect(x);
      auto kept = std::move(*found);
      idle_.erase(std::next(found).base());
      loop_.cancel(kept->expires);
      if (!kept->is_quiet()) continue;
      x->conn = std::move(kept);
      return write(x);
    }
  }

  void connect(const exchange_ptr& x) {
    const bool is_tls = x->url.protocol == web_url::scheme::https;
    x->conn = is_tls ? std::make_unique<connection>(loop_.context(), tls_)
                     : std::make_unique<connection>(loop_.context());
    x->conn->origin = x->url.origin();
    loop_.cancel(x->connect_limit);
    x->connect_limit = loop_.after(options_.connect_timeout, [this, x] {
      x->connect_limit = {};
      end(x, {.cause = fault::timed_out,
              .message = "no connection within " + format_duration(options_.connect_timeout)});
    });
    if (x->url.kind != web_url::host_kind::name) {
      const tcp::endpoint only(asio::ip::make_address(x->url.host), x->url.port);
      x->conn->socket().async_connect(only,
                                      [this, x](failed_code failed) { connected(x, failed); });
      return;
    }
    x->resolver.emplace(loop_.context());
    x->resolver->async_resolve(
        x->url.host, std::to_string(x->url.port), tcp::resolver::numeric_service,
        [this, x](failed_code failed, const tcp::resolver::results_type& found) {
          x->resolver.reset();
          if (x->has_ended()) return;
          if (failed) {
            return end(
                x, {.cause = fault::host_not_found,
                    .message = "cannot resolve the host " + x->url.host + ": " + failed.message()});
          }
          asio::async_connect(x->conn->socket(), found,
                              [this, x](failed_code f, const tcp::endpoint&) { connected(x, f); });
        });
  }

  void connected(const exchange_ptr& x, failed_code failed) {
    if (x->has_ended()) return;
    if (failed) {
      return end(
          x, {.cause = fault::connect_failed, .message = "cannot connect: " + failed.message()});
    }
    failed_code ignored;
    x->conn->socket().set_option(tcp::no_delay(true), ignored);
    if (x->url.protocol == web_url::scheme::https) return shake_hands(x);
    loop_.cancel(x->connect_limit);
    write(x);
  }

  void shake_hands(const exchange_ptr& x) {
    auto& stream = std::get<tls_stream>(x->conn->stream);
    failed_code failed;
    stream.set_verify_callback(ssl::host_name_verification(x->url.host), failed);
    if (x->url.kind == web_url::host_kind::name &&
        SSL_ctrl(stream.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                 x->url.host.data()) != 1) {
      return end(x, {.cause = fault::tls_failed, .message = "cannot set the host name for TLS"});
    }
    stream.async_handshake(ssl::stream_base::client, [this, x, &stream](failed_code f) {
      if (x->has_ended()) return;
      if (f) return end(x, {.cause = fault::tls_failed, .message = "TLS: " + why_tls(f, stream)});
      loop_.cancel(x->connect_limit);
      write(x);
    });
  }

  // ---- the exchange itself

  void write(const exchange_ptr& x) {
    std::visit(
        [&](auto& stream) {
          http::async_write(stream, x->request, [this, x](failed_code failed, std::size_t) {
            if (x->has_ended()) return;
            // The receiver may have responded without reading the whole request.
            if (failed) x->unsent = failed.message();
            read(x);
          });
        },
        x->conn->stream);
  }

  void read(const exchange_ptr& x) {
    x->parser.emplace();
    x->parser->header_limit(static_cast<std::uint32_t>(options_.head_bytes_max));
    x->parser->body_limit(boost::none);  // kept_body has its own limit
    x->parser->get().body().most = options_.body_bytes_max;
    std::visit(
        [&](auto& stream) {
          http::async_read(stream, x->conn->buffer, *x->parser,
                           [this, x](failed_code failed, std::size_t) {
                             if (!x->has_ended()) received(x, failed);
                           });
        },
        x->conn->stream);
  }

  void received(const exchange_ptr& x, failed_code failed) {
    const bool is_cut = failed == http::error::body_limit && x->parser->is_header_done();
    if (failed && !is_cut) return read_failed(x, failed);
    const auto& answer = x->parser->get();
    const int status = static_cast<int>(answer.result_int());
    if (status < 200) {
      if (status == 101 || ++x->interim > interim_answers_max) {
        return end(x, {.cause = fault::bad_answer,
                       .message = "unexpected response with status " + std::to_string(status)});
      }
      return read(x);
    }
    outgoing_end result{.cause = fault::none,
                        .message = {},
                        .status = status,
                        .content_type = field_of(answer, http::field::content_type),
                        .retry_after = field_of(answer, http::field::retry_after),
                        .location = field_of(answer, http::field::location),
                        .body = std::move(x->parser->get().body().text),
                        .is_cut = is_cut};
    const bool may_stay = !is_cut && x->unsent.empty() && answer.keep_alive() &&
                          x->conn->buffer.size() == 0 && !closed_;
    if (may_stay) {
      keep(std::move(x->conn));
    } else {
      x->conn->close();
    }
    finish(x, std::move(result));
  }

  void read_failed(const exchange_ptr& x, failed_code failed) {
    const bool got_some = x->parser->got_some() || x->interim > 0;
    if (!x->unsent.empty()) {
      return end(
          x, {.cause = fault::connection_lost, .message = "cannot send the request: " + x->unsent});
    }
    const bool is_nonsense =
        failed.category() == make_error_code(http::error::bad_version).category();
    if (failed == http::error::end_of_stream || (!is_nonsense && !got_some)) {
      return end(
          x, {.cause = fault::connection_lost,
              .message = failed == http::error::end_of_stream
                             ? "the receiver closed the connection without a response"
                             : "the connection was lost before a response: " + failed.message()});
    }
    if (failed == http::error::header_limit || failed == http::error::buffer_overflow) {
      return end(x, {.cause = fault::bad_answer,
                     .message = "the head of the response is larger than " +
                                std::to_string(options_.head_bytes_max) + " bytes"});
    }
    end(x, {.cause = fault::bad_answer,
            .message = (is_nonsense && failed != http::error::partial_message
                            ? "the response is not HTTP: "
                            : "the response is incomplete: ") +
                       failed.message()});
  }

  // ---- idle connections, the most recently used last

  void keep(std::unique_ptr<connection> c) {
    const auto same = [&](const auto& other) { return other->origin == c->origin; };
    if (static_cast<std::size_t>(std::ranges::count_if(idle_, same)) >=
        options_.idle_per_origin_max) {
      drop(std::ranges::find_if(idle_, same));
    } else if (idle_.size() >= options_.idle_max) {
      drop(idle_.begin());
    }
    connection* const kept = c.get();
    kept->expires = loop_.after(options_.keep_idle, [this, kept] {
      kept->expires = {};
      drop(std::ranges::find_if(idle_, [&](const auto& other) { return other.get() == kept; }));
    });
    idle_.push_back(std::move(c));
  }

  void drop(std::deque<std::unique_ptr<connection>>::iterator at) {
    loop_.cancel((*at)->expires);
    idle_.erase(at);
  }

  // Constant after construction.
  loop& loop_;
  const outgoing_options options_;
  ssl::context tls_{ssl::context::tls_client};

  std::unordered_map<request_id, exchange_ptr> active_;
  std::deque<std::unique_ptr<connection>> idle_;
  request_id last_id_ = 0;
  bool closed_ = false;
};

result<std::unique_ptr<outgoing>> outgoing::open(loop& l, outgoing_options o) {
  auto p = std::make_unique<impl>(l, std::move(o));
  if (auto prepared = p->prepare_tls(); !prepared) return prepared.error();
  return std::unique_ptr<outgoing>(new outgoing(std::move(p)));
}

outgoing::outgoing(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
outgoing::~outgoing() = default;

outgoing::request_id outgoing::send(outgoing_request request, callback done) {
  return impl_->send(std::move(request), std::move(done));
}

void outgoing::cancel(request_id id) {
  impl_->cancel(id);
}

std::size_t outgoing::in_progress() const noexcept {
  return impl_->in_progress();
}

std::size_t outgoing::idle() const noexcept {
  return impl_->idle();
}

void outgoing::close() {
  impl_->close();
}

}  // namespace sluice::jobs::detail
