#include <array>
#include <cstdio>
#include <string>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/connection.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/json/text.hpp"

namespace sluice::jobs::cli {
namespace {

constexpr milliseconds wait_step{30'000};

std::string word_for(event_type type, const text_style& style) {
  std::string word(to_string(type));
  const std::string padding(word.size() < 13 ? 13 - word.size() : 0, ' ');
  switch (type) {
    case event_type::done:
    case event_type::batch_done:
      return style.green(word) + padding;
    case event_type::dead:
    case event_type::batch_failed:
      return style.red(word) + padding;
    case event_type::retrying:
    case event_type::cancelled:
    case event_type::removed:
      return style.yellow(word) + padding;
    case event_type::pushed:
    case event_type::released:
    case event_type::started:
    case event_type::progress:
    case event_type::returned:
    case event_type::retried:
    case event_type::queue_changed:
    case event_type::cron_ran:
      break;
  }
  return word + padding;
}

std::string to_text(const job_event& e, const text_style& style) {
  const bool is_batch = e.type == event_type::batch_done || e.type == event_type::batch_failed;
  std::string line = style.faint(format_time(e.at)) + " " + word_for(e.type, style);
  if (is_batch) {
    line += " batch " + std::to_string(e.batch != 0 ? e.batch : e.job);
  } else if (e.job != 0) {
    line += " job " + std::to_string(e.job);
  }
  if (!e.queue.empty()) line += " in " + e.queue;
  if (e.attempt > 1) line += ", attempt " + std::to_string(e.attempt);
  if (!is_batch && e.batch != 0) line += ", of batch " + std::to_string(e.batch);
  if (e.type == event_type::progress) {
    std::array<char, 32> percent{};
    std::snprintf(percent.data(), percent.size(), ", %.0f%%", e.percent);
    line += percent.data();
  }
  if (!e.text.empty()) line += ": " + e.text;
  return line;
}

}  // namespace

int run(const events_arguments& args, const console& io) {
  return with_client(args.server, io, [&](client& server) {
    event_request next = args.request;
    for (;;) {
      const auto page = server.events(next, deadline::after(wait_step));
      if (!page && page.error().code == error_code::timed_out) continue;
      if (!page) return io.complain(page.error());
      // Without --from, earlier events were not requested.
      if (page->missed && next.after) io.note("(the server no longer has some of the events)");
      for (const job_event& e : page->events) {
        io.line(args.server.json ? json::to_json(e) : to_text(e, io.style()));
      }
      if (const auto out = io.flush(); !out)
        return exit_code::ok;  // the reader has closed the pipe
      next.after = page->next;
      next.epoch = page->epoch;
    }
  });
}

}  // namespace sluice::jobs::cli
