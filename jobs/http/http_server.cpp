#include "jobs/http/http_server.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "jobs/http/detail/connection.hpp"
#include "jobs/http/detail/loop.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "jobs/net/listener.hpp"
#include "sluice/base/check.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::jobs {
namespace {

using boost::asio::ip::tcp;

// Connections beyond the limit that receive an error reply at the same time.
constexpr std::size_t refusals_max = 64;

result<tcp::endpoint> endpoint_of(const http_server_options& o, unix_time now) {
  const auto parsed = net::parse_address(o.address);
  if (!parsed) return parsed.error();
  const auto& address = *parsed;
  if (address.is_loopback()) return tcp::endpoint(address, o.port);
  const std::string refusal = "cannot listen on " + o.address + ", an address beyond loopback, ";
  if (!o.tokens || !o.tokens->has_usable(now)) {
    return error{error_code::invalid,
                 refusal +
                     "without a valid token; create one: sluice token create --name me "
                     "--role admin"};
  }
  if (!o.tls && !o.insecure_http) {
    return error{error_code::invalid,
                 refusal +
                     "without TLS: tokens and jobs would be sent in plain text; set tls.cert and "
                     "tls.key, or http.insecure = true if a proxy or the network encrypts them"};
  }
  return tcp::endpoint(address, o.port);
}

}  // namespace

class http_server::impl {
 public:
  explicit impl(options o) : state_(std::move(o)) {}
  ~impl() { stop({}); }

  result<std::uint16_t> start(engine& jobs);
  void close_intake();
  void stop(const wait_limits& limits);
  std::size_t connections() const { return static_cast<std::size_t>(state_.connections()); }
  void use_tokens(std::optional<token_set> tokens) { state_.use_tokens(std::move(tokens)); }
  std::size_t open_grants() const { return state_.grants.count(); }
  result<tls_certificate> reload_tls();
  std::optional<tls_certificate> certificate() const {
    const auto now = state_.tls.load();
    if (*now == nullptr) return std::nullopt;
    return (*now)->certificate();
  }

 private:
  void take(net::stream::socket_type socket, std::size_t which);

  http::server_state state_;
  std::vector<std::unique_ptr<http::loop>> loops_;  // constant after start
  std::optional<net::listener> listener_;
  mutex stopping_;  // one thread stops at a time
  bool stopped_ = false;
};

result<std::uint16_t> http_server::impl::start(engine& jobs) {
  check(loops_.empty(), "sluice::jobs::http_server", "one call of start");
  const auto where = endpoint_of(state_.options, state_.time.now());
  if (!where) return where.error();
  if (state_.options.tls) {
    if (auto loaded = reload_tls(); !loaded) return loaded.error();
  }
  for (std::size_t i = 0; i < state_.options.threads; ++i) {
    loops_.push_back(std::make_unique<http::loop>(state_, jobs, *state_.counts[i], i + 1));
  }
  std::vector<net::loop*> loops;
  for (const auto& l : loops_) loops.push_back(l.get());
  listener_.emplace(
      std::move(loops),
      [this](net::stream::socket_type socket, std::size_t which) {
        take(std::move(socket), which);
      },
      net::kept_socket{state_.options.sockets, "http"});
  auto port = listener_->listen(*where);
  if (!port) {
    listener_.reset();
    loops_.clear();
    return port.error();
  }
  listener_->accept();
  // HTTP loops never commit themselves (engine::commit_here), so /healthz is answered even while
  // the disk hangs.
  for (const auto& l : loops_) l->start();
  return *port;
}

result<tls_certificate> http_server::impl::reload_tls() {
  if (!state_.options.tls) {
    return error{error_code::invalid,
                 "cannot reload the certificate: this server does not use TLS"};
  }
  auto loaded = net::tls_context::load(*state_.options.tls, state_.time.now());
  if (!loaded) return loaded.error();
  tls_certificate shown = (*loaded)->certificate();
  state_.tls.publish(*std::move(loaded));
  return shown;
}

void http_server::impl::take(net::stream::socket_type socket, std::size_t which) {
  http::loop& home = *loops_[which];
  const std::size_t open = connections();
  const bool is_refused = open >= state_.options.connections_max;
  (is_refused ? home.counts().refused : home.counts().accepted).fetch_add(1, relaxed);
  if (open >= state_.options.connections_max + refusals_max) return;  // closes it
  auto made = std::make_shared<http::connection>(home, std::move(socket), *state_.tls.load());
  home.counts().open.fetch_add(1, relaxed);
  home.run_soon([&home, made = std::move(made), is_refused] {
    home.add(made);
    is_refused ? made->begin_refused() : made->begin();
  });
}

// New connections are accepted until `stop`: a worker whose connection was lost must be able to
// reconnect and end its leases.
void http_server::impl::close_intake() {
  state_.closing.store(true);
}

void http_server::impl::stop(const wait_limits& limits) {
  close_intake();
  const std::lock_guard hold(stopping_);
  if (std::exchange(stopped_, true)) return;
  if (loops_.empty()) return;
  listener_->close();
  net::loop::stop_all(loops_, limits);
}

http_server::http_server(options o) {
  check(o.threads >= 1 && o.pipelined_max >= 1 && o.connections_max >= 1,
        "sluice::jobs::http_server", "at least one thread, request and connection");
  impl_ = std::make_unique<impl>(std::move(o));
}
http_server::~http_server() = default;

result<std::uint16_t> http_server::start(engine& jobs) {
  return impl_->start(jobs);
}

void http_server::close_intake() {
  impl_->close_intake();
}

void http_server::stop(const wait_limits& limits) {
  impl_->stop(limits);
}

void http_server::use_tokens(std::optional<token_set> tokens) {
  impl_->use_tokens(std::move(tokens));
}

std::size_t http_server::open_grants() const {
  return impl_->open_grants();
}

result<tls_certificate> http_server::reload_tls() {
  return impl_->reload_tls();
}

std::optional<tls_certificate> http_server::certificate() const {
  return impl_->certificate();
}

std::size_t http_server::connections() const {
  return impl_->connections();
}

}  // namespace sluice::jobs
