#include "jobs/http/detail/router.hpp"

#include <algorithm>
#include <charconv>

#include "jobs/http/detail/handlers.hpp"
#include "jobs/http/detail/server_state.hpp"

namespace sluice::jobs::http {
namespace {

using m = method;
using b = body_rule;
using w = closing_rule;
using a = access;

// The routes of docs/reference/http.md; the most frequent ones first, as the search is linear.
constexpr auto all_routes = std::to_array<route>({
    {m::post, "/v1/jobs", b::stream, w::answered, push_jobs, a::push},
    {m::post, "/v1/leases", b::json, w::answered, lease_jobs, a::work},
    {m::post, "/v1/jobs/{id}/ack", b::json, w::of_workers, ack_job, a::work},
    {m::post, "/v1/acks", b::json, w::of_workers, ack_jobs, a::work},
    {m::post, "/v1/jobs/{id}/extend", b::json, w::of_workers, extend_lease, a::work},
    {m::post, "/v1/jobs/{id}/fail", b::json, w::of_workers, fail_job, a::work},
    {m::post, "/v1/jobs/{id}/release", b::json, w::of_workers, release_job, a::work},
    {m::get, "/v1/jobs/{id}", b::none, w::answered, get_job, a::read},
    {m::get, "/v1/jobs", b::none, w::answered, list_jobs, a::read},
    {m::post, "/v1/jobs/{id}/cancel", b::none, w::answered, cancel_job, a::manage},
    {m::post, "/v1/jobs/{id}/retry", b::none, w::answered, retry_job, a::manage},
    {m::remove, "/v1/jobs/{id}", b::none, w::answered, remove_job, a::admin},
    {m::get, "/v1/queues", b::none, w::answered, list_queues, a::read},
    {m::get, "/v1/queues/{name}", b::none, w::answered, get_queue, a::read},
    {m::patch, "/v1/queues/{name}", b::json, w::answered, configure_queue, a::admin},
    {m::post, "/v1/queues/{name}/pause", b::none, w::answered, pause_queue, a::admin},
    {m::post, "/v1/queues/{name}/resume", b::none, w::answered, resume_queue, a::admin},
    {m::post, "/v1/queues/{name}/purge", b::none, w::answered, purge_queue, a::admin},
    {m::post, "/v1/jobs/{id}/progress", b::json, w::of_workers, report_progress, a::work},
    {m::post, "/v1/jobs/{id}/logs", b::json, w::of_workers, add_logs, a::work},
    {m::get, "/v1/jobs/{id}/logs", b::none, w::answered, get_logs, a::read},
    {m::post, "/v1/batches", b::json, w::answered, push_batch, a::push},
    {m::post, "/v1/workflows", b::json, w::answered, push_workflow, a::push},
    {m::get, "/v1/batches", b::none, w::answered, list_batches, a::read},
    {m::get, "/v1/batches/{id}", b::none, w::answered, get_batch, a::read},
    {m::get, "/v1/batches/{id}/graph", b::none, w::answered, get_batch_graph, a::read},
    {m::post, "/v1/batches/{id}/close", b::none, w::answered, close_batch, a::push},
    {m::post, "/v1/batches/{id}/cancel", b::none, w::answered, cancel_batch, a::manage},
    {m::post, "/v1/batches/{id}/retry", b::none, w::answered, retry_batch, a::manage},
    {m::get, "/v1/crons", b::none, w::answered, list_crons, a::read},
    {m::post, "/v1/crons/check", b::json, w::answered, check_cron, a::push},
    {m::get, "/v1/crons/{name}", b::none, w::answered, get_cron, a::read},
    {m::put, "/v1/crons/{name}", b::json, w::answered, set_cron, a::admin},
    {m::patch, "/v1/crons/{name}", b::json, w::answered, patch_cron, a::admin},
    {m::remove, "/v1/crons/{name}", b::none, w::answered, remove_cron, a::admin},
    {m::post, "/v1/crons/{name}/pause", b::none, w::answered, pause_cron, a::admin},
    {m::post, "/v1/crons/{name}/resume", b::none, w::answered, resume_cron, a::admin},
    {m::post, "/v1/crons/{name}/run", b::none, w::answered, run_cron, a::admin},
    {m::get, "/v1/faktory/workers", b::none, w::answered, list_faktory_workers, a::read},
    {m::post, "/v1/faktory/workers/{wid}/quiet", b::none, w::answered, quiet_faktory_worker,
     a::admin},
    {m::post, "/v1/faktory/workers/{wid}/terminate", b::none, w::answered, terminate_faktory_worker,
     a::admin},
    {m::get, "/v1/events", b::none, w::answered, get_events, a::read},
    {m::get, "/v1/stats", b::none, w::answered, get_stats, a::read},
    {m::get, "/v1/openapi.json", b::none, w::answered, get_openapi, a::read},
    {m::get, "/metrics", b::none, w::answered, get_metrics, a::read},
    {m::get, "/healthz", b::none, w::answered, get_health, a::open},
    {m::get, "/readyz", b::none, w::answered, get_readiness, a::open},
    {m::get, "/", b::none, w::answered, get_root, a::read},
});

std::string_view take_segment(std::string_view& path) {
  path.remove_prefix(1);  // the slash
  const std::size_t end = std::min(path.size(), path.find('/'));
  const std::string_view segment = path.substr(0, end);
  path.remove_prefix(end);
  return segment;
}

// Returns whether a path matches a route; sets `variable` to the segment of {id}, {name} or {wid}.
bool matches(std::string_view pattern, std::string_view path, std::string_view& variable) {
  while (!pattern.empty() && !path.empty()) {
    const std::string_view wanted = take_segment(pattern);
    const std::string_view there = take_segment(path);
    if (wanted.starts_with('{')) {
      if (there.empty()) return false;
      variable = there;
    } else if (wanted != there) {
      return false;
    }
  }
  return pattern.empty() && path.empty();
}

bool serves(const route& r, method asked) {
  return r.method == asked || (r.method == method::get && asked == method::head);
}

// Parses the variable of the path. Returns false and sets the problem if it is invalid.
bool read_variable(const route& r, std::string_view text, routed& into) {
  if (r.path.find("{id}") != std::string_view::npos) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), into.id);
    if (failed == std::errc{} && end == text.data() + text.size()) return true;
    into.status = 404;
    const bool is_batch = r.path.starts_with("/v1/batches");
    into.detail = std::string("there is no ") + (is_batch ? "batch '" : "job '") +
                  std::string(text.substr(0, 64)) + "': ids are whole numbers";
    return false;
  }
  const bool is_wid = r.path.find("{wid}") != std::string_view::npos;
  if (!is_wid && r.path.find("{name}") == std::string_view::npos) return true;
  auto name = percent_decode(text, false);
  // A wid is any text that its worker chose.
  const auto valid = !name    ? void_result(error{error_code::invalid, "bad %-escape in the path"})
                     : is_wid ? void_result(done{})
                              : validate_queue_name(*name);
  if (!valid) {
    into.status = status_of(valid.error().code);
    into.detail = valid.error().message;
    return false;
  }
  into.name = *std::move(name);
  return true;
}

void add_allowed(std::string& allow, method also) {
  if (!allow.empty()) allow += ", ";
  allow += to_string(also);
  if (also == method::get) allow += ", HEAD";
}

}  // namespace

std::span<const route> routes() noexcept {
  return all_routes;
}

void begin_call(const route& r, call& c) {
  if (r.needs != access::open) {
    if (const auto why = c.server.refusal_of(c.caller, role_of(r.needs)))
      return c.reply.refuse(*why);
  }
  r.handle(c);
}

routed find_route(method asked, std::string_view path) {
  routed found;
  if (asked == method::options && path == "*") {
    found.status = 204;
    found.allow = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
    return found;
  }
  if (!path.starts_with('/')) {
    found.status = 400;
    found.detail = "the target of a request must be a path that begins with /";
    return found;
  }
  for (const route& r : all_routes) {
    std::string_view variable;
    if (!matches(r.path, path, variable)) continue;
    if (!serves(r, asked)) {
      add_allowed(found.allow, r.method);
      continue;
    }
    if (read_variable(r, variable, found)) found.target = &r;
    return found;
  }
  if (found.allow.empty()) {
    found.detail = "no route matches " + std::string(path.substr(0, 200)) +
                   "; the routes are listed in docs/reference/http.md";
    return found;
  }
  found.allow += ", OPTIONS";
  found.status = asked == method::options ? 204 : 405;
  found.detail = std::string(path.substr(0, 200)) + " does not support " +
                 std::string(to_string(asked)) + "; it supports " + found.allow;
  return found;
}

result<bool> next_parameter(std::string_view& query, std::string& name, std::string& value) {
  const std::size_t end = std::min(query.size(), query.find('&'));
  const std::string_view one = query.substr(0, end);
  query.remove_prefix(std::min(query.size(), end + 1));
  if (one.empty()) return false;
  const std::size_t equal = std::min(one.size(), one.find('='));
  auto left = percent_decode(one.substr(0, equal), true);
  auto right = percent_decode(one.substr(std::min(one.size(), equal + 1)), true);
  if (!left || !right) {
    return error{error_code::invalid, "the query has a % without two hexadecimal digits after it"};
  }
  name = *std::move(left);
  value = *std::move(right);
  return true;
}

error unknown_parameter(std::string_view name, std::span<const std::string_view> known) {
  std::string message = "unknown parameter '" + std::string(name.substr(0, 64)) + "' in the query";
  for (std::size_t i = 0; i < known.size(); ++i) {
    message += i == 0 ? "; known are " : ", ";
    message += known[i];
  }
  if (known.empty()) message += "; this route takes none";
  return {error_code::invalid, std::move(message)};
}

}  // namespace sluice::jobs::http
