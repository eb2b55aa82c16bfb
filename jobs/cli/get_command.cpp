#include <string>
#include <utility>
#include <vector>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/connection.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/json/text.hpp"

namespace sluice::jobs::cli {
namespace {

std::string shown(const payload& p) {
  if (p.type == content_type::json) return p.data;
  return "(" + byte_size(p.data.size()) + " of bytes; --json prints them as base64)";
}

std::string when(unix_time t) {
  return format_time(t) + " (" + ago(t, real_time().now()) + ")";
}

std::string errors_of(const job& j) {
  std::string text;
  for (const attempt_error& e : j.errors) {
    text += "  attempt " + std::to_string(e.attempt) + ", " + when(e.at) + "\n";
    text += "    " + (e.type.empty() ? "" : e.type + ": ") + e.message + "\n";
    if (!e.backtrace.empty()) text += e.backtrace + "\n";
  }
  return text;
}

std::string waits_for(const job& j) {
  std::string text;
  for (const dependency& d : j.spec.after) {
    if (!text.empty()) text += ", ";
    text += std::to_string(d.on);
    if (d.when != after_when::success) text += ":" + std::string(to_string(d.when));
  }
  if (j.state == job_state::held && j.blockers > 0) {
    text += " (" + std::to_string(j.blockers) + " not met yet)";
  }
  return text;
}

std::string shown(const progress& p) {
  return std::to_string(static_cast<int>(p.percent)) + "%" + (p.text.empty() ? "" : ", " + p.text);
}

void print_job(const job& j, const console& io) {
  const text_style& style = io.style();
  io.line(style.bold("job " + std::to_string(j.id)) + " " + j.spec.kind + ", " +
          coloured(j.state, style));
  std::vector<std::pair<const char*, std::string>> rows = {{"queue", j.spec.queue}};
  if (j.spec.priority != 0) rows.emplace_back("priority", std::to_string(j.spec.priority));
  rows.emplace_back("attempts", std::to_string(j.attempts) + " of " +
                                    std::to_string(j.spec.retry.attempts_max) + " have ended");
  rows.emplace_back("created", when(j.created_at));
  if (j.state == job_state::scheduled || j.state == job_state::retrying) {
    rows.emplace_back("due", when(j.due_at));
  }
  if (j.ended_at != unix_time{}) rows.emplace_back("ended", when(j.ended_at));
  if (has_ended(j.state) && j.due_at != unix_time{})
    rows.emplace_back("kept until", when(j.due_at));
  if (!j.spec.unique.key.empty()) rows.emplace_back("unique", j.spec.unique.key);
  if (!j.spec.key.empty()) rows.emplace_back("key", j.spec.key);
  if (j.spec.batch != 0) rows.emplace_back("batch", std::to_string(j.spec.batch));
  if (!j.spec.step.empty()) rows.emplace_back("step", j.spec.step);
  if (!j.spec.after.empty()) rows.emplace_back("after", waits_for(j));
  if (!j.spec.webhook.empty()) rows.emplace_back("webhook", j.spec.webhook);
  if (j.progress) rows.emplace_back("progress", shown(*j.progress));
  if (!j.spec.metadata.empty()) rows.emplace_back("metadata", j.spec.metadata);
  rows.emplace_back("args", shown(j.spec.args));
  if (j.result) rows.emplace_back("result", shown(*j.result));
  for (const auto& [name, value] : rows) {
    std::string title = name;
    title.append(12 - title.size(), ' ');
    io.line("  " + style.faint(title) + value);
  }
  io.print(errors_of(j));
}

exit_code code_of_end(const job& j) {
  return j.state == job_state::done ? exit_code::ok : exit_code::failed;
}

}  // namespace

int run(const get_arguments& args, const console& io) {
  return with_client(args.server, io, [&](client& server) {
    const result<job> found =
        args.wait ? server.wait(args.id, deadline::after(*args.wait)) : server.get(args.id);
    if (!found) return io.complain(found.error());
    if (args.server.json) {
      io.line(json::to_json(*found));
    } else {
      print_job(*found, io);
    }
    return args.wait ? code_of_end(*found) : exit_code::ok;
  });
}

}  // namespace sluice::jobs::cli
