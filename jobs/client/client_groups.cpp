// Batches, cron entries, events, and progress and logs of attempts.
#include "jobs/client/client.hpp"
#include "jobs/client/detail/client_impl.hpp"
#include "jobs/json/text.hpp"

namespace sluice::jobs {
namespace {

using detail::add_parameter;
using detail::http_answer;
using detail::http_request;
using detail::job_path;
using detail::percent_encoded;
using detail::read_answer;
using verb = http_request::verb;

std::string batch_path(job_id id, std::string_view action = {}) {
  std::string path = "/v1/batches/" + std::to_string(id);
  if (!action.empty()) path += "/" + std::string(action);
  return path;
}

std::string cron_path(std::string_view name, std::string_view action = {}) {
  std::string path = "/v1/crons/" + percent_encoded(name);
  if (!action.empty()) path += "/" + std::string(action);
  return path;
}

void add_page(std::string& target, std::uint64_t after, std::size_t limit) {
  if (after != 0) add_parameter(target, "after", std::to_string(after));
  add_parameter(target, "limit", std::to_string(limit));
}

// A call on all jobs of a batch, which returns their number.
http_request sweep(job_id id, std::string_view action) {
  return {.method = verb::post,
          .target = batch_path(id, action),
          .repeatable = false,
          .takes_long = true};
}

template <class Receipt>
auto read_count(std::string url, std::uint64_t Receipt::*member) {
  return [url = std::move(url), member](const result<http_answer>& a) -> result<std::uint64_t> {
    if (!a) return a.error();
    auto got = read_answer<Receipt>(*a, url);
    if (!got) return got.error();
    return (*got).*member;
  };
}

std::string events_target(const event_request& request) {
  std::string target = "/v1/events?format=json";
  if (request.after) {
    add_parameter(target, "after",
                  json::to_string(json::event_place{request.epoch, *request.after}));
  }
  if (!request.queue.empty()) add_parameter(target, "queue", request.queue);
  if (request.job != 0) add_parameter(target, "job", std::to_string(request.job));
  if (request.batch != 0) add_parameter(target, "batch", std::to_string(request.batch));
  std::string types;
  for (const event_type type : request.types) {
    if (!types.empty()) types += ',';
    types += to_string(type);
  }
  if (!types.empty()) add_parameter(target, "types", types);
  add_parameter(target, "limit", std::to_string(request.limit));
  return target;
}

}  // namespace

// ---- batches

future<result<batch_receipt>> client::async_push_batch(batch_spec spec, wait_limits limits) {
  const auto make = [body = json::to_json(spec)](milliseconds waits) {
    http_request request{
        .method = verb::post, .target = "/v1/batches", .body = body, .repeatable = false};
    add_parameter(request.target, "wait", format_duration(waits));
    return request;
  };
  const auto read = [url = url()](const result<http_answer>& a) -> result<batch_receipt> {
    if (!a) return a.error();
    return read_answer<batch_receipt>(*a, url);
  };
  return impl_->wait_in_steps<result<batch_receipt>>(std::move(limits), make, read);
}

future<result<batch_info>> client::async_get_batch(job_id id, wait_limits limits) {
  return impl_->get_value<batch_info>({.target = batch_path(id)}, std::move(limits));
}

future<result<batch_page>> client::async_batches(job_id after, std::size_t limit,
                                                 wait_limits limits) {
  std::string target = "/v1/batches";
  add_page(target, after, limit);
  return impl_->get_value<batch_page>({.target = std::move(target)}, std::move(limits));
}

future<result<batch_info>> client::async_close_batch(job_id id, wait_limits limits) {
  return impl_->get_value<batch_info>({.method = verb::post, .target = batch_path(id, "close")},
                                      std::move(limits));
}

future<result<std::uint64_t>> client::async_cancel_batch(job_id id, wait_limits limits) {
  return impl_->call<result<std::uint64_t>>(sweep(id, "cancel"), std::move(limits),
                                            read_count(url(), &json::cancel_receipt::cancelled));
}

future<result<std::uint64_t>> client::async_retry_batch(job_id id, wait_limits limits) {
  return impl_->call<result<std::uint64_t>>(sweep(id, "retry"), std::move(limits),
                                            read_count(url(), &json::retry_receipt::retried));
}

// ---- cron

future<result<cron_info>> client::async_set_cron(cron_spec spec, wait_limits limits) {
  return impl_->get_value<cron_info>(
      {.method = verb::put, .target = cron_path(spec.name), .body = json::to_json(spec)},
      std::move(limits));
}

future<result<cron_info>> client::async_patch_cron(std::string name, cron_patch patch,
                                                   wait_limits limits) {
  return impl_->get_value<cron_info>(
      {.method = verb::patch, .target = cron_path(name), .body = json::to_json(patch)},
      std::move(limits));
}

future<void_result> client::async_remove_cron(std::string name, wait_limits limits) {
  return impl_->get_nothing({.method = verb::del, .target = cron_path(name), .repeatable = false},
                            std::move(limits));
}

future<result<push_receipt>> client::async_run_cron(std::string name, wait_limits limits) {
  return impl_->get_value<push_receipt>(
      {.method = verb::post, .target = cron_path(name, "run"), .repeatable = false},
      std::move(limits));
}

future<result<std::vector<cron_info>>> client::async_crons(wait_limits limits) {
  return impl_->get_value<std::vector<cron_info>>({.target = "/v1/crons"}, std::move(limits));
}

future<result<cron_info>> client::async_get_cron(std::string name, wait_limits limits) {
  return impl_->get_value<cron_info>({.target = cron_path(name)}, std::move(limits));
}

// ---- events

future<result<event_page>> client::async_events(event_request request, wait_limits limits) {
  const auto make = [target = events_target(request)](milliseconds waits) {
    http_request sent{.target = target};
    add_parameter(sent.target, "wait", format_duration(waits));
    return sent;
  };
  const auto read = [url = url()](const result<http_answer>& a) -> result<event_page> {
    if (!a) return a.error();
    return read_answer<event_page>(*a, url);
  };
  return impl_->wait_in_steps<result<event_page>>(std::move(limits), make, read);
}

// ---- workers

future<void_result> client::async_report(lease_ref lease, progress update, wait_limits limits) {
  const json::progress_call call{.lease = lease.key, .progress = std::move(update)};
  return impl_->get_nothing({.method = verb::post,
                             .target = job_path(lease.job, "progress"),
                             .body = json::to_json(call)},
                            std::move(limits));
}

future<void_result> client::async_log(lease_ref lease, std::vector<std::string> lines,
                                      wait_limits limits) {
  const json::log_call call{.lease = lease.key, .lines = std::move(lines)};
  return impl_->get_nothing({.method = verb::post,
                             .target = job_path(lease.job, "logs"),
                             .body = json::to_json(call),
                             .repeatable = false},
                            std::move(limits));
}

future<result<log_page>> client::async_logs(job_id id, std::uint64_t after, std::size_t limit,
                                            wait_limits limits) {
  std::string target = job_path(id, "logs");
  add_page(target, after, limit);
  return impl_->get_value<log_page>({.target = std::move(target)}, std::move(limits));
}

future<result<faktory_worker_page>> client::async_faktory_workers(std::string after,
                                                                  std::size_t limit,
                                                                  wait_limits limits) {
  std::string target = "/v1/faktory/workers";
  if (!after.empty()) add_parameter(target, "after", after);
  add_parameter(target, "limit", std::to_string(limit));
  return impl_->get_value<faktory_worker_page>({.target = std::move(target)}, std::move(limits));
}

future<result<faktory_worker>> client::async_set_faktory_worker_state(std::string wid,
                                                                      worker_state state,
                                                                      wait_limits limits) {
  check(state != worker_state::running, "sluice::jobs::client::set_faktory_worker_state",
        "quiet or terminate");
  return impl_->get_value<faktory_worker>({.method = verb::post,
                                           .target = "/v1/faktory/workers/" + percent_encoded(wid) +
                                                     "/" + std::string(to_string(state))},
                                          std::move(limits));
}

// ---- blocking calls

result<batch_receipt> client::push_batch(batch_spec spec, wait_limits limits) {
  return impl_->wait_for(async_push_batch(std::move(spec), std::move(limits)));
}
void_result client::report(lease_ref lease, progress update, wait_limits limits) {
  return impl_->wait_for(async_report(lease, std::move(update), std::move(limits)));
}
void_result client::log(lease_ref lease, std::vector<std::string> lines, wait_limits limits) {
  return impl_->wait_for(async_log(lease, std::move(lines), std::move(limits)));
}
result<log_page> client::logs(job_id id, std::uint64_t after, std::size_t limit,
                              wait_limits limits) {
  return impl_->wait_for(async_logs(id, after, limit, std::move(limits)));
}
result<batch_info> client::get_batch(job_id id, wait_limits limits) {
  return impl_->wait_for(async_get_batch(id, std::move(limits)));
}
result<batch_page> client::batches(job_id after, std::size_t limit, wait_limits limits) {
  return impl_->wait_for(async_batches(after, limit, std::move(limits)));
}
result<batch_info> client::close_batch(job_id id, wait_limits limits) {
  return impl_->wait_for(async_close_batch(id, std::move(limits)));
}
result<std::uint64_t> client::cancel_batch(job_id id, wait_limits limits) {
  return impl_->wait_for(async_cancel_batch(id, std::move(limits)));
}
result<std::uint64_t> client::retry_batch(job_id id, wait_limits limits) {
  return impl_->wait_for(async_retry_batch(id, std::move(limits)));
}
result<cron_info> client::set_cron(cron_spec spec, wait_limits limits) {
  return impl_->wait_for(async_set_cron(std::move(spec), std::move(limits)));
}
result<cron_info> client::patch_cron(std::string name, cron_patch patch, wait_limits limits) {
  return impl_->wait_for(async_patch_cron(std::move(name), patch, std::move(limits)));
}
void_result client::remove_cron(std::string name, wait_limits limits) {
  return impl_->wait_for(async_remove_cron(std::move(name), std::move(limits)));
}
result<push_receipt> client::run_cron(std::string name, wait_limits limits) {
  return impl_->wait_for(async_run_cron(std::move(name), std::move(limits)));
}
result<std::vector<cron_info>> client::crons(wait_limits limits) {
  return impl_->wait_for(async_crons(std::move(limits)));
}
result<cron_info> client::get_cron(std::string name, wait_limits limits) {
  return impl_->wait_for(async_get_cron(std::move(name), std::move(limits)));
}
result<faktory_worker_page> client::faktory_workers(std::string after, std::size_t limit,
                                                    wait_limits limits) {
  return impl_->wait_for(async_faktory_workers(std::move(after), limit, std::move(limits)));
}
result<faktory_worker> client::set_faktory_worker_state(std::string wid, worker_state state,
                                                        wait_limits limits) {
  return impl_->wait_for(async_set_faktory_worker_state(std::move(wid), state, std::move(limits)));
}
result<event_page> client::events(event_request request, wait_limits limits) {
  return impl_->wait_for(async_events(std::move(request), std::move(limits)));
}

}  // namespace sluice::jobs
