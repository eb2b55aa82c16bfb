#include "jobs/server/server_options.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>

#include "jobs/auth/token_file.hpp"
#include "jobs/server/config_keys.hpp"

namespace sluice::jobs {
namespace {

bool is_address(const std::string& host) {
  in6_addr any{};
  return host == "localhost" || ::inet_pton(AF_INET, host.c_str(), &any) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

}  // namespace

result<listen_address> parse_listen_address(std::string_view text, const listen_address& defaults) {
  const auto refuse = [&](std::string_view why) {
    return error{error_code::invalid,
                 "invalid listen address '" + std::string(text) + "': " + std::string(why)};
  };
  listen_address address = defaults;
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return refuse("the ] is missing");
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
      return refuse("the port must be a number from 0 to 65535");
    }
  }
  if (!host.empty()) address.host = host;
  if (!is_address(address.host)) {
    return refuse("expected an address of this machine, such as 127.0.0.1, [::1] or 0.0.0.0");
  }
  return address;
}

bool is_loopback(const listen_address& address) noexcept {
  if (address.host == "localhost") return true;
  in_addr four{};
  if (::inet_pton(AF_INET, address.host.c_str(), &four) == 1) {
    return (ntohl(four.s_addr) >> 24) == 127;
  }
  in6_addr six{};
  return ::inet_pton(AF_INET6, address.host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

void_result validate(const server_options& o) {
  for (const config_key& key : config_keys()) {
    // 0 would never sync; `off` is the setting for that. An unused value is not checked.
    const bool is_unused =
        key.name == "sync_interval" && (o.sync != sync_mode::interval || o.memory);
    if (is_unused) continue;
    if (auto valid = check_range(o, key); !valid) {
      return error{error_code::invalid, std::string(key.flag) + valid.error().message};
    }
  }
  if (o.tls.certificate.empty() != o.tls.key.empty()) {
    return error{error_code::invalid, "set both tls.cert and tls.key: " +
                                          std::string(o.tls.key.empty() ? "tls.key" : "tls.cert") +
                                          " is missing"};
  }
  if (o.beanstalk.tls && o.tls.certificate.empty()) {
    return error{error_code::invalid,
                 "beanstalk.tls needs a certificate: set tls.cert and tls.key "
                 "(--tls-cert, --tls-key)"};
  }
  return done{};
}

std::string token_file_of(const server_options& o) {
  return o.token_file.empty() ? token_file_in(o.data) : o.token_file;
}

std::string to_string(const listen_address& address) {
  const bool is_six = address.host.find(':') != std::string::npos;
  return (is_six ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace sluice::jobs
