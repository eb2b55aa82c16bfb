#include <csignal>
#include <string>
#include <utility>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/connection.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/server/signal_watch.hpp"
#include "jobs/worker/process.hpp"
#include "jobs/worker/worker.hpp"
#include "sluice/base/seam.hpp"

namespace sluice::jobs::cli {
namespace {

using what_happened = worker_event::what;

result<process_command> command_of(const work_arguments& what) {
  process_options o;
  o.directory = what.directory;
  o.kill_after = what.kill_after;
  if (what.ignore_output) o.standard_output = process_options::output::ignored;
  return what.shell.empty() ? process_command::program(what.command, std::move(o))
                            : process_command::shell(what.shell, std::move(o));
}

std::string to_json(const worker_event& e) {
  std::string line;
  json::json_writer out(line);
  out.begin_object().key("event").value(to_string(e.kind));
  if (e.it != nullptr) {
    out.key("id").value(e.it->id).key("kind").value(e.it->spec.kind);
    out.key("queue").value(e.it->spec.queue).key("attempt").value(e.attempt);
    out.key("took").value(e.took);
  }
  if (!e.message.empty()) out.key("message").value(e.message);
  out.end_object();
  return line;
}

std::string to_text(const worker_event& e, const text_style& style) {
  std::string text;
  if (e.it != nullptr) {
    text = "job " + std::to_string(e.it->id) + " " + e.it->spec.kind + " ";
    if (e.attempt > 1) text += "(attempt " + std::to_string(e.attempt) + ") ";
  }
  const std::string word(to_string(e.kind));
  if (e.kind == what_happened::succeeded) {
    return text + style.green(word) + " in " + about(e.took);
  }
  text += e.kind == what_happened::failed ? style.red(word) : style.yellow(word);
  if (!e.message.empty()) text += ": " + e.message;
  return text;
}

// Tells what happens, and when enough has.
class witness {
 public:
  witness(const work_arguments& what, const console& to, signal_watch& signals)
      : what_(what), to_(to), signals_(signals) {}

  void see(const worker_event& e) {
    if (what_.to.json) {
      to_.line(to_json(e));
    } else if (e.kind == what_happened::source_unavailable ||
               e.kind == what_happened::source_back) {
      to_.note(to_text(e, {}));
    } else if (!what_.quiet && e.kind != what_happened::started) {
      to_.line(to_text(e, to_.style()));
    }
    // A standard output that is gone stops nobody from working.
    [[maybe_unused]] const auto out = to_.flush();
    const bool has_ended = e.kind == what_happened::succeeded || e.kind == what_happened::failed ||
                           e.kind == what_happened::lost || e.kind == what_happened::abandoned;
    if (has_ended && ++ended_ == what_.jobs_max) signals_.interrupt();
  }

 private:
  const work_arguments& what_;
  const console& to_;
  signal_watch& signals_;
  std::uint64_t ended_ = 0;
};

// Returns when the worker has ended; a signal meanwhile puts it in a hurry, and is returned.
int stop(worker& w, signal_watch& signals, milliseconds grace) {
  std::stop_source hurry;
  int hurried_by = 0;
  {
    const seam::thread stopping([&] {
      // Whether what ran has finished or was given back is in what the witness has said.
      [[maybe_unused]] const status ended = w.stop({deadline::after(grace), hurry.get_token()});
      signals.interrupt();
    });
    for (;;) {
      const auto woken = signals.wait();
      if (woken.what == signal_watch::woken::by::interrupt) break;
      hurried_by = woken.number;
      hurry.request_stop();
    }
  }
  return hurried_by;
}

}  // namespace

int run(const work_arguments& what, const console& to) {
  // Whoever started this may have ignored it, which lasts: how a command ended would be lost then.
  std::signal(SIGCHLD, SIG_DFL);
  signal_watch signals({SIGTERM, SIGINT});  // before any thread is started
  auto command = command_of(what);
  if (!command) return static_cast<int>(to.complain(command.error()));
  return with_client(what.to, to, [&](client& server) {
    witness sees(what, to, signals);
    worker_options o;
    o.queues = what.queues;
    if (what.strict) o.pick = lease_request::order::strict;
    o.concurrency = what.concurrency;
    o.prefetch = what.prefetch;
    o.name = what.name;
    o.lease_for = what.lease_for;
    // A command that is told to stop has kill_after; only then would it be given up on.
    o.stop_grace = what.kill_after + milliseconds(5'000);
    o.on_event = [&](const worker_event& e) { sees.see(e); };
    worker w(work_from(server), std::move(o));
    w.handle_others([c = *command](job_context& ctx) { return c.run(ctx); });
    w.start();
    if (!what.quiet && !what.to.json) {
      to.note("working for " + server.url() + " with: " + command->describe());
    }
    const auto woken = signals.wait();
    if (woken.what == signal_watch::woken::by::signal && !what.quiet) {
      to.note("finishing what runs; once more to give it back at once");
    }
    const int hurried_by = stop(w, signals, what.grace);
    return hurried_by == 0 ? 0 : 128 + hurried_by;
  });
}

}  // namespace sluice::jobs::cli
