#include <charconv>
#include <cstdlib>

#include "tests/crash/kill_cycle.hpp"
#include "tests/crash/wire_clients.hpp"

namespace sluice::crash {
namespace {

// The TTR of most jobs is longer than any life of a server. Some have the shortest possible one, so
// that it can expire.
constexpr int ttr_seconds = 120;
int ttr_of(token id) {
  return id % 4 == 0 ? 1 : ttr_seconds;
}

// A number at the end of a line: "INSERTED 42".
std::uint64_t last_number(std::string_view line) {
  return std::strtoull(std::string(line.substr(line.rfind(' ') + 1)).c_str(), nullptr, 10);
}

}  // namespace

std::string beanstalk_contents(const jobs::job_spec& spec) {
  return spec.args.data;
}

beanstalk_client::beanstalk_client(std::uint16_t port, std::uint16_t http_port,
                                   open_connections& kept)
    : wire_client(port, http_client(http_port, beanstalk_contents), kept) {
  if (send("watch alpha\r\nwatch beta\r\nignore default\r\n")) {
    for (int i = 0; i < 3; ++i) receive_line();
  }
}

std::vector<push_answer> beanstalk_client::push(const std::vector<jobs::job_spec>& specs,
                                                jobs::bulk) {
  std::string bytes;
  std::vector<bool> uses;  // whether a `use` precedes the put
  for (const auto& spec : specs) {
    uses.push_back(spec.queue != used_);
    if (uses.back()) bytes += "use " + spec.queue + "\r\n";
    used_ = spec.queue;
    const std::string body = contents_of(spec);
    // The protocol's unit is a second.
    const int delay = spec.run_at > jobs::unix_time{} ? 1 : 0;
    bytes += "put " + std::to_string(spec.priority) + " " + std::to_string(delay) + " " +
             std::to_string(ttr_of(token_of(body))) + " " + std::to_string(body.size()) + "\r\n" +
             body + "\r\n";
  }
  std::vector<push_answer> answers(specs.size());
  if (!send(bytes)) return answers;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (uses[i]) receive_line();
    const std::string line = receive_line();
    if (line.empty()) return answers;
    const bool is_in = line.starts_with("INSERTED ");
    answers[i] = {is_in ? answer::yes : answer::no, false, is_in ? last_number(line) : 0, line};
  }
  return answers;
}

std::optional<std::vector<taken_job>> beanstalk_client::lease(std::size_t max, milliseconds wait,
                                                              milliseconds) {
  std::string bytes;
  for (std::size_t i = 0; i < max; ++i) bytes += "reserve-with-timeout 0\r\n";
  if (!send(bytes)) return std::nullopt;
  std::vector<taken_job> all;
  for (std::size_t i = 0; i < max; ++i) {
    const std::string line = receive_line();  // RESERVED id bytes
    if (gone()) return std::nullopt;
    if (!line.starts_with("RESERVED ")) continue;
    const std::string body = receive_bytes(last_number(line) + 2);
    if (gone()) return std::nullopt;
    taken_job job;
    job.lease.job = std::strtoull(line.c_str() + 9, nullptr, 10);
    job.contents = body.substr(0, body.size() - 2);
    job.id = token_of(job.contents);
    job.lasts = job.extends_by = std::chrono::seconds(ttr_of(job.id));
    // A job that expired and was reserved again meanwhile counts once, with its last lease.
    std::erase_if(all, [&](const taken_job& before) { return before.id == job.id; });
    all.push_back(std::move(job));
  }
  if (all.empty()) pass(wait);
  return all;
}

answer beanstalk_client::ask(const std::string& command, std::string_view yes) {
  if (!send(command + "\r\n")) return answer::none;
  const std::string line = receive_line();
  if (gone()) return answer::none;
  return line == yes ? answer::yes : answer::no;
}

answer beanstalk_client::ack(const taken_job& job, const std::string&) {
  return remove(job.lease.job);
}

std::vector<answer> beanstalk_client::ack_many(const std::vector<taken_job>& jobs) {
  std::string bytes;
  for (const auto& job : jobs) bytes += "delete " + std::to_string(job.lease.job) + "\r\n";
  std::vector<answer> answers(jobs.size(), answer::none);
  if (!send(bytes)) return answers;
  for (auto& each : answers) {
    const std::string line = receive_line();
    if (gone()) break;
    each = line == "DELETED" ? answer::yes : answer::no;
  }
  return answers;
}

answer beanstalk_client::fail(const taken_job& job, milliseconds) {
  return ask("release " + std::to_string(job.lease.job) + " 1 1", "RELEASED");
}

answer beanstalk_client::bury(const taken_job& job) {
  return ask("bury " + std::to_string(job.lease.job) + " 1", "BURIED");
}

answer beanstalk_client::extend(const taken_job& job, milliseconds) {
  return ask("touch " + std::to_string(job.lease.job), "TOUCHED");
}

answer beanstalk_client::remove(jobs::job_id id) {
  return ask("delete " + std::to_string(id), "DELETED");
}

answer beanstalk_client::retry(jobs::job_id id) {
  return ask("kick-job " + std::to_string(id), "KICKED");
}

}  // namespace sluice::crash
