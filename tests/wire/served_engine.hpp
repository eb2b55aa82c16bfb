#pragma once

// An engine with a memory store, a real HTTP server for it on a free port, and a client.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "jobs/client/client.hpp"
#include "jobs/engine/engine.hpp"
#include "jobs/http/http_server.hpp"
#include "jobs/store/memory/memory_store.hpp"

namespace sluice::jobs::testing {

class served_engine {
 public:
  explicit served_engine(memory_options store = {}, engine_options o = {})
      : engine_(engine::open(make_memory_store(std::move(store)), o).value()) {
    start(0);
  }

  engine& local() { return *engine_; }
  client& remote() { return *client_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // Stops the server. The engine continues, and start_server restarts it on the same port.
  void stop_server() {
    server_->stop(deadline::after(std::chrono::seconds(0)));
    server_.reset();
  }
  void start_server() { start(port_); }

 private:
  void start(std::uint16_t port) {
    server_.emplace(http_server_options{.port = port});
    port_ = server_->start(*engine_).value();
    if (!client_) client_.emplace(client::open({.url = url()}).value());
  }

  std::unique_ptr<engine> engine_;
  std::optional<http_server> server_;
  std::uint16_t port_ = 0;
  std::optional<client> client_;
};

}  // namespace sluice::jobs::testing
