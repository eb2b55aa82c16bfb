// stats, top, events: what the server does.
#include "jobs/cli/detail/command_set.hpp"
#include "jobs/cli/detail/flags.hpp"

namespace sluice::jobs::cli::detail {
namespace {

constexpr const char* event_words =
    "pushed|released|started|progress|retrying|done|dead|cancelled|returned|retried|removed|"
    "batch_done|batch_failed|queue_changed|cron_ran";

void add_stats(command_set& to) {
  auto& stats = to.keep<stats_arguments>();
  CLI::App& c = to.add("stats", "Show what the server has done and has to do.",
                       "  sluice stats\n"
                       "  sluice stats --watch 2s\n"
                       "  sluice stats --json",
                       [&stats]() -> arguments { return stats; });
  add_connection(c, stats.to);
  duration_option(c, "--watch", stats.watch, "again and again, so far apart");
}

void add_top(command_set& to) {
  auto& top = to.keep<top_arguments>();
  CLI::App& c = to.add("top", "Watch the server and its queues on a live screen.",
                       "  sluice top\n"
                       "  sluice top --every 5s\n"
                       "  sluice top | cat                      (one frame, as a table)\n"
                       "Keys: arrows select a queue, p pauses or resumes it, s sorts, / filters, "
                       "? helps, q quits.",
                       [&top]() -> arguments {
                         if (top.every < milliseconds(100) || top.every > milliseconds(60'000)) {
                           refuse("--every", "is from 100ms to 1m");
                         }
                         return top;
                       });
  add_connection(c, top.to);
  duration_option(c, "--every", top.every, "time between two looks (1s; 100ms to 1m)");
}

void add_events(command_set& to) {
  auto& events = to.keep<events_arguments>();
  CLI::App& c = to.add("events", "Show what happens to jobs, as it happens.",
                       "  sluice events\n"
                       "  sluice events --queue mail --type dead,retrying\n"
                       "  sluice events --batch 7 --json\n"
                       "  sluice events --from 0                (all that the server still has)",
                       [&events]() -> arguments { return events; });
  add_connection(c, events.to);
  c.add_option("--queue", events.what.queue, "only of this queue");
  c.add_option("--job", events.what.job, "only of this job")->type_name("ID");
  c.add_option("--batch", events.what.batch, "only of this batch")->type_name("ID");
  word_list(c, "--type", events.what.types, "only of these types", event_words, event_type_from);
  c.add_option("--from", events.what.after, "what came after the event with this number, first")
      ->type_name("N");
}

}  // namespace

void add_watch_commands(command_set& to) {
  add_stats(to);
  add_top(to);
  add_events(to);
}

}  // namespace sluice::jobs::cli::detail
