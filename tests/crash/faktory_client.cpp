#include <cstdlib>

#include "jobs/json/text.hpp"
#include "sluice/base/atomic.hpp"
#include "tests/crash/wire_clients.hpp"

namespace sluice::crash {
namespace {

std::string jid_of(token it) {
  return "crash-" + std::to_string(100'000'000 + it);
}

// [{"token":1,"pad":"..."},"alpha crash 2"]: what contents_of makes, in two values.
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

std::string job_of(const jobs::job_spec& spec) {
  std::string text = R"({"jid":")" + jid_of(token_of(spec.args.data)) +
                     R"(","jobtype":"crash","queue":")" + spec.queue + R"(","retry":1000,"args":)" +
                     args_of(spec);
  if (spec.run_at > jobs::unix_time{}) {
    text += R"(,"at":")" + jobs::format_time(spec.run_at) + "\"";
  }
  return text + "}";
}

}  // namespace

std::string faktory_contents(const jobs::job_spec& spec) {
  return contents_in(spec.args.data);
}

faktory_client::faktory_client(std::uint16_t port, std::uint16_t http_port, open_connections& kept)
    : wire_client(port, http_client(http_port, faktory_contents), kept) {
  static atomic<std::uint64_t> count{0};
  wid_ = "crash-worker-" + std::to_string(++count);
  hear();  // +HI
  ask(R"(HELLO {"v":2,"hostname":"crash","pid":1,"labels":[],"wid":")" + wid_ + "\"}");
}

answer faktory_client::ask(const std::string& command) {
  if (!say(command + "\r\n")) return answer::none;
  const std::string line = hear();
  if (gone()) return answer::none;
  return line == "+OK" ? answer::yes : answer::no;
}

std::vector<push_answer> faktory_client::push(const std::vector<jobs::job_spec>& specs,
                                              jobs::bulk) {
  if (specs.size() == 1) return {{ask("PUSH " + job_of(specs.front())), false, 0, {}}};
  std::string text;
  for (const auto& spec : specs) text += (text.empty() ? "[" : ",") + job_of(spec);
  std::vector<push_answer> answers(specs.size());
  if (!say("PUSHB " + text + "]\r\n")) return answers;
  const std::string line = hear();  // $2, {}: none was refused
  if (gone()) return answers;
  std::string refused;
  if (line.starts_with("$")) {
    refused = hear_bytes(std::strtoull(line.c_str() + 1, nullptr, 10) + 2);
    if (gone()) return answers;
  }
  const bool is_refused = !line.starts_with("$");  // all of them
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const bool is_no =
        is_refused || refused.find(jid_of(token_of(specs[i].args.data))) != std::string::npos;
    answers[i].how = is_no ? answer::no : answer::yes;
  }
  return answers;
}

std::optional<std::vector<taken_job>> faktory_client::lease(std::size_t, milliseconds,
                                                            milliseconds) {
  if (!say("FETCH alpha beta\r\n")) return std::nullopt;
  const std::string line = hear();
  if (gone()) return std::nullopt;
  std::vector<taken_job> all;
  if (!line.starts_with("$") || line == "$-1") return all;
  const std::string text = hear_bytes(std::strtoull(line.c_str() + 1, nullptr, 10) + 2);
  if (gone()) return std::nullopt;
  taken_job job;
  job.contents = contents_in(text);
  job.it = token_of(job.contents);
  all.push_back(std::move(job));
  return all;
}

answer faktory_client::ack(const taken_job& job, const std::string&) {
  return ask(R"(ACK {"jid":")" + jid_of(job.it) + "\"}");
}

answer faktory_client::fail(const taken_job& job, milliseconds) {
  return ask(R"(FAIL {"jid":")" + jid_of(job.it) +
             R"(","errtype":"crash","message":"asked to","backtrace":[]})");
}

// A worker keeps what it has for as long as it beats.
answer faktory_client::extend(const taken_job&, milliseconds) {
  return ask(R"(BEAT {"wid":")" + wid_ + "\"}");
}

bool faktory_client::requeue_retries() {
  return ask(R"(MUTATE {"cmd":"requeue","target":"retries"})") == answer::yes;
}

}  // namespace sluice::crash
