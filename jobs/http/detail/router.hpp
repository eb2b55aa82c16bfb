#pragma once

// Maps method and path to a handler, or to a problem.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "jobs/auth/identity.hpp"
#include "jobs/engine/engine.hpp"
#include "jobs/http/detail/request.hpp"
#include "jobs/http/detail/ticket.hpp"

namespace sluice::jobs {
struct http_server_options;
}

namespace sluice::jobs::http {

class server_state;

// A request that is passed to its handler.
struct call {
  server_state& server;
  engine& jobs;
  const request_head& head;
  std::string_view body;
  ticket reply;
  job_id id = 0;       // of a path with {id}
  std::string name{};  // of a path with {name} or {wid}
  identity caller{};
};

enum class body_rule : std::uint8_t {
  none,    // read and ignored
  json,    // required
  stream,  // required; NDJSON is pushed as it arrives
};

// Whether the connection ends after the request while the server shuts down. All requests are
// answered.
enum class closing_rule : std::uint8_t {
  answered,    // the connection ends after it
  of_workers,  // about an open lease: the connection stays
};

// The right that a request needs, if the server requires tokens.
enum class access : std::uint8_t {
  open,  // no token
  read,  // the role of that name, as are the next two
  push,
  work,
  manage,  // the role push; audited, since it changes jobs that other clients may have pushed
  admin,   // the role admin; audited, unless it only reads
};
constexpr role role_of(access needs) noexcept {
  switch (needs) {
    case access::open:
    case access::read:
      return role::read;
    case access::push:
    case access::manage:
      return role::push;
    case access::work:
      return role::work;
    case access::admin:
      break;
  }
  return role::admin;
}

struct route {
  http::method method;
  std::string_view path;  // as documented and counted: "/v1/jobs/{id}"
  body_rule body;
  closing_rule while_closing;
  void (*handle)(call& c);
  access needs = access::admin;
};

// Checks the token again, since the body may arrive long after the head, and calls the handler.
void begin_call(const route& r, call& c);

constexpr bool is_audited(const route& r) noexcept {
  return r.needs == access::manage || (r.needs == access::admin && r.method != method::get);
}

std::span<const route> routes() noexcept;

// The route of a request line, or its problem.
struct routed {
  const route* target = nullptr;
  job_id id = 0;
  std::string name{};
  int status = 404;     // when there is no route; 204: OPTIONS
  std::string allow{};  // the supported methods, for 405 and OPTIONS
  std::string detail{};
};
routed find_route(http::method m, std::string_view path);

// Reads the parameters of a query, in the order of `names`. Fails with `invalid` for an unknown or
// repeated one.
template <std::size_t N>
result<std::array<std::optional<std::string>, N>> read_query(
    std::string_view query, const std::array<std::string_view, N>& names);
result<bool> next_parameter(std::string_view& query, std::string& name, std::string& value);
error unknown_parameter(std::string_view name, std::span<const std::string_view> known);

template <std::size_t N>
result<std::array<std::optional<std::string>, N>> read_query(
    std::string_view query, const std::array<std::string_view, N>& names) {
  std::array<std::optional<std::string>, N> values;
  std::string name;
  std::string value;
  while (!query.empty()) {
    auto there = next_parameter(query, name, value);
    if (!there) return there.error();
    if (!*there) continue;
    std::size_t at = 0;
    while (at < N && names[at] != name) ++at;
    if (at == N) return unknown_parameter(name, names);
    if (values[at]) return error{error_code::invalid, "the parameter '" + name + "' is repeated"};
    values[at] = value;
  }
  return values;
}

}  // namespace sluice::jobs::http
