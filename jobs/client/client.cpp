#include "jobs/client/client.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "jobs/client/detail/client_impl.hpp"
#include "jobs/json/text.hpp"

namespace sluice::jobs {
namespace {

using detail::add_parameter;
using detail::error_of;
using detail::http_answer;
using detail::http_request;
using detail::is_success;
using detail::job_path;
using detail::percent_encoded;
using detail::read_answer;
using verb = http_request::verb;

constexpr const char* default_url = "http://127.0.0.1:7433";
constexpr milliseconds clocks_differ{2000};  // the Date field has a resolution of a second

std::string environment(const char* name, const char* otherwise = "") {
  const char* const set = std::getenv(name);
  return set != nullptr && *set != '\0' ? set : otherwise;
}

std::string queue_path(std::string_view name, std::string_view action = {}) {
  std::string path = "/v1/queues/" + percent_encoded(name);
  if (!action.empty()) path += "/" + std::string(action);
  return path;
}

// Converts a time of the server to this machine's clock.
void to_own_clock(unix_time& t, const http_answer& a, unix_time now) {
  if (!a.date) return;
  const milliseconds ahead = *a.date - now;
  if (ahead > clocks_differ || ahead < -clocks_differ) t = t - ahead;
}

http_request release_of(lease_ref lease, give_back options) {
  return {.method = verb::post,
          .target = job_path(lease.job, "release"),
          .body = json::to_json(json::release_call{.lease = lease.key, .release = options}),
          .repeatable = false};
}

// Returns the requests that release the leases of a late reply; otherwise their jobs would stay
// leased until expiry.
std::vector<http_request> release_late_leases(const http_answer& a) {
  std::vector<http_request> all;
  if (a.status != 200) return all;
  if (const auto got = json::read<std::vector<leased_job>>(a.body)) {
    for (const leased_job& j : *got) all.push_back(release_of(j.ref(), {}));
  }
  return all;
}

// Returns the same error `many` times.
template <class T>
std::vector<result<T>> for_each_of(std::size_t many, const error& why) {
  return std::vector<result<T>>(many, result<T>(why));
}

template <class T>
std::vector<result<T>> one_for_each(std::size_t many, result<std::vector<result<T>>> got,
                                    const std::string& url) {
  if (!got) return for_each_of<T>(many, got.error());
  if (got->size() == many) return std::move(*got);
  return for_each_of<T>(
      many, {error_code::unavailable,
             "the job server at " + url + ": the response has results for " +
                 std::to_string(got->size()) + " of " + std::to_string(many) + " items"});
}

}  // namespace

result<client> client::open(options o) {
  if (o.url.empty()) o.url = environment("SLUICE_URL", default_url);
  if (o.token.empty()) o.token = environment("SLUICE_TOKEN");
  if (o.ca_file.empty()) o.ca_file = environment("SLUICE_CA_FILE");
  auto server = detail::parse_http_url(o.url);
  if (!server) return server.error();
  if (!std::ranges::all_of(o.token, [](char c) { return c > ' ' && c < 0x7F; })) {
    return error{error_code::invalid,
                 "the token for the server is invalid: it has white space, control characters or "
                 "non-ASCII characters"};
  }
  std::shared_ptr<boost::asio::ssl::context> trust;
  if (server->is_secure) {
    auto made = detail::make_tls_trust(o.ca_file);
    if (!made) return made.error();
    trust = *std::move(made);
  }
  check(o.connections_max > 0 && o.wait_step > milliseconds(0), "sluice::jobs::client",
        "at least one connection and a positive wait_step");
  return client(std::make_unique<impl>(std::move(*server), std::move(o), std::move(trust)));
}

client::client(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
client::client(client&&) noexcept = default;
client& client::operator=(client&&) noexcept = default;
client::~client() = default;

const std::string& client::url() const noexcept {
  return impl_->url();
}

// ---- producers

future<result<push_receipt>> client::async_push(job_spec spec, wait_limits limits) {
  const auto make = [body = json::to_json(spec)](milliseconds waits) {
    http_request request{
        .method = verb::post, .target = "/v1/jobs", .body = body, .repeatable = false};
    add_parameter(request.target, "wait", format_duration(waits));
    return request;
  };
  const auto read = [url = url()](const result<http_answer>& a) -> result<push_receipt> {
    if (!a) return a.error();
    return read_answer<push_receipt>(*a, url);
  };
  return impl_->wait_in_steps<result<push_receipt>>(std::move(limits), make, read);
}

future<std::vector<result<push_receipt>>> client::async_push_many(std::vector<job_spec> specs,
                                                                  bulk mode, wait_limits limits) {
  using results = std::vector<result<push_receipt>>;
  const std::size_t many = specs.size();
  if (many == 0) return make_ready_future<results>();
  const auto make = [body = json::to_json(json::push_call{.jobs = std::move(specs), .mode = mode})](
                        milliseconds waits) {
    http_request request{
        .method = verb::post, .target = "/v1/jobs", .body = body, .repeatable = false};
    add_parameter(request.target, "wait", format_duration(waits));
    return request;
  };
  const auto read = [many, url = url()](const result<http_answer>& a) -> results {
    if (!a) return for_each_of<push_receipt>(many, a.error());
    // An error response has one result per job, too, if no job was pushed.
    auto each = json::read<results>(a->body);
    if (each && each->size() == many) return std::move(*each);
    return one_for_each<push_receipt>(many, read_answer<results>(*a, url), url);
  };
  return impl_->wait_in_steps<results>(std::move(limits), make, read);
}

// ---- workers

future<result<std::vector<leased_job>>> client::async_lease(lease_request request,
                                                            wait_limits limits) {
  using leases = result<std::vector<leased_job>>;
  const auto make = [request = std::move(request)](milliseconds waits) {
    return http_request{.method = verb::post,
                        .target = "/v1/leases",
                        .body = json::to_json(json::lease_call{.request = request, .wait = waits}),
                        .repeatable = false,
                        .undo = release_late_leases};
  };
  const auto read = [url = url(), self = impl_.get()](const result<http_answer>& a) -> leases {
    if (!a) return a.error();
    const auto none = [] { return error{error_code::timed_out, "no job to lease"}; };
    if (a->status == 204) return none();
    auto got = read_answer<std::vector<leased_job>>(*a, url);
    if (!got) return got;
    if (got->empty()) return none();
    for (leased_job& j : *got) to_own_clock(j.until, *a, self->now());
    return got;
  };
  return impl_->wait_in_steps<leases>(std::move(limits), make, read);
}

future<result<extension>> client::async_extend(lease_ref lease, milliseconds by,
                                               std::optional<progress> update, wait_limits limits) {
  const json::extend_call extend{.lease = lease.key, .by = by, .progress = std::move(update)};
  http_request request{
      .method = verb::post, .target = job_path(lease.job, "extend"), .body = json::to_json(extend)};
  return impl_->call<result<extension>>(
      std::move(request), std::move(limits),
      [url = url(), self = impl_.get()](const result<http_answer>& a) -> result<extension> {
        if (!a) return a.error();
        auto got = read_answer<extension>(*a, url);
        if (got) to_own_clock(got->until, *a, self->now());
        return got;
      });
}

future<void_result> client::async_ack(lease_ref lease, std::optional<payload> job_result,
                                      wait_limits limits) {
  const json::ack_call call{.lease = lease.key, .result = std::move(job_result)};
  return impl_->get_nothing({.method = verb::post,
                             .target = job_path(lease.job, "ack"),
                             .body = json::to_json(call),
                             .repeatable = false},
                            std::move(limits));
}

future<std::vector<void_result>> client::async_ack_many(std::vector<ack_item> items,
                                                        wait_limits limits) {
  using results = std::vector<void_result>;
  const std::size_t many = items.size();
  if (many == 0) return make_ready_future<results>();
  return impl_->call<results>({.method = verb::post,
                               .target = "/v1/acks",
                               .body = json::to_json(json::acks_call{.acks = std::move(items)}),
                               .repeatable = false},
                              std::move(limits),
                              [many, url = url()](const result<http_answer>& a) -> results {
                                if (!a) return for_each_of<done>(many, a.error());
                                return one_for_each<done>(many, read_answer<results>(*a, url), url);
                              });
}

future<result<fail_receipt>> client::async_fail(lease_ref lease, failure why, wait_limits limits) {
  const json::fail_call call{.lease = lease.key, .failure = std::move(why)};
  return impl_->get_value<fail_receipt>({.method = verb::post,
                                         .target = job_path(lease.job, "fail"),
                                         .body = json::to_json(call),
                                         .repeatable = false},
                                        std::move(limits));
}

future<void_result> client::async_release(lease_ref lease, give_back terms, wait_limits limits) {
  return impl_->get_nothing(release_of(lease, terms), std::move(limits));
}

// ---- queries and management

future<result<job>> client::async_get(job_id id, wait_limits limits) {
  return impl_->get_value<job>({.target = job_path(id)}, std::move(limits));
}

future<result<job>> client::async_wait(job_id id, wait_limits limits) {
  const auto make = [id](milliseconds waits) {
    http_request request{.target = job_path(id)};
    add_parameter(request.target, "wait", format_duration(waits));
    return request;
  };
  const auto read = [id, url = url()](const result<http_answer>& a) -> result<job> {
    if (!a) return a.error();
    auto got = read_answer<job>(*a, url);
    if (!got || has_ended(got->state)) return got;
    return error{error_code::timed_out,
                 "job " + std::to_string(id) + " is still " + std::string(to_string(got->state)),
                 id};
  };
  return impl_->wait_in_steps<result<job>>(std::move(limits), make, read);
}

future<result<job_page>> client::async_list(list_request request, wait_limits limits) {
  std::string target = "/v1/jobs";
  if (!request.queue.empty()) add_parameter(target, "queue", request.queue);
  if (request.state) add_parameter(target, "state", to_string(*request.state));
  if (!request.kind.empty()) add_parameter(target, "kind", request.kind);
  if (request.batch != 0) add_parameter(target, "batch", std::to_string(request.batch));
  if (request.after != 0) add_parameter(target, "after", std::to_string(request.after));
  add_parameter(target, "limit", std::to_string(request.limit));
  return impl_->get_value<job_page>({.target = std::move(target)}, std::move(limits));
}

future<result<job>> client::async_cancel(job_id id, wait_limits limits) {
  return impl_->get_value<job>(
      {.method = verb::post, .target = job_path(id, "cancel"), .repeatable = false},
      std::move(limits));
}

future<result<job>> client::async_retry(job_id id, wait_limits limits) {
  return impl_->get_value<job>(
      {.method = verb::post, .target = job_path(id, "retry"), .repeatable = false},
      std::move(limits));
}

future<void_result> client::async_remove(job_id id, wait_limits limits) {
  return impl_->get_nothing({.method = verb::del, .target = job_path(id), .repeatable = false},
                            std::move(limits));
}

future<result<std::vector<queue_info>>> client::async_queues(wait_limits limits) {
  return impl_->get_value<std::vector<queue_info>>({.target = "/v1/queues"}, std::move(limits));
}

future<result<queue_info>> client::async_queue(std::string name, wait_limits limits) {
  return impl_->get_value<queue_info>({.target = queue_path(name)}, std::move(limits));
}

future<result<queue_info>> client::async_configure(std::string name, queue_patch patch,
                                                   wait_limits limits) {
  return impl_->get_value<queue_info>(
      {.method = verb::patch, .target = queue_path(name), .body = json::to_json(patch)},
      std::move(limits));
}

future<result<std::uint64_t>> client::async_purge(std::string name, wait_limits limits) {
  return impl_->call<result<std::uint64_t>>(
      {.method = verb::post,
       .target = queue_path(name, "purge"),
       .repeatable = false,
       .takes_long = true},
      std::move(limits), [url = url()](const result<http_answer>& a) -> result<std::uint64_t> {
        if (!a) return a.error();
        auto got = read_answer<json::purge_receipt>(*a, url);
        if (!got) return got.error();
        return got->purged;
      });
}

future<result<engine_stats>> client::async_stats(wait_limits limits) {
  return impl_->get_value<engine_stats>({.target = "/v1/stats"}, std::move(limits));
}

future<result<jobs::health>> client::async_health(wait_limits limits) {
  using answer = result<jobs::health>;
  return impl_->call<answer>({.target = "/readyz"}, std::move(limits),
                             [url = url()](const result<http_answer>& a) -> answer {
                               if (!a) return a.error();
                               if (is_success(*a)) return jobs::health{};
                               error why = error_of(*a, url);
                               if (why.code == error_code::unavailable) return why;
                               return jobs::health{.takes_pushes = false,
                                                   .code = why.code,
                                                   .reason = std::move(why.message)};
                             });
}

// ---- blocking calls

result<push_receipt> client::push(job_spec spec, wait_limits limits) {
  return impl_->wait_for(async_push(std::move(spec), std::move(limits)));
}
std::vector<result<push_receipt>> client::push_many(std::vector<job_spec> specs, bulk mode,
                                                    wait_limits limits) {
  return impl_->wait_for(async_push_many(std::move(specs), mode, std::move(limits)));
}
result<std::vector<leased_job>> client::lease(lease_request request, wait_limits limits) {
  return impl_->wait_for(async_lease(std::move(request), std::move(limits)));
}
result<extension> client::extend(lease_ref lease, milliseconds by, std::optional<progress> update,
                                 wait_limits limits) {
  return impl_->wait_for(async_extend(lease, by, std::move(update), std::move(limits)));
}
void_result client::ack(lease_ref lease, std::optional<payload> job_result, wait_limits limits) {
  return impl_->wait_for(async_ack(lease, std::move(job_result), std::move(limits)));
}
std::vector<void_result> client::ack_many(std::vector<ack_item> items, wait_limits limits) {
  return impl_->wait_for(async_ack_many(std::move(items), std::move(limits)));
}
result<fail_receipt> client::fail(lease_ref lease, failure why, wait_limits limits) {
  return impl_->wait_for(async_fail(lease, std::move(why), std::move(limits)));
}
void_result client::release(lease_ref lease, give_back terms, wait_limits limits) {
  return impl_->wait_for(async_release(lease, terms, std::move(limits)));
}
result<job> client::get(job_id id, wait_limits limits) {
  return impl_->wait_for(async_get(id, std::move(limits)));
}
result<job> client::wait(job_id id, wait_limits limits) {
  return impl_->wait_for(async_wait(id, std::move(limits)));
}
result<job_page> client::list(list_request request, wait_limits limits) {
  return impl_->wait_for(async_list(std::move(request), std::move(limits)));
}
result<job> client::cancel(job_id id, wait_limits limits) {
  return impl_->wait_for(async_cancel(id, std::move(limits)));
}
result<job> client::retry(job_id id, wait_limits limits) {
  return impl_->wait_for(async_retry(id, std::move(limits)));
}
void_result client::remove(job_id id, wait_limits limits) {
  return impl_->wait_for(async_remove(id, std::move(limits)));
}
result<std::vector<queue_info>> client::queues(wait_limits limits) {
  return impl_->wait_for(async_queues(std::move(limits)));
}
result<queue_info> client::queue(std::string name, wait_limits limits) {
  return impl_->wait_for(async_queue(std::move(name), std::move(limits)));
}
result<queue_info> client::configure(std::string name, queue_patch patch, wait_limits limits) {
  return impl_->wait_for(async_configure(std::move(name), patch, std::move(limits)));
}
result<std::uint64_t> client::purge(std::string name, wait_limits limits) {
  return impl_->wait_for(async_purge(std::move(name), std::move(limits)));
}
result<engine_stats> client::stats(wait_limits limits) {
  return impl_->wait_for(async_stats(std::move(limits)));
}
result<jobs::health> client::health(wait_limits limits) {
  return impl_->wait_for(async_health(std::move(limits)));
}

}  // namespace sluice::jobs
