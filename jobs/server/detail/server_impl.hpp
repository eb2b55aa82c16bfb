#pragma once

// The implementation of a server. server.cpp opens, serves and ends it; server_delivery.cpp posts;
// server_protocols.cpp has the other protocols; server_reload.cpp loads settings, tokens and the
// certificate.

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/deliver/deliverer.hpp"
#include "jobs/http/http_server.hpp"
#include "jobs/net/listening_sockets.hpp"
#include "jobs/protocol/beanstalk/beanstalk_server.hpp"
#include "jobs/protocol/faktory/faktory_server.hpp"
#include "jobs/server/audit_log.hpp"
#include "jobs/server/event_log.hpp"
#include "jobs/server/server.hpp"
#include "jobs/server/service_notifier.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs {
namespace detail {

// Identifies a version of a file without reading it.
struct file_stamp {
  ino_t number = 0;
  off_t size = 0;
  std::int64_t changed_ns = 0;

  static file_stamp of(const std::string& file);
  friend bool operator==(const file_stamp&, const file_stamp&) = default;
};

}  // namespace detail

class server::impl {
 public:
  explicit impl(server_options o)
      : options_(std::move(o)),
        log_(options_.log),
        memory_(std::make_shared<net::client_memory>(options_.client_memory)) {}
  ~impl() {
    stop_now_.request_stop();
    stopping_ = {};  // joins
    stop();
  }
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  void_result open();
  void_result listen(net::listening_sockets* sockets);
  ending serve(signal_watch& signals);

  bool is_secure() const { return !options_.tls.certificate.empty(); }
  std::string url() const { return (is_secure() ? "https://" : "http://") + to_string(address()); }
  void on_reload(std::function<result<server_options>()> f) { reloader_ = std::move(f); }
  const listen_address& address() const { return options_.listen; }  // with the actual port
  const server_options& options() const { return options_; }         // with the actual ports
  std::string banner(std::string_view program) const;

 private:
  void_result load_initial_tokens();
  void_result configure(const server_options& o);
  void_result open_delivery();
  void_result update_delivery(const server_options& o);
  void log_delivery(const delivery_event& e);
  http_server_options http_options();
  result<listen_address> passed_or(std::string_view name, const listen_address& set);
  void_result listen_http();
  void_result create_protocols();
  void_result listen_protocols();
  void_result listen_beanstalk();
  void_result listen_faktory();
  std::vector<std::string> protocol_addresses() const;
  std::string addresses() const;  // all addresses it listens on
  void write_protocol_metrics(std::string& out) const;
  void drain();
  bool may_restart();
  bool await_unsaved_work(const wait_limits& limits);
  std::uint64_t protocol_jobs() const;  // held by connections; released when the process ends
  void reload_faktory_password(const server_options& fresh);
  void reload_protocol_certificates();
  void close_protocol_intake();
  void stop_protocols(const wait_limits& limits);
  void log_certificate(const tls_certificate& current);
  int wait_for_end_signal(signal_watch& signals);
  signal_watch::woken wait_until_stopped(signal_watch& signals);
  void send_alive();
  void reload();
  void_result reload_tokens();
  void audit_token_changes(const token_set& before, const token_set& after);
  void log_reload(std::string_view part, std::string_view from, const void_result& outcome);
  void raise_descriptor_limit();
  void log_health(const health& now);
  void shut_down();
  void stop();

  server_options options_;
  event_log log_;
  const std::shared_ptr<net::client_memory> memory_;  // of all connections
  service_notifier systemd_;
  net::listening_sockets* sockets_ = nullptr;  // set by listen; null: none to inherit
  std::unique_ptr<audit_log> audit_;
  std::function<result<server_options>()> reloader_;
  detail::file_stamp tokens_stamp_;  // of the loaded file
  std::string tokens_problem_;       // the last logged error; empty: none
  guarded<url_rules> rules_;         // for posts of jobs and their ends
  std::unique_ptr<engine> engine_;
  // Destroyed before the engine that they call. Null: off.
  guarded<std::unique_ptr<deliverer>> posts_;
  std::unique_ptr<beanstalk_server> beanstalk_;
  std::unique_ptr<faktory_server> faktory_;
  std::unique_ptr<http_server> http_;  // its /metrics calls the two above
  std::stop_source stop_now_;          // ends the wait for workers
  seam::thread stopping_;
};

}  // namespace sluice::jobs
