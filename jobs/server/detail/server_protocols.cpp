// The protocols of beanstalkd and Faktory.
#include "jobs/server/detail/server_impl.hpp"

namespace sluice::jobs {
namespace {

constexpr std::string_view beanstalk_is_open =
    "the beanstalk protocol has no authentication: set --beanstalk-open (beanstalk.open) to permit "
    "access from other machines, or listen on 127.0.0.1 or on a unix socket (--beanstalk-socket)";
constexpr std::string_view faktory_is_open =
    "beyond loopback it needs a password (--faktory-password-file) and TLS (--tls-cert, "
    "--tls-key), or --faktory-open (faktory.open) to permit access without them";

protocol::listen_place place_of(const listen_address& at, const char* name) {
  return {.address = at.host, .port = at.port, .name = name};
}

error cannot(std::string_view protocol, const error& why) {
  return {why.code, std::string(protocol) + ": " + why.message};
}

}  // namespace

// Called before HTTP listens, since /metrics calls the protocols; they listen after it.
void_result server::impl::create_protocols() {
  if (const beanstalk_settings& set = options_.beanstalk; set.is_on()) {
    beanstalk_options o;
    o.wire.listen.clear();
    o.wire.sockets = sockets_;
    if (options_.beanstalk.listen) {
      const auto given = passed_or("beanstalk", *options_.beanstalk.listen);
      if (!given) return given.error();
      options_.beanstalk.listen = *given;
      o.wire.listen.push_back(place_of(*set.listen, "beanstalk"));
    }
    if (!set.socket.empty()) {
      o.wire.listen.push_back({.unix_path = set.socket, .name = "beanstalk-socket"});
    }
    o.wire.threads = set.threads;
    o.wire.memory = memory_;
    o.wire.connections_max = set.connections_max;
    if (set.tls) o.wire.tls = options_.tls;
    o.wire.open_to_all = set.open;
    o.wire.how_to_open = beanstalk_is_open;
    o.job_bytes_max = static_cast<std::uint32_t>(set.job_bytes_max);
    o.version = "sluice " SLUICE_VERSION;
    o.binlog_max = set.binlog_max;
    beanstalk_ = std::make_unique<beanstalk_server>(std::move(o));
  }
  if (const faktory_settings& set = options_.faktory; set.is_on()) {
    faktory_options o;
    const auto given = passed_or("faktory", *options_.faktory.listen);
    if (!given) return given.error();
    options_.faktory.listen = *given;
    o.wire.sockets = sockets_;
    o.wire.listen = {place_of(*set.listen, "faktory")};
    o.wire.threads = set.threads;
    o.wire.memory = memory_;
    o.wire.connections_max = set.connections_max;
    if (is_secure()) o.wire.tls = options_.tls;
    o.wire.open_to_all = set.open || (is_secure() && !set.password.empty());
    o.wire.how_to_open = faktory_is_open;
    o.password = set.password;
    o.version = SLUICE_VERSION;
    faktory_ = std::make_unique<faktory_server>(std::move(o));
  }
  return done{};
}

void_result server::impl::listen_beanstalk() {
  const auto ports = beanstalk_->start(*engine_);
  if (!ports) return cannot("beanstalk", ports.error());
  beanstalk_settings& set = options_.beanstalk;
  if (set.listen) {
    set.listen->port = ports->front();
    log_.info("listening",
              {{"beanstalk", to_string(*set.listen)}, {"tls", set.tls ? "yes" : "no"}});
    if (!is_loopback(*set.listen)) {
      log_.warn("the beanstalk address is open: any client can put, reserve and delete jobs",
                {{"beanstalk", to_string(*set.listen)}});
    }
  }
  if (!set.socket.empty()) log_.info("listening", {{"beanstalk", set.socket}});
  return done{};
}

void_result server::impl::listen_faktory() {
  const auto ports = faktory_->start(*engine_);
  if (!ports) return cannot("faktory", ports.error());
  faktory_settings& set = options_.faktory;
  set.listen->port = ports->front();
  log_.info("listening", {{"faktory", to_string(*set.listen)},
                          {"tls", is_secure() ? "yes" : "no"},
                          {"password", set.password.empty() ? "no" : "yes"}});
  if (!is_loopback(*set.listen) && set.password.empty()) {
    log_.warn("the Faktory address is open: any client can push, fetch and delete jobs",
              {{"faktory", to_string(*set.listen)}});
  } else if (!is_loopback(*set.listen) && !is_secure()) {
    log_.warn("jobs are sent unencrypted", {{"faktory", "plain, because of faktory.open"}});
  }
  return done{};
}

void_result server::impl::listen_protocols() {
  if (beanstalk_ != nullptr) {
    if (auto listens = listen_beanstalk(); !listens) return listens;
  }
  if (faktory_ != nullptr) {
    if (auto listens = listen_faktory(); !listens) return listens;
  }
  return done{};
}

// Returns one text per address, as in "beanstalk on 127.0.0.1:11300".
std::vector<std::string> server::impl::protocol_addresses() const {
  std::vector<std::string> places;
  if (options_.beanstalk.listen) {
    places.push_back("beanstalk on " + to_string(*options_.beanstalk.listen));
  }
  if (!options_.beanstalk.socket.empty()) {
    places.push_back("beanstalk on " + options_.beanstalk.socket);
  }
  if (options_.faktory.listen) {
    places.push_back("faktory on " + to_string(*options_.faktory.listen));
  }
  return places;
}

std::string server::impl::addresses() const {
  std::string all = options_.serves_http ? url() : "";
  for (const std::string& a : protocol_addresses()) all += (all.empty() ? "" : ", ") + a;
  return all;
}

void server::impl::write_protocol_metrics(std::string& out) const {
  if (beanstalk_ != nullptr) beanstalk_->write_metrics(out);
  if (faktory_ != nullptr) faktory_->write_metrics(out);
}

void server::impl::drain() {
  if (beanstalk_ == nullptr) {
    log_.warn("nothing to drain", {{"signal", "SIGUSR1"}, {"beanstalk", "off"}});
    return;
  }
  beanstalk_->drain();
  log_.info("draining", {{"beanstalk", "puts are rejected from now on"}});
  audit_->write({.who = "local", .from = "SIGUSR1", .act = "drain beanstalk"});
}

void server::impl::reload_faktory_password(const server_options& fresh) {
  if (faktory_ == nullptr) return;
  const std::string& password = fresh.faktory.password;
  const bool may_go_without = options_.faktory.open || is_loopback(*options_.faktory.listen);
  if (password.empty() && !may_go_without) {
    const error why{error_code::invalid,
                    "no password is set, but the address is reachable by other machines"};
    return log_reload("Faktory password", "SIGHUP", why);
  }
  if (password == options_.faktory.password) return;
  options_.faktory.password = password;
  faktory_->use_password(password);
  log_reload("Faktory password", "SIGHUP", done{});
}

void server::impl::reload_protocol_certificates() {
  const auto log = [this](std::string_view part, const result<tls_certificate>& current) {
    log_reload(part, "SIGHUP", current ? void_result(done{}) : void_result(current.error()));
  };
  if (options_.beanstalk.listen && options_.beanstalk.tls) {
    log("beanstalk certificate", beanstalk_->reload_tls());
  }
  if (faktory_ != nullptr && is_secure()) log("Faktory certificate", faktory_->reload_tls());
}

void server::impl::close_protocol_intake() {
  if (faktory_ != nullptr) faktory_->close_intake();
}

std::uint64_t server::impl::protocol_jobs() const {
  return (beanstalk_ != nullptr ? beanstalk_->reserved_jobs() : 0) +
         (faktory_ != nullptr ? faktory_->fetched_jobs() : 0);
}

void server::impl::stop_protocols(const wait_limits& limits) {
  const seam::thread faktory([&] {
    if (faktory_ != nullptr) faktory_->stop(limits);
  });
  if (beanstalk_ != nullptr) beanstalk_->stop(limits);
}

}  // namespace sluice::jobs
