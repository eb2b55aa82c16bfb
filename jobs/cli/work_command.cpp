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

using event_kind = worker_event::event_kind;

result<process_command> command_of(const work_arguments& args) {
  process_options o;
  o.directory = args.directory;
  o.kill_after = args.kill_after;
  if (args.ignore_output) o.standard_output = process_options::output::ignored;
  return args.shell.empty() ? process_command::program(args.command, std::move(o))
                            : process_command::shell(args.shell, std::move(o));
}

std::string to_json(const worker_event& e) {
  std::string line;
  json::json_writer out(line);
  out.begin_object().key("event").value(to_string(e.kind));
  if (e.job != nullptr) {
    out.key("id").value(e.job->id).key("kind").value(e.job->spec.kind);
    out.key("queue").value(e.job->spec.queue).key("attempt").value(e.attempt);
    out.key("took").value(e.took);
  }
  if (!e.message.empty()) out.key("message").value(e.message);
  out.end_object();
  return line;
}

std::string to_text(const worker_event& e, const text_style& style) {
  std::string text;
  if (e.job != nullptr) {
    text = "job " + std::to_string(e.job->id) + " " + e.job->spec.kind + " ";
    if (e.attempt > 1) text += "(attempt " + std::to_string(e.attempt) + ") ";
  }
  const std::string word(to_string(e.kind));
  if (e.kind == event_kind::succeeded) {
    return text + style.green(word) + " in " + short_duration(e.took);
  }
  text += e.kind == event_kind::failed ? style.red(word) : style.yellow(word);
  if (!e.message.empty()) text += ": " + e.message;
  return text;
}

// Prints events, and interrupts the signal wait after --jobs jobs.
class event_printer {
 public:
  event_printer(const work_arguments& args, const console& io, signal_watch& signals)
      : args_(args), io_(io), signals_(signals) {}

  void print(const worker_event& e) {
    if (args_.server.json) {
      io_.line(to_json(e));
    } else if (e.kind == event_kind::source_unavailable || e.kind == event_kind::source_back) {
      io_.note(to_text(e, {}));
    } else if (!args_.quiet && e.kind != event_kind::started) {
      io_.line(to_text(e, io_.style()));
    }
    // A closed standard output does not stop the work.
    [[maybe_unused]] const auto out = io_.flush();
    const bool has_ended = e.kind == event_kind::succeeded || e.kind == event_kind::failed ||
                           e.kind == event_kind::lost || e.kind == event_kind::abandoned;
    if (has_ended && ++ended_ == args_.jobs_max) signals_.interrupt();
  }

 private:
  const work_arguments& args_;
  const console& io_;
  signal_watch& signals_;
  std::uint64_t ended_ = 0;
};

// Returns when the worker has ended. A signal stops running jobs at once, and is returned.
int stop(worker& w, signal_watch& signals, milliseconds grace) {
  std::stop_source stop_now;
  int stopped_by = 0;
  {
    const seam::thread stopping([&] {
      // The printed events report whether running jobs finished or were released.
      [[maybe_unused]] const status ended = w.stop({deadline::after(grace), stop_now.get_token()});
      signals.interrupt();
    });
    for (;;) {
      const auto woken = signals.wait();
      if (woken.cause == signal_watch::woken::by::interrupt) break;
      stopped_by = woken.number;
      stop_now.request_stop();
    }
  }
  return stopped_by;
}

}  // namespace

int run(const work_arguments& args, const console& io) {
  // The parent may have ignored SIGCHLD; then the exit status of commands would be lost.
  std::signal(SIGCHLD, SIG_DFL);
  signal_watch signals({SIGTERM, SIGINT});  // before any thread is started
  auto command = command_of(args);
  if (!command) return static_cast<int>(io.complain(command.error()));
  return with_client(args.server, io, [&](client& server) {
    event_printer printer(args, io, signals);
    worker_options o;
    o.queues = args.queues;
    if (args.strict) o.pick = lease_request::order::strict;
    o.concurrency = args.concurrency;
    o.prefetch = args.prefetch;
    o.name = args.name;
    o.lease_for = args.lease_for;
    // A stopped command has kill_after to end; stop_grace must be longer.
    o.stop_grace = args.kill_after + milliseconds(5'000);
    o.on_event = [&](const worker_event& e) { printer.print(e); };
    worker w(work_from(server), std::move(o));
    w.handle_others([c = *command](job_context& ctx) { return c.run(ctx); });
    w.start();
    if (!args.quiet && !args.server.json) {
      io.note("working for " + server.url() + " with: " + command->describe());
    }
    const auto woken = signals.wait();
    if (woken.cause == signal_watch::woken::by::signal && !args.quiet) {
      io.note("finishing running jobs; a second signal stops and releases them at once");
    }
    const int stopped_by = stop(w, signals, args.grace);
    return stopped_by == 0 ? 0 : 128 + stopped_by;
  });
}

}  // namespace sluice::jobs::cli
