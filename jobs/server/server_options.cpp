#include "jobs/server/server_options.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>

namespace sluice::jobs {
namespace {

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr four{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) {
    return (ntohl(four.s_addr) >> 24) == 127;
  }
  in6_addr six{};
  return ::inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

}  // namespace

result<listen_address> parse_listen_address(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return error{error_code::invalid,
                 "'" + std::string(text) + "' is no address to listen on: " + std::string(why)};
  };
  listen_address address;
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return refuse("a ] is missing");
    host = text.substr(1, close - 1);
    port = text.substr(close + 1);
  } else if (const std::size_t colon = text.find(':');
             colon != std::string_view::npos && colon == text.rfind(':')) {
    host = text.substr(0, colon);
    port = text.substr(colon);
  }
  if (!port.empty()) {
    if (port[0] != ':') return refuse("expected HOST:PORT");
    port.remove_prefix(1);
    const auto [end, failed] =
        std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (failed != std::errc{} || end != port.data() + port.size()) {
      return refuse("the port is a number from 0 to 65535");
    }
  }
  if (!host.empty()) address.host = host;
  if (!is_loopback(address.host)) {
    return refuse(
        "only this machine itself (127.0.0.1, [::1], localhost) can be listened on, "
        "since there is no authentication");
  }
  return address;
}

void_result validate(const server_options& o) {
  using std::chrono::hours;
  constexpr std::size_t kb = std::size_t{1} << 10;
  constexpr std::size_t gb = std::size_t{1} << 30;
  const auto refuse = [](std::string_view flag, std::string_view allowed) {
    return error{error_code::invalid, std::string(flag) + " is from " + std::string(allowed)};
  };
  // Zero would never sync, which is what `off` is for.
  const bool syncs_at_times = o.sync == sync_mode::interval && !o.memory;
  if (syncs_at_times && (o.sync_interval < milliseconds(1) || o.sync_interval > hours(1))) {
    return refuse("--sync-interval", "1ms to 1h");
  }
  if (o.shutdown_grace < milliseconds(0) || o.shutdown_grace > hours(24)) {
    return refuse("--shutdown-grace", "0s to 1d");
  }
  if (o.connections_max < 1 || o.connections_max > 1'000'000) {
    return refuse("--max-connections", "1 to 1000000");
  }
  if (o.body_bytes_max < kb || o.body_bytes_max > gb) return refuse("--max-body", "1KB to 1GB");
  if (o.engine.window_bytes_max < 64 * kb || o.engine.window_bytes_max > 1024 * gb) {
    return refuse("--window", "64KB to 1TB");
  }
  constexpr std::size_t many = 10'000'000;
  const auto is_count = [](std::size_t n) { return n >= 1 && n <= many; };
  if (!is_count(o.engine.queues_max)) return refuse("--max-queues", "1 to 10000000");
  if (!is_count(o.engine.running_max)) return refuse("--max-leases", "1 to 10000000");
  if (!is_count(o.engine.waiting_max)) return refuse("--max-waiting", "1 to 10000000");
  return done{};
}

std::string to_string(const listen_address& address) {
  const bool is_six = address.host.find(':') != std::string::npos;
  return (is_six ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace sluice::jobs
