// stats, top, events: monitoring a server.
#include "jobs/cli/detail/command_set.hpp"
#include "jobs/cli/detail/flags.hpp"

namespace sluice::jobs::cli::detail {
namespace {

constexpr const char* event_words =
    "pushed|released|started|progress|retrying|done|dead|cancelled|returned|retried|removed|"
    "batch_done|batch_failed|queue_changed|cron_ran";

void add_stats(command_set& commands) {
  auto& stats = commands.keep<stats_arguments>();
  CLI::App& c = commands.add("stats", "Show the server's counters and gauges.",
                             "  sluice stats\n"
                             "  sluice stats --watch 2s\n"
                             "  sluice stats --json",
                             [&stats]() -> arguments { return stats; });
  add_connection(c, stats.server);
  duration_option(c, "--watch", stats.watch, "repeat at this interval");
}

void add_top(command_set& commands) {
  auto& top = commands.keep<top_arguments>();
  CLI::App& c =
      commands.add("top", "Watch the server and its queues on a live screen.",
                   "  sluice top\n"
                   "  sluice top --every 5s\n"
                   "  sluice top | cat                      (one frame, as a table)\n"
                   "Keys: arrows select a queue, p pauses or resumes it, s sorts, / filters, "
                   "? shows help, q quits.",
                   [&top]() -> arguments {
                     if (top.every < milliseconds(100) || top.every > milliseconds(60'000)) {
                       refuse("--every", "must be from 100ms to 1m");
                     }
                     return top;
                   });
  add_connection(c, top.server);
  duration_option(c, "--every", top.every, "sampling interval (1s; 100ms to 1m)");
}

void add_events(command_set& commands) {
  auto& events = commands.keep<events_arguments>();
  CLI::App& c =
      commands.add("events", "Print the events of jobs live.",
                   "  sluice events\n"
                   "  sluice events --queue mail --type dead,retrying\n"
                   "  sluice events --batch 7 --json\n"
                   "  sluice events --from 0                (all events the server still has)",
                   [&events]() -> arguments { return events; });
  add_connection(c, events.server);
  c.add_option("--queue", events.request.queue, "only of this queue");
  c.add_option("--job", events.request.job, "only of this job")->type_name("ID");
  c.add_option("--batch", events.request.batch, "only of this batch")->type_name("ID");
  word_list(c, "--type", events.request.types, "only of these types", event_words, event_type_from);
  c.add_option("--from", events.request.after, "start after the event with this number")
      ->type_name("N");
}

}  // namespace

void add_watch_commands(command_set& commands) {
  add_stats(commands);
  add_top(commands);
  add_events(commands);
}

}  // namespace sluice::jobs::cli::detail
