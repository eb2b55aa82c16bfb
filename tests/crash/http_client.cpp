#include "tests/crash/http_client.hpp"

#include <charconv>
#include <utility>

#include "jobs/json/codec.hpp"

namespace sluice::crash {
namespace {

namespace json = jobs::json;

using jobs::testing::reply;

bool is_success(const reply& answered) {
  return answered.status >= 200 && answered.status < 300;
}

// Converts the error of an unsuccessful reply; no answer if it cannot be parsed.
push_answer refusal(const reply& answered) {
  const auto problem = json::read<json::problem>(answered.body);
  if (!problem) return {};
  const auto code = problem->error.code;
  return {answer_for(code), code == jobs::error_code::duplicate, 0, std::string(to_string(code))};
}

}  // namespace

std::uint16_t port_of(std::string_view url) {
  std::uint16_t port = 0;
  const auto* const from = url.data() + url.rfind(':') + 1;
  std::from_chars(from, url.data() + url.size(), port);
  return port;
}

const reply& http_client::ask(std::string_view method, const std::string& path,
                              std::string_view body) {
  last_ = {};
  if (gone_) return last_;
  wire_.request(method, path, body);
  last_ = wire_.receive();
  gone_ = last_.status == 0;
  return last_;
}

taken_job http_client::take(const jobs::job& job, jobs::lease_ref lease) const {
  taken_job converted = taken(job, lease);
  converted.contents = read_(job.spec);
  converted.id = token_of(converted.contents);
  return converted;
}

std::vector<push_answer> http_client::push(const std::vector<jobs::job_spec>& specs,
                                           jobs::bulk mode) {
  const bool one = specs.size() == 1;
  const auto body = one ? json::to_json(specs.front())
                        : json::to_json(json::push_call{.jobs = specs, .mode = mode});
  const auto& answered = ask("POST", "/v1/jobs", body);
  if (!is_success(answered)) return std::vector<push_answer>(specs.size(), refusal(answered));
  if (one) return {answer_of(json::read<jobs::push_receipt>(answered.body))};
  const auto made = json::read<std::vector<jobs::result<jobs::push_receipt>>>(answered.body);
  if (!made) return std::vector<push_answer>(specs.size());
  std::vector<push_answer> answers;
  for (const auto& each : *made) answers.push_back(answer_of(each));
  return answers;
}

std::optional<std::vector<taken_job>> http_client::lease(std::size_t max, milliseconds wait,
                                                         milliseconds lease_for) {
  json::lease_call call;
  call.request.queues = {"alpha", "beta"};
  call.request.max = max;
  call.request.worker = "crash";
  call.request.lease_for = lease_for;
  call.wait = wait;
  const auto& answered = ask("POST", "/v1/leases", json::to_json(call));
  if (!is_success(answered)) return std::nullopt;
  std::vector<taken_job> all;
  if (answered.status == 204) return all;
  const auto made = json::read<std::vector<jobs::leased_job>>(answered.body);
  if (!made) return std::nullopt;
  for (const auto& job : *made) all.push_back(take(*job.job, job.ref()));
  return all;
}

answer http_client::end(jobs::job_id id, std::string_view operation, std::string_view body) {
  const auto path = "/v1/jobs/" + std::to_string(id) + "/" + std::string(operation);
  const auto& answered = ask("POST", path, body);
  return is_success(answered) ? answer::yes : refusal(answered).outcome;
}

answer http_client::ack(const taken_job& job, const std::string& result) {
  json::ack_call call{.lease = job.lease.key};
  if (!result.empty()) call.result = jobs::payload{result};
  return end(job.lease.job, "ack", json::to_json(call));
}

std::vector<answer> http_client::ack_many(const std::vector<taken_job>& jobs) {
  json::acks_call call;
  for (const auto& job : jobs) call.acks.push_back({job.lease, {}});
  const auto& answered = ask("POST", "/v1/acks", json::to_json(call));
  if (!is_success(answered)) return std::vector<answer>(jobs.size(), refusal(answered).outcome);
  const auto made = json::read<std::vector<jobs::void_result>>(answered.body);
  std::vector<answer> answers;
  if (!made) return answers;
  for (const auto& each : *made) {
    answers.push_back(each ? answer::yes : answer_for(each.error().code));
  }
  return answers;
}

answer http_client::fail(const taken_job& job, milliseconds retry_in) {
  json::fail_call call{job.lease.key, requested_failure()};
  call.failure.retry_in = retry_in;
  return end(job.lease.job, "fail", json::to_json(call));
}

answer http_client::bury(const taken_job& job) {
  json::fail_call call{job.lease.key, requested_failure()};
  call.failure.for_good = true;
  return end(job.lease.job, "fail", json::to_json(call));
}

answer http_client::extend(const taken_job& job, milliseconds by) {
  return end(job.lease.job, "extend", json::to_json(json::extend_call{job.lease.key, by}));
}

answer http_client::cancel(jobs::job_id id) {
  return end(id, "cancel", {});
}

answer http_client::remove(jobs::job_id id) {
  const auto& answered = ask("DELETE", "/v1/jobs/" + std::to_string(id));
  return is_success(answered) ? answer::yes : refusal(answered).outcome;
}

answer http_client::retry(jobs::job_id id) {
  return end(id, "retry", {});
}

std::optional<std::vector<taken_job>> http_client::list(jobs::job_state state) {
  std::vector<taken_job> all;
  std::string after;
  const auto path = "/v1/jobs?limit=1000&state=" + std::string(to_string(state));
  for (;;) {
    const auto& answered = ask("GET", path + after);
    if (!is_success(answered)) return std::nullopt;
    const auto page = json::read<jobs::job_page>(answered.body);
    if (!page) return std::nullopt;
    for (const auto& job : page->jobs) all.push_back(take(job, {job.id, 0}));
    if (!page->cursor) return all;
    after = "&after=" + std::to_string(*page->cursor);
  }
}

bool http_client::close_batches() {
  std::string after;
  for (;;) {
    const auto& answered = ask("GET", "/v1/batches?limit=1000" + after);
    if (!is_success(answered)) return false;
    const auto page = json::read<jobs::batch_page>(answered.body);
    if (!page) return false;
    for (const auto& batch : page->batches) {
      if (!batch.open) continue;
      const auto path = "/v1/batches/" + std::to_string(batch.id) + "/close";
      if (!is_success(ask("POST", path))) return false;
    }
    if (!page->cursor) return true;
    after = "&after=" + std::to_string(*page->cursor);
  }
}

std::optional<std::uint64_t> http_client::unfinished() {
  const auto& answered = ask("GET", "/v1/queues");
  if (!is_success(answered)) return std::nullopt;
  const auto queues = json::read<std::vector<jobs::queue_info>>(answered.body);
  if (!queues) return std::nullopt;
  std::uint64_t count = 0;
  for (const auto& queue : *queues) count += queue.counts.unfinished();
  return count;
}

}  // namespace sluice::crash
