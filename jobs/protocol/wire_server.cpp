#include "jobs/protocol/wire_server.hpp"

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <mutex>
#include <utility>

#include "jobs/net/listener.hpp"
#include "jobs/net/loop.hpp"
#include "jobs/net/tls_context.hpp"
#include "jobs/protocol/detail/connection.hpp"
#include "sluice/base/check.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/snapshot.hpp"

namespace sluice::jobs::protocol {

class wire_server::impl {
 public:
  explicit impl(options o) : state_(std::move(o)) {}
  ~impl() { stop({}); }

  result<std::vector<std::uint16_t>> start(make_session make, turn_end at_turn_end);
  void stop(const wait_limits& limits);
  result<tls_certificate> reload_tls();
  wire_counts counts() const;

 private:
  result<std::uint16_t> listen(const listen_place& place);
  void take(net::stream::socket_type socket, std::size_t loop_index, bool is_local);
  void refuse(net::stream::socket_type socket);

  wire_state state_;
  make_session make_;
  snapshot<std::shared_ptr<const net::tls_context>> tls_{std::shared_ptr<const net::tls_context>()};
  std::vector<std::unique_ptr<net::loop>> loops_;  // constant after start
  std::vector<std::unique_ptr<net::listener>> listeners_;
  mutex stopping_;  // one thread stops at a time
  bool stopped_ = false;
};

result<std::vector<std::uint16_t>> wire_server::impl::start(make_session make,
                                                            turn_end at_turn_end) {
  check(loops_.empty(), "sluice::jobs::protocol::wire_server", "one call of start");
  make_ = std::move(make);
  if (state_.options.tls) {
    if (auto loaded = reload_tls(); !loaded) return loaded.error();
  }
  for (std::size_t i = 0; i < state_.options.threads; ++i) {
    loops_.push_back(
        std::make_unique<net::loop>("sluice-" + state_.options.name + "-" + std::to_string(i + 1)));
  }
  std::vector<std::uint16_t> ports;
  for (const listen_place& place : state_.options.listen) {
    auto port = listen(place);
    if (!port) {
      listeners_.clear();
      loops_.clear();
      return port.error();
    }
    ports.push_back(*port);
  }
  for (const auto& l : loops_) l->at_turn_end(at_turn_end);
  for (const auto& l : listeners_) l->accept();
  for (const auto& l : loops_) l->start();
  return ports;
}

result<std::uint16_t> wire_server::impl::listen(const listen_place& place) {
  std::vector<net::loop*> loops;
  for (const auto& l : loops_) loops.push_back(l.get());
  const bool is_local = !place.unix_path.empty();
  auto& made = *listeners_.emplace_back(std::make_unique<net::listener>(
      std::move(loops),
      [this, is_local](net::stream::socket_type socket, std::size_t loop_index) {
        take(std::move(socket), loop_index, is_local);
      },
      net::kept_socket{state_.options.sockets, place.name}));
  if (is_local) {
    if (auto listens = made.listen_local(place.unix_path); !listens) return listens.error();
    return std::uint16_t{0};
  }
  const auto address = net::parse_address(place.address);
  if (!address) return address.error();
  if (!address->is_loopback() && !state_.options.open_to_all) {
    return error{error_code::invalid,
                 "cannot listen on " + place.address +
                     ", an address beyond loopback: " + state_.options.how_to_open};
  }
  return made.listen({*address, place.port});
}

void wire_server::impl::take(net::stream::socket_type socket, std::size_t loop_index,
                             bool is_local) {
  if (state_.open.load(relaxed) >= state_.options.connections_max) {
    state_.refused.fetch_add(1, relaxed);
    return refuse(std::move(socket));
  }
  net::loop& home = *loops_[loop_index];
  auto made = std::make_shared<connection>(state_, home, std::move(socket),
                                           is_local ? nullptr : *tls_.load());
  state_.accepted.fetch_add(1, relaxed);
  state_.open.fetch_add(1, relaxed);
  home.run_soon([this, &home, made = std::move(made)] {
    home.add(made);
    made->begin(make_);
  });
}

// Best effort: the send buffer of a new connection is empty, so the write does not block.
void wire_server::impl::refuse(net::stream::socket_type socket) {
  if (state_.options.refusal.empty() || *tls_.load() != nullptr) return;
  boost::system::error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(boost::asio::buffer(state_.options.refusal), ignored);
}

void wire_server::impl::stop(const wait_limits& limits) {
  const std::lock_guard hold(stopping_);
  if (std::exchange(stopped_, true) || loops_.empty()) return;
  for (const auto& l : listeners_) l->close();
  net::loop::stop_all(loops_, limits);
  listeners_.clear();  // removes their socket files
}

result<tls_certificate> wire_server::impl::reload_tls() {
  if (!state_.options.tls) {
    return error{error_code::invalid,
                 "cannot reload the certificate: this server does not use TLS"};
  }
  auto loaded = net::tls_context::load(*state_.options.tls, real_time().now());
  if (!loaded) return loaded.error();
  tls_certificate shown = (*loaded)->certificate();
  tls_.publish(*std::move(loaded));
  return shown;
}

wire_counts wire_server::impl::counts() const {
  return {.open = state_.open.load(relaxed),
          .accepted = state_.accepted.load(relaxed),
          .refused = state_.refused.load(relaxed),
          .timeouts = state_.timeouts.load(relaxed),
          .bytes_in = state_.bytes_in.load(relaxed),
          .bytes_out = state_.bytes_out.load(relaxed)};
}

wire_server::wire_server(options o) {
  check(o.threads >= 1 && o.replies_max >= 1 && o.connections_max >= 1 && !o.listen.empty(),
        "sluice::jobs::protocol::wire_server", "at least one thread, reply, connection and place");
  impl_ = std::make_unique<impl>(std::move(o));
}
wire_server::~wire_server() = default;

result<std::vector<std::uint16_t>> wire_server::start(make_session make, turn_end at_turn_end) {
  return impl_->start(std::move(make), std::move(at_turn_end));
}

void wire_server::stop(const wait_limits& limits) {
  impl_->stop(limits);
}

result<tls_certificate> wire_server::reload_tls() {
  return impl_->reload_tls();
}

wire_counts wire_server::counts() const {
  return impl_->counts();
}

}  // namespace sluice::jobs::protocol
