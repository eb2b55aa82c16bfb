#include <cstdlib>

#include "jobs/json/text.hpp"
#include "sluice/base/atomic.hpp"
#include "tests/crash/wire_clients.hpp"

namespace sluice::crash {
namespace {

std::string jid_of(token id) {
  return "crash-" + std::to_string(100'000'000 + id);
}

// [{"token":1,"pad":"..."},"alpha crash 2"]: the result of contents_of as two values.
std::string args_of(const jobs::job_spec& spec) {
  return "[" + spec.args.data + ",\"" + spec.queue + " " + spec.kind + " " +
         std::to_string(spec.priority) + "\"]";
}

std::string contents_in(std::string_view text) {
  const auto begin = text.find("{\"token\":");
  if (begin == std::string_view::npos) return "no token in: " + std::string(text);
  const auto end = text.find("\"}", begin);
  const auto label = text.find('"', end + 2);
  if (end == std::string_view::npos || label == std::string_view::npos)
    return "cut: " + std::string(text);
  const auto label_end = text.find('"', label + 1);
  return std::string(text.substr(label + 1, label_end - label - 1)) + " " +
         std::string(text.substr(begin, end + 2 - begin));
}

// Jobs with equal arguments are duplicates, so their distinguishing contents are custom fields.
std::string custom_of(const jobs::job_spec& spec, const std::string& bid) {
  std::string text = bid.empty() ? "" : R"(,"bid":")" + bid + "\"";
  if (!spec.unique.key.empty()) {
    const bool until_start = spec.unique.until == jobs::unique_until::started;
    text += R"(,"unique_for":3600,"unique_until":")" +
            std::string(until_start ? "start" : "success") + R"(","contents":)" + args_of(spec);
  }
  return text.empty() ? text : R"(,"custom":{)" + text.substr(1) + "}";
}

std::string job_of(const jobs::job_spec& spec, const std::string& bid = {}) {
  const std::string& key = spec.unique.key;
  std::string text = R"({"jid":")" + jid_of(token_of(spec.args.data)) +
                     R"(","jobtype":"crash","queue":")" + spec.queue + R"(","retry":1000,"args":)" +
                     (key.empty() ? args_of(spec) : "[\"" + key + "\"]") + custom_of(spec, bid);
  if (spec.run_at > jobs::unix_time{}) {
    text += R"(,"at":")" + jobs::format_time(spec.run_at) + "\"";
  }
  return text + "}";
}

// The protocol's shortest reservation is a minute. A job pushed over HTTP may have a shorter one.
constexpr milliseconds short_reservation{300};
constexpr milliseconds usual_reservation = std::chrono::minutes(30);
constexpr std::string_view own_jid = "sluice-";

bool goes_over_http(const jobs::job_spec& spec) {
  return token_of(spec.args.data) % 4 == 0 && spec.unique.key.empty();
}

std::string text_after(std::string_view text, std::string_view name) {
  const auto at = text.find(name);
  if (at == std::string_view::npos) return {};
  const auto from = at + name.size();
  return std::string(text.substr(from, text.find_first_of("\",}", from) - from));
}

// Returns the number of the attempt, computed from the number of failures.
std::uint32_t attempt_in(const std::string& text) {
  const std::string retries = text_after(text, "\"retry_count\":");
  return retries.empty()
             ? 1
             : static_cast<std::uint32_t>(std::strtoul(retries.c_str(), nullptr, 10)) + 2;
}

}  // namespace

std::string faktory_contents(const jobs::job_spec& spec) {
  const bool is_unique = spec.args.data.find("{\"token\":") == std::string::npos;
  return contents_in(is_unique ? spec.metadata : spec.args.data);
}

faktory_client::faktory_client(std::uint16_t port, std::uint16_t http_port, open_connections& kept)
    : wire_client(port, http_client(http_port, faktory_contents), kept) {
  static atomic<std::uint64_t> count{0};
  wid_ = "crash-worker-" + std::to_string(++count);
  receive_line();  // +HI
  ask(R"(HELLO {"v":2,"hostname":"crash","pid":1,"labels":[],"wid":")" + wid_ + "\"}");
}

answer faktory_client::ask(const std::string& command) {
  if (!send(command + "\r\n")) return answer::none;
  const std::string line = receive_line();
  if (gone()) return answer::none;
  return line == "+OK" ? answer::yes : answer::no;
}

std::vector<push_answer> faktory_client::push(const std::vector<jobs::job_spec>& specs,
                                              jobs::bulk) {
  if (specs.size() > 1) return push_bulk(specs, {});
  if (goes_over_http(specs.front())) {
    jobs::job_spec spec = specs.front();
    spec.args.data = args_of(spec);
    spec.lease_for = short_reservation;
    // A FAIL has no pause, so the job's own pause is longer than any that the load requests.
    spec.retry.first = milliseconds(60);
    spec.retry.jitter = 0;
    return http().push({spec}, jobs::bulk::each);
  }
  if (!send("PUSH " + job_of(specs.front()) + "\r\n")) return std::vector<push_answer>(1);
  const std::string line = receive_line();
  if (gone()) return std::vector<push_answer>(1);
  return {{line == "+OK" ? answer::yes : answer::no, line.starts_with("-NOTUNIQUE"), 0, line}};
}

batch_answer faktory_client::push_batch(const std::vector<jobs::job_spec>& specs,
                                        const jobs::job_spec& on_end,
                                        const jobs::job_spec& on_success) {
  batch_answer all{answer::none, std::vector<push_answer>(specs.size())};
  if (!send(R"(BATCH NEW {"complete":)" + job_of(on_end) + R"(,"success":)" + job_of(on_success) +
            "}\r\n")) {
    return all;
  }
  const std::string line = receive_line();
  if (gone()) return all;
  const bool is_there = line.starts_with("$");
  std::string bid;
  if (is_there) bid = receive_bytes(std::strtoull(line.c_str() + 1, nullptr, 10) + 2);
  if (gone()) return all;
  all.callbacks = is_there ? answer::yes : answer::no;
  if (!is_there) {
    for (auto& each : all.jobs) each.outcome = answer::no;
    return all;
  }
  bid.resize(bid.size() - 2);
  all.jobs = push_bulk(specs, bid);
  ask("BATCH COMMIT " + bid);
  return all;
}

std::vector<push_answer> faktory_client::push_bulk(const std::vector<jobs::job_spec>& specs,
                                                   const std::string& bid) {
  std::string text;
  for (const auto& spec : specs) text += (text.empty() ? "[" : ",") + job_of(spec, bid);
  std::vector<push_answer> answers(specs.size());
  if (!send("PUSHB " + text + "]\r\n")) return answers;
  const std::string line = receive_line();  // $2, {}: none was rejected
  if (gone()) return answers;
  std::string refused;
  if (line.starts_with("$")) {
    refused = receive_bytes(std::strtoull(line.c_str() + 1, nullptr, 10) + 2);
    if (gone()) return answers;
  }
  const bool is_refused = !line.starts_with("$");  // all of them
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::string why =
        text_after(refused, "\"" + jid_of(token_of(specs[i].args.data)) + "\":\"");
    answers[i].outcome = is_refused || !why.empty() ? answer::no : answer::yes;
    answers[i].duplicate = why == "Job not unique";
  }
  return answers;
}

std::optional<std::vector<taken_job>> faktory_client::lease(std::size_t, milliseconds,
                                                            milliseconds) {
  if (!send("FETCH alpha beta\r\n")) return std::nullopt;
  const std::string line = receive_line();
  if (gone()) return std::nullopt;
  std::vector<taken_job> all;
  if (!line.starts_with("$") || line == "$-1") return all;
  const std::string text = receive_bytes(std::strtoull(line.c_str() + 1, nullptr, 10) + 2);
  if (gone()) return std::nullopt;
  taken_job job;
  job.contents = contents_in(text);
  job.id = token_of(job.contents);
  job.name = text_after(text, "\"jid\":\"");
  job.attempt = attempt_in(text);
  job.lasts = job.name.starts_with(own_jid) ? short_reservation : usual_reservation;
  all.push_back(std::move(job));
  return all;
}

answer faktory_client::ack(const taken_job& job, const std::string&) {
  return if_held(job, ask(R"(ACK {"jid":")" + job.name + "\"}"));
}

answer faktory_client::fail(const taken_job& job, milliseconds) {
  return if_held(job, ask(R"(FAIL {"jid":")" + job.name +
                          R"(","errtype":"crash","message":"asked to","backtrace":[]})"));
}

// A worker that has lost the job also gets +OK.
answer faktory_client::if_held(const taken_job& job, answer outcome) {
  const bool may_be_lost = jobs::real_time().now() >= job.held_until;
  return outcome == answer::yes && may_be_lost ? answer::none : outcome;
}

// BEAT extends all leases of a worker.
answer faktory_client::extend(const taken_job&, milliseconds) {
  return ask(R"(BEAT {"wid":")" + wid_ + "\"}");
}

bool faktory_client::requeue_retries() {
  return ask(R"(MUTATE {"cmd":"requeue","target":"retries"})") == answer::yes;
}

}  // namespace sluice::crash
