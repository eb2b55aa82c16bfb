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

void print_one(const batch_info& b, const console& to) {
  const text_style& style = to.style();
  const unix_time now = real_time().now();
  to.line(title_of(b, style));
  const auto row = [&](std::string name, const std::string& value) {
    name.append(12 - name.size(), ' ');
    to.line("  " + style.faint(name) + value);
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

exit_code show(const result<batch_info>& b, const batch_arguments& what, const console& to) {
  if (!b) return to.complain(b.error());
  if (what.to.json) {
    to.line(json::to_json(*b));
  } else {
    print_one(*b, to);
  }
  return exit_code::ok;
}

// Looks once a second for the bar's sake, and hears of the end at once.
result<batch_info> wait_for_end(client& server, job_id id, milliseconds wait, bool quiet,
                                const console& to) {
  const deadline until = deadline::after(wait);
  progress_bar bar(to, {.doing = "batch " + std::to_string(id), .unit = "jobs", .quiet = quiet});
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

exit_code show_end(client& server, job_id id, const batch_arguments& what, const console& to) {
  const auto end = wait_for_end(server, id, *what.wait, what.quiet, to);
  const exit_code code = show(end, what, to);
  if (code != exit_code::ok) return code;
  return end->failed == 0 ? exit_code::ok : exit_code::failed;
}

exit_code create(client& server, const batch_arguments& what, const console& to) {
  const auto text =
      what.file == "-" ? to.read_all(file_bytes_max) : read_file(what.file, file_bytes_max);
  if (!text) return to.complain(text.error());
  auto spec = json::read<batch_spec>(*text, {.now = real_time().after(milliseconds(0))});
  if (!spec) {
    return to.complain(exit_code_for(spec.error().code), what.file + ": " + spec.error().message);
  }
  if (const auto valid = validate(*spec); !valid) {
    return to.complain(exit_code_for(valid.error().code), what.file + ": " + valid.error().message);
  }
  const auto pushed = server.push_batch(std::move(*spec));
  if (!pushed) return to.complain(pushed.error());
  if (what.to.json) {
    to.line(json::to_json(*pushed));
  } else if (what.quiet) {
    to.line(std::to_string(pushed->id));
  } else {
    to.line("batch " + std::to_string(pushed->id) + " with " +
            counted(pushed->jobs.size(), "job", "jobs") + " pushed");
  }
  if (!what.wait) return exit_code::ok;
  // Whoever waits for the end wants to read the id before it.
  if (const auto out = to.flush(); !out) return to.complain(out.error());
  return show_end(server, pushed->id, what, to);
}

exit_code list(client& server, const batch_arguments& what, const console& to) {
  const auto page = server.batches(what.after, what.limit);
  if (!page) return to.complain(page.error());
  if (what.to.json) {
    to.line(json::to_json(*page));
    return exit_code::ok;
  }
  if (page->batches.empty()) {
    to.note("no batches");
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
  to.print(t.text(to.style()));
  if (page->cursor) to.note("there are more: --after " + std::to_string(*page->cursor));
  return exit_code::ok;
}

// As many as `most`; with a cursor when there are more.
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

exit_code list_jobs(client& server, const batch_arguments& what, const console& to) {
  if (const auto b = server.get_batch(what.id); !b) return to.complain(b.error());
  const auto page = jobs_of(server, what.id, what.after, what.limit);
  if (!page) return to.complain(page.error());
  if (what.to.json) {
    to.line(json::to_json(*page));
    return exit_code::ok;
  }
  constexpr auto right = table::align::right;
  table t({{"ID", right}, {"STEP"}, {"QUEUE"}, {"KIND"}, {"STATE"}, {"TRIES", right}, {"ERROR"}});
  for (const job& j : page->jobs) {
    t.add({std::to_string(j.id), j.spec.step.empty() ? "-" : j.spec.step, j.spec.queue, j.spec.kind,
           std::string(to_string(j.state)), std::to_string(j.attempts),
           j.errors.empty() ? "" : shortened(j.errors.back().message, 48)});
  }
  to.print(t.text(to.style()));
  if (page->cursor) to.note("there are more: --after " + std::to_string(*page->cursor));
  return exit_code::ok;
}

exit_code graph(client& server, const batch_arguments& what, const console& to) {
  const auto b = server.get_batch(what.id);
  if (!b) return to.complain(b.error());
  const auto page = jobs_of(server, what.id, 0, graph_jobs_max);
  if (!page) return to.complain(page.error());
  if (what.to.json) {
    to.line(json::to_json(*page));
    return exit_code::ok;
  }
  to.line(title_of(*b, to.style()));
  to.print(batch_graph(page->jobs, to.style()));
  if (page->jobs.size() < b->total && !page->cursor) {
    to.note(counted(b->total - page->jobs.size(), "job is", "jobs are") +
            " no longer kept: keep done jobs with 'sluice queues set NAME --keep-done'");
  }
  if (page->cursor) to.note("only the first " + grouped(graph_jobs_max) + " jobs are drawn");
  return exit_code::ok;
}

exit_code cancel(client& server, const batch_arguments& what, const console& to) {
  if (!what.yes && to.is_interactive()) {
    const auto b = server.get_batch(what.id);
    if (!b) return to.complain(b.error());
    if (!to.confirms("Call off the " + counted(b->pending, "job", "jobs") + " of batch " +
                     std::to_string(what.id) + " that have not ended?")) {
      return to.complain(exit_code::failed, "nothing was cancelled");
    }
  }
  const auto cancelled = server.cancel_batch(what.id);
  if (!cancelled) return to.complain(cancelled.error());
  to.line(what.to.json ? json::to_json(json::cancel_receipt{*cancelled})
                       : counted(*cancelled, "job", "jobs") + " cancelled");
  return exit_code::ok;
}

exit_code retry(client& server, const batch_arguments& what, const console& to) {
  const auto retried = server.retry_batch(what.id);
  if (!retried) return to.complain(retried.error());
  to.line(what.to.json ? json::to_json(json::retry_receipt{*retried})
                       : counted(*retried, "job", "jobs") + " ready again");
  return exit_code::ok;
}

}  // namespace

int run(const batch_arguments& what, const console& to) {
  using action = batch_arguments::action;
  return with_client(what.to, to, [&](client& server) {
    switch (what.what) {
      case action::list:
        return list(server, what, to);
      case action::create:
        return create(server, what, to);
      case action::show:
        return what.wait ? show_end(server, what.id, what, to)
                         : show(server.get_batch(what.id), what, to);
      case action::jobs:
        return list_jobs(server, what, to);
      case action::graph:
        return graph(server, what, to);
      case action::close:
        return show(server.close_batch(what.id), what, to);
      case action::cancel:
        return cancel(server, what, to);
      case action::retry:
        break;
    }
    return retry(server, what, to);
  });
}

}  // namespace sluice::jobs::cli
