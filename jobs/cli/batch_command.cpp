#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "jobs/cli/batch_graph.hpp"
#include "jobs/cli/commands.hpp"
#include "jobs/cli/connection.hpp"
#include "jobs/cli/progress_bar.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/json/text.hpp"

namespace sluice::jobs::cli {
namespace {

constexpr std::size_t file_bytes_max = std::size_t{64} << 20;
constexpr std::size_t graph_jobs_max = 10'000;

std::string coloured_state(const batch_info& b, const text_style& style) {
  const std::string word(to_string(b.state()));
  switch (b.state()) {
    case batch_state::done:
      return style.green(word);
    case batch_state::failed:
      return style.red(word);
    case batch_state::open:
    case batch_state::running:
      break;
  }
  return word;
}

std::string title_of(const batch_info& b, const text_style& style) {
  return style.bold("batch " + std::to_string(b.id)) + (b.name.empty() ? "" : " " + b.name) + ", " +
         coloured_state(b, style);
}

void print_one(const batch_info& b, const console& io) {
  const text_style& style = io.style();
  const unix_time now = real_time().now();
  io.line(title_of(b, style));
  const auto row = [&](std::string name, const std::string& value) {
    name.append(12 - name.size(), ' ');
    io.line("  " + style.faint(name) + value);
  };
  row("jobs", grouped(b.total - b.pending) + " of " + grouped(b.total) + " have ended" +
                  (b.failed > 0 ? ", " + grouped(b.failed) + " of them dead or cancelled" : ""));
  row("created", format_time(b.created_at) + " (" + ago(b.created_at, now) + ")");
  if (b.has_ended() && b.ended_at != unix_time{}) {
    row("ended", format_time(b.ended_at) + " (" + ago(b.ended_at, now) + ")");
  }
  if (b.has_ended() && b.due_at != unix_time{}) {
    row("kept until", format_time(b.due_at) + " (" + ago(b.due_at, now) + ")");
  }
}

exit_code show(const result<batch_info>& b, const batch_arguments& args, const console& io) {
  if (!b) return io.complain(b.error());
  if (args.server.json) {
    io.line(json::to_json(*b));
  } else {
    print_one(*b, io);
  }
  return exit_code::ok;
}

// Polls once a second for the progress bar, and returns at once at the end.
result<batch_info> wait_for_end(client& server, job_id id, milliseconds wait, bool quiet,
                                const console& io) {
  const deadline until = deadline::after(wait);
  progress_bar bar(io, {.doing = "batch " + std::to_string(id), .unit = "jobs", .quiet = quiet});
  event_request ends{.batch = id, .types = {event_type::batch_done, event_type::batch_failed}};
  for (;;) {
    auto now = server.get_batch(id);
    if (!now) return now;
    bar.set_total(now->total);
    if (now->failed > 0) bar.note(grouped(now->failed) + " failed");
    bar.at(now->total - now->pending);
    if (now->has_ended()) return now;
    if (until.passed()) {
      return error{error_code::timed_out, "batch " + std::to_string(id) +
                                              " has not ended in time: " + grouped(now->pending) +
                                              " of its jobs have not"};
    }
    const auto woken = server.events(ends, deadline::after(milliseconds(1'000)));
    if (woken) {
      ends.after = woken->next;
      ends.epoch = woken->epoch;
    } else if (woken.error().code != error_code::timed_out) {
      return woken.error();
    }
  }
}

exit_code show_end(client& server, job_id id, const batch_arguments& args, const console& io) {
  const auto end = wait_for_end(server, id, *args.wait, args.quiet, io);
  const exit_code code = show(end, args, io);
  if (code != exit_code::ok) return code;
  return end->failed == 0 ? exit_code::ok : exit_code::failed;
}

exit_code create(client& server, const batch_arguments& args, const console& io) {
  const auto text =
      args.file == "-" ? io.read_all(file_bytes_max) : read_file(args.file, file_bytes_max);
  if (!text) return io.complain(text.error());
  auto spec = json::read<batch_spec>(*text, {.now = real_time().after(milliseconds(0))});
  if (!spec) {
    return io.complain(exit_code_for(spec.error().code), args.file + ": " + spec.error().message);
  }
  if (const auto valid = validate(*spec); !valid) {
    return io.complain(exit_code_for(valid.error().code), args.file + ": " + valid.error().message);
  }
  const auto pushed = server.push_batch(std::move(*spec));
  if (!pushed) return io.complain(pushed.error());
  if (args.server.json) {
    io.line(json::to_json(*pushed));
  } else if (args.quiet) {
    io.line(std::to_string(pushed->id));
  } else {
    io.line("batch " + std::to_string(pushed->id) + " with " +
            counted(pushed->jobs.size(), "job", "jobs") + " pushed");
  }
  if (!args.wait) return exit_code::ok;
  // Prints the id before waiting for the end.
  if (const auto out = io.flush(); !out) return io.complain(out.error());
  return show_end(server, pushed->id, args, io);
}

exit_code list(client& server, const batch_arguments& args, const console& io) {
  const auto page = server.batches(args.after, args.limit);
  if (!page) return io.complain(page.error());
  if (args.server.json) {
    io.line(json::to_json(*page));
    return exit_code::ok;
  }
  if (page->batches.empty()) {
    io.note("no batches");
    return exit_code::ok;
  }
  constexpr auto right = table::align::right;
  table t({{"ID", right},
           {"NAME"},
           {"STATE"},
           {"JOBS", right},
           {"PENDING", right},
           {"FAILED", right},
           {"CREATED"}});
  const unix_time now = real_time().now();
  for (const batch_info& b : page->batches) {
    t.add({std::to_string(b.id), shortened(b.name, 40), std::string(to_string(b.state())),
           grouped(b.total), grouped(b.pending), grouped(b.failed), ago(b.created_at, now)});
  }
  io.print(t.text(io.style()));
  if (page->cursor) io.note("there are more; use --after " + std::to_string(*page->cursor));
  return exit_code::ok;
}

// Returns up to `most` jobs, with a cursor if there are more.
result<job_page> jobs_of(client& server, job_id batch, job_id after, std::size_t most) {
  job_page all;
  list_request next{.batch = batch, .after = after, .limit = std::min(most, page_max)};
  for (;;) {
    auto page = server.list(next);
    if (!page) return page;
    for (job& j : page->jobs) all.jobs.push_back(std::move(j));
    all.cursor = page->cursor;
    if (!page->cursor || all.jobs.size() >= most) return all;
    next.after = *page->cursor;
    next.limit = std::min(most - all.jobs.size(), page_max);
  }
}

exit_code list_jobs(client& server, const batch_arguments& args, const console& io) {
  if (const auto b = server.get_batch(args.id); !b) return io.complain(b.error());
  const auto page = jobs_of(server, args.id, args.after, args.limit);
  if (!page) return io.complain(page.error());
  if (args.server.json) {
    io.line(json::to_json(*page));
    return exit_code::ok;
  }
  constexpr auto right = table::align::right;
  table t({{"ID", right}, {"STEP"}, {"QUEUE"}, {"KIND"}, {"STATE"}, {"TRIES", right}, {"ERROR"}});
  for (const job& j : page->jobs) {
    t.add({std::to_string(j.id), j.spec.step.empty() ? "-" : j.spec.step, j.spec.queue, j.spec.kind,
           std::string(to_string(j.state)), std::to_string(j.attempts),
           j.errors.empty() ? "" : shortened(j.errors.back().message, 48)});
  }
  io.print(t.text(io.style()));
  if (page->cursor) io.note("there are more; use --after " + std::to_string(*page->cursor));
  return exit_code::ok;
}

exit_code graph(client& server, const batch_arguments& args, const console& io) {
  const auto b = server.get_batch(args.id);
  if (!b) return io.complain(b.error());
  const auto page = jobs_of(server, args.id, 0, graph_jobs_max);
  if (!page) return io.complain(page.error());
  if (args.server.json) {
    io.line(json::to_json(*page));
    return exit_code::ok;
  }
  io.line(title_of(*b, io.style()));
  io.print(batch_graph(page->jobs, io.style()));
  if (page->jobs.size() < b->total && !page->cursor) {
    io.note(counted(b->total - page->jobs.size(), "job is", "jobs are") +
            " no longer kept: keep done jobs with 'sluice queues set NAME --keep-done'");
  }
  if (page->cursor) io.note("only the first " + grouped(graph_jobs_max) + " jobs are drawn");
  return exit_code::ok;
}

exit_code cancel(client& server, const batch_arguments& args, const console& io) {
  if (!args.yes && io.is_interactive()) {
    const auto b = server.get_batch(args.id);
    if (!b) return io.complain(b.error());
    if (!io.confirms("Cancel the " + counted(b->pending, "job", "jobs") + " of batch " +
                     std::to_string(args.id) + " that have not ended?")) {
      return io.complain(exit_code::failed, "not confirmed: nothing was cancelled");
    }
  }
  const auto cancelled = server.cancel_batch(args.id);
  if (!cancelled) return io.complain(cancelled.error());
  io.line(args.server.json ? json::to_json(json::cancel_receipt{*cancelled})
                           : counted(*cancelled, "job", "jobs") + " cancelled");
  return exit_code::ok;
}

exit_code retry(client& server, const batch_arguments& args, const console& io) {
  const auto retried = server.retry_batch(args.id);
  if (!retried) return io.complain(retried.error());
  io.line(args.server.json ? json::to_json(json::retry_receipt{*retried})
                           : counted(*retried, "job", "jobs") + " ready again");
  return exit_code::ok;
}

}  // namespace

int run(const batch_arguments& args, const console& io) {
  using action = batch_arguments::action;
  return with_client(args.server, io, [&](client& server) {
    switch (args.operation) {
      case action::list:
        return list(server, args, io);
      case action::create:
        return create(server, args, io);
      case action::show:
        return args.wait ? show_end(server, args.id, args, io)
                         : show(server.get_batch(args.id), args, io);
      case action::jobs:
        return list_jobs(server, args, io);
      case action::graph:
        return graph(server, args, io);
      case action::close:
        return show(server.close_batch(args.id), args, io);
      case action::cancel:
        return cancel(server, args, io);
      case action::retry:
        break;
    }
    return retry(server, args, io);
  });
}

}  // namespace sluice::jobs::cli
