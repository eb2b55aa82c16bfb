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

constexpr int interim_answers_max = 8;  // of status 1xx, before the one that counts
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
  // A kept connection has nothing to say: whatever can be read is its end, or nonsense.
  bool is_quiet() {
    char byte = 0;
    const auto got = recv(socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && errno == EAGAIN;
  }
};

// One request on its way. What comes back for one that has ended finds it so, and goes.
struct exchange {
  outgoing::ticket which = 0;
  web_url to;
  milliseconds timeout{};
  outgoing::callback done;  // empty: it has ended
  http::request<http::string_body> request;

  std::unique_ptr<connection> on;
  std::optional<tcp::resolver> resolver;
  std::optional<http::response_parser<kept_body>> parser;
  int interim = 0;       // answers of status 1xx
  std::string unsent{};  // why it could not be sent whole
  loop::alarm limit;
  loop::alarm connect_limit;

  bool has_ended() const noexcept { return !done; }
};
using exchange_ptr = std::shared_ptr<exchange>;

std::string why_tls(const failed_code& code, tls_stream& stream) {
  const long verdict = SSL_get_verify_result(stream.native_handle());
  if (verdict == X509_V_OK) return code.message();
  // Of all that is looked at, only the name has no code of its own.
  if (verdict == X509_V_ERR_UNSPECIFIED) return "the certificate does not name the host";
  return std::string("the certificate is not trusted: ") + X509_verify_cert_error_string(verdict);
}

std::string field_of(const http::response<kept_body>& from, http::field which) {
  const auto value = from[which];
  return std::string(value.data(), std::min<std::size_t>(value.size(), field_bytes_max));
}

}  // namespace

std::string_view to_string(outgoing_end::fault what) noexcept {
  switch (what) {
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
  impl(loop& on, outgoing_options o) : loop_(on), options_(std::move(o)) {}

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
                 "the authorities for TLS cannot be read from " +
                     (options_.ca_file.empty() ? std::string("the system") : options_.ca_file) +
                     ": " + failed.message()};
  }

  ticket send(outgoing_request what, callback done) {
    check(active_.size() < options_.requests_max, "sluice::jobs::outgoing",
          "at most requests_max requests at a time");
    const auto x = std::make_shared<exchange>();
    x->which = ++last_ticket_;
    x->timeout = what.timeout;
    x->done = std::move(done);
    fill(*x, what);
    x->to = std::move(what.to);
    active_.emplace(x->which, x);
    x->limit = loop_.after(x->timeout, [this, x] {
      x->limit = {};
      end(x, {.what = fault::timed_out,
              .message = "there was no whole answer within " + format_duration(x->timeout)});
    });
    find_connection(x);
    return x->which;
  }

  void cancel(ticket which) {
    if (const auto found = active_.find(which); found != active_.end()) {
      const exchange_ptr x = found->second;
      end(x, {.what = fault::cancelled, .message = "it was called off"});
    }
  }

  void close() {
    closed_ = true;
    while (!active_.empty()) cancel(active_.begin()->first);
    for (const auto& c : idle_) loop_.cancel(c->expires);
    idle_.clear();
  }

  std::size_t under_way() const noexcept { return active_.size(); }
  std::size_t idle() const noexcept { return idle_.size(); }

 private:
  static void fill(exchange& x, outgoing_request& what) {
    x.request.version(11);
    x.request.method(http::verb::post);
    x.request.target(what.to.target());
    x.request.set(http::field::host, what.to.authority());
    for (const auto& [name, value] : what.headers) x.request.set(name, value);
    x.request.body() = std::move(what.body);
    x.request.prepare_payload();
  }

  // Ends it, unless it has ended; its connection goes.
  void end(const exchange_ptr& x, outgoing_end how) {
    if (x->has_ended()) return;
    if (x->resolver) x->resolver->cancel();
    // Whatever is under way on it comes back with an error, and finds the exchange ended.
    if (x->on) x->on->close();
    finish(x, std::move(how));
  }

  void finish(const exchange_ptr& x, outgoing_end how) {
    loop_.cancel(x->limit);
    loop_.cancel(x->connect_limit);
    active_.erase(x->which);
    auto done = std::exchange(x->done, nullptr);
    done(std::move(how));
  }

  // ---- connections

  void find_connection(const exchange_ptr& x) {
    const std::string origin = x->to.origin();
    while (true) {
      const auto found = std::find_if(idle_.rbegin(), idle_.rend(),
                                      [&](const auto& c) { return c->origin == origin; });
      if (found == idle_.rend()) return connect(x);
      auto kept = std::move(*found);
      idle_.erase(std::next(found).base());
      loop_.cancel(kept->expires);
      if (!kept->is_quiet()) continue;
      x->on = std::move(kept);
      return write(x);
    }
  }

  void connect(const exchange_ptr& x) {
    const bool is_tls = x->to.how == web_url::scheme::https;
    x->on = is_tls ? std::make_unique<connection>(loop_.context(), tls_)
                   : std::make_unique<connection>(loop_.context());
    x->on->origin = x->to.origin();
    loop_.cancel(x->connect_limit);
    x->connect_limit = loop_.after(options_.connect_timeout, [this, x] {
      x->connect_limit = {};
      end(x, {.what = fault::timed_out,
              .message =
                  "there was no connection within " + format_duration(options_.connect_timeout)});
    });
    if (x->to.kind != web_url::host_kind::name) {
      const tcp::endpoint only(asio::ip::make_address(x->to.host), x->to.port);
      x->on->socket().async_connect(only, [this, x](failed_code failed) { connected(x, failed); });
      return;
    }
    x->resolver.emplace(loop_.context());
    x->resolver->async_resolve(
        x->to.host, std::to_string(x->to.port), tcp::resolver::numeric_service,
        [this, x](failed_code failed, const tcp::resolver::results_type& found) {
          x->resolver.reset();
          if (x->has_ended()) return;
          if (failed) {
            return end(
                x, {.what = fault::host_not_found,
                    .message = "the host " + x->to.host + " cannot be found: " + failed.message()});
          }
          asio::async_connect(x->on->socket(), found,
                              [this, x](failed_code f, const tcp::endpoint&) { connected(x, f); });
        });
  }

  void connected(const exchange_ptr& x, failed_code failed) {
    if (x->has_ended()) return;
    if (failed) {
      return end(x, {.what = fault::connect_failed,
                     .message = "cannot connect to it: " + failed.message()});
    }
    failed_code ignored;
    x->on->socket().set_option(tcp::no_delay(true), ignored);
    if (x->to.how == web_url::scheme::https) return shake_hands(x);
    loop_.cancel(x->connect_limit);
    write(x);
  }

  void shake_hands(const exchange_ptr& x) {
    auto& stream = std::get<tls_stream>(x->on->stream);
    failed_code failed;
    stream.set_verify_callback(ssl::host_name_verification(x->to.host), failed);
    if (x->to.kind == web_url::host_kind::name &&
        SSL_ctrl(stream.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                 x->to.host.data()) != 1) {
      return end(x, {.what = fault::tls_failed, .message = "the host cannot be named in TLS"});
    }
    stream.async_handshake(ssl::stream_base::client, [this, x, &stream](failed_code f) {
      if (x->has_ended()) return;
      if (f) return end(x, {.what = fault::tls_failed, .message = "TLS: " + why_tls(f, stream)});
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
            // It may have answered without reading all, and said no more.
            if (failed) x->unsent = failed.message();
            read(x);
          });
        },
        x->on->stream);
  }

  void read(const exchange_ptr& x) {
    x->parser.emplace();
    x->parser->header_limit(static_cast<std::uint32_t>(options_.head_bytes_max));
    x->parser->body_limit(boost::none);  // kept_body has its own
    x->parser->get().body().most = options_.body_bytes_max;
    std::visit(
        [&](auto& stream) {
          http::async_read(stream, x->on->buffer, *x->parser,
                           [this, x](failed_code failed, std::size_t) {
                             if (!x->has_ended()) came(x, failed);
                           });
        },
        x->on->stream);
  }

  void came(const exchange_ptr& x, failed_code failed) {
    const bool is_cut = failed == http::error::body_limit && x->parser->is_header_done();
    if (failed && !is_cut) return broke(x, failed);
    const auto& answer = x->parser->get();
    const int status = static_cast<int>(answer.result_int());
    if (status < 200) {
      if (status == 101 || ++x->interim > interim_answers_max) {
        return end(x, {.what = fault::bad_answer,
                       .message = "it answered " + std::to_string(status) +
                                  ", which is no answer to this"});
      }
      return read(x);
    }
    outgoing_end how{.what = fault::none,
                     .message = {},
                     .status = status,
                     .content_type = field_of(answer, http::field::content_type),
                     .retry_after = field_of(answer, http::field::retry_after),
                     .location = field_of(answer, http::field::location),
                     .body = std::move(x->parser->get().body().text),
                     .is_cut = is_cut};
    const bool may_stay = !is_cut && x->unsent.empty() && answer.keep_alive() &&
                          x->on->buffer.size() == 0 && !closed_;
    if (may_stay) {
      keep(std::move(x->on));
    } else {
      x->on->close();
    }
    finish(x, std::move(how));
  }

  void broke(const exchange_ptr& x, failed_code failed) {
    const bool got_some = x->parser->got_some() || x->interim > 0;
    if (!x->unsent.empty()) {
      return end(x, {.what = fault::connection_lost,
                     .message = "the request could not be sent: " + x->unsent});
    }
    const bool is_nonsense =
        failed.category() == make_error_code(http::error::bad_version).category();
    if (failed == http::error::end_of_stream || (!is_nonsense && !got_some)) {
      return end(
          x, {.what = fault::connection_lost,
              .message = failed == http::error::end_of_stream
                             ? "it closed the connection without an answer"
                             : "the connection was lost before an answer: " + failed.message()});
    }
    if (failed == http::error::header_limit || failed == http::error::buffer_overflow) {
      return end(x, {.what = fault::bad_answer,
                     .message = "the head of its answer is larger than " +
                                std::to_string(options_.head_bytes_max) + " bytes"});
    }
    end(x, {.what = fault::bad_answer,
            .message = (is_nonsense && failed != http::error::partial_message
                            ? "its answer is not HTTP: "
                            : "its answer ended in the middle: ") +
                       failed.message()});
  }

  // ---- idle connections, the one used last at the end

  void keep(std::unique_ptr<connection> c) {
    const auto same = [&](const auto& other) { return other->origin == c->origin; };
    if (static_cast<std::size_t>(std::ranges::count_if(idle_, same)) >=
        options_.idle_per_origin_max) {
      drop(std::ranges::find_if(idle_, same));
    } else if (idle_.size() >= options_.idle_max) {
      drop(idle_.begin());
    }
    connection* const it = c.get();
    it->expires = loop_.after(options_.keep_idle, [this, it] {
      it->expires = {};
      drop(std::ranges::find_if(idle_, [&](const auto& other) { return other.get() == it; }));
    });
    idle_.push_back(std::move(c));
  }

  void drop(std::deque<std::unique_ptr<connection>>::iterator which) {
    loop_.cancel((*which)->expires);
    idle_.erase(which);
  }

  // Constant after construction.
  loop& loop_;
  const outgoing_options options_;
  ssl::context tls_{ssl::context::tls_client};

  std::unordered_map<ticket, exchange_ptr> active_;
  std::deque<std::unique_ptr<connection>> idle_;
  ticket last_ticket_ = 0;
  bool closed_ = false;
};

result<std::unique_ptr<outgoing>> outgoing::open(loop& on, outgoing_options o) {
  auto it = std::make_unique<impl>(on, std::move(o));
  if (auto prepared = it->prepare_tls(); !prepared) return prepared.error();
  return std::unique_ptr<outgoing>(new outgoing(std::move(it)));
}

outgoing::outgoing(std::unique_ptr<impl> it) : impl_(std::move(it)) {}
outgoing::~outgoing() = default;

outgoing::ticket outgoing::send(outgoing_request what, callback done) {
  return impl_->send(std::move(what), std::move(done));
}

void outgoing::cancel(ticket which) {
  impl_->cancel(which);
}

std::size_t outgoing::under_way() const noexcept {
  return impl_->under_way();
}

std::size_t outgoing::idle() const noexcept {
  return impl_->idle();
}

void outgoing::close() {
  impl_->close();
}

}  // namespace sluice::jobs::detail
