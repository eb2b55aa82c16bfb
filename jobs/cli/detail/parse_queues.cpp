// queues, plan: the settings of queues.
#include <algorithm>
#include <chrono>

#include "jobs/cli/detail/command_set.hpp"
#include "jobs/cli/detail/flags.hpp"
#include "jobs/json/codec.hpp"
#include "sluice/base/seam.hpp"

namespace sluice::jobs::cli::detail {
namespace {

void add_queue_options(CLI::App& c, queue_patch& p) {
  c.add_option("--capacity", p.capacity_jobs, "most jobs that have not ended")->type_name("JOBS");
  c.add_option("--capacity-bytes", p.capacity_bytes, "most bytes of these jobs (64MB)")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE");
  word_option(c, "--when-full", p.when_full, "overflow policy of a full queue",
              "block|reject|drop_newest|drop_oldest|latest", json::overflow_from);
  duration_option(c, "--lease-for", p.lease_for, "duration of a lease without a heartbeat");
  duration_option(c, "--keep-done", p.keep_done,
                  "retention of done jobs without a result; 0: none");
  duration_option(c, "--keep-results", p.keep_results, "retention of done jobs with a result");
  duration_option(c, "--keep-dead", p.keep_dead, "retention of dead and cancelled jobs");
  rate_option(c, "--rate", p.rate, "most jobs that start in a time, as in 1000/s; 0: no limit");
  c.add_option("--burst", p.rate_burst,
               "most jobs that start at once after a pause; 0: a tenth of a second of --rate")
      ->type_name("JOBS");
  c.add_option("--concurrency", p.concurrency, "most jobs that run at a time; 0: no limit")
      ->type_name("JOBS");
  c.add_option("--weight", p.weight, "its share among the queues of a worker")->type_name("N");
  c.add_option("--key-concurrency", p.key_concurrency, "most jobs of one key that run at a time")
      ->type_name("JOBS");
  rate_option(c, "--key-rate", p.key_rate,
              "most jobs of one key that start in a time; 0: no limit");
  c.add_option("--key-burst", p.key_burst, "most jobs of one key that start at once after a pause")
      ->type_name("JOBS");
  c.add_option("--deliver-url", p.deliver_url,
               "post its jobs to this URL instead of leasing them to workers; '': off")
      ->type_name("URL");
  c.add_option("--deliver-concurrency", p.deliver_concurrency, "posts at a time")
      ->type_name("JOBS");
  duration_option(c, "--deliver-timeout", p.deliver_timeout, "time for a response");
}

void add_queues(command_set& commands) {
  auto& queues = commands.keep<queues_arguments>();
  CLI::App& c = commands.add("queues", "Show the queues; or change, pause, resume or purge one.",
                             "  sluice queues\n"
                             "  sluice queues show mail\n"
                             "  sluice queues set mail --capacity 10000 --when-full block\n"
                             "  sluice queues set mail --rate 100/s --burst 200 --concurrency 20\n"
                             "  sluice queues pause mail\n"
                             "  sluice queues purge mail --yes",
                             [&queues]() -> arguments { return queues; });
  add_connection(c, queues.server);
  c.require_subcommand(0, 1);
  const auto add = [&](const char* name, const char* summary, queues_arguments::action operation) {
    CLI::App& sub = *c.add_subcommand(name, summary);
    sub.fallthrough();
    sub.add_option("name", queues.name, "the queue")->required();
    sub.final_callback([&queues, operation] { queues.operation = operation; });
    return &sub;
  };
  using action = queues_arguments::action;
  add("show", "Show one queue with all its settings.", action::show);
  CLI::App& set = *add("set", "Change the given settings; others stay.", action::set);
  add_queue_options(set, queues.patch);
  add("pause", "Lease no jobs; pushes are still accepted.", action::pause);
  add("resume", "Lease jobs again.", action::resume);
  add("purge", "Delete every job that is not running.", action::purge)
      ->add_flag("-y,--yes", queues.yes, "skip the confirmation");
}

struct plan_words {
  plan_arguments plan;
  milliseconds lasts{0};
  milliseconds job_time{0};
  milliseconds waits{0};
  std::optional<milliseconds> drain_within;
  std::optional<std::size_t> cores;

  arguments finish() {
    if (job_time <= milliseconds(0) || job_time > std::chrono::hours(24 * 366)) {
      refuse("--job-time", "must be from 1ms to 366d");
    }
    if (waits > job_time) {
      refuse("--wait", "must be at most --job-time, " + format_duration(job_time));
    }
    plan_request& p = plan.request;
    p.burst_for = lasts;
    p.compute = job_time - waits;
    p.wait = waits;
    if (drain_within) p.drain_within = *drain_within;
    p.cores = cores.value_or(std::max<std::size_t>(1, seam::thread::hardware_concurrency()));
    if (p.burst_per_second == 0) p.burst_per_second = p.base_per_second;
    return plan;
  }
};

void add_plan(command_set& commands) {
  auto& words = commands.keep<plan_words>();
  plan_request& p = words.plan.request;
  CLI::App& c = commands.add(
      "plan", "Size a queue and its workers for a burst, and draw its depth over time.",
      "  sluice plan --rate 100/s --burst 10000/s --for 10s --workers 8 --job-time 20ms\n"
      "  sluice plan --rate 50/s --burst 2k/s --for 1m --job-time 20ms --wait 15ms "
      "--drain-within 5m\n"
      "Needs no server. Prints the command that configures the queue.",
      [&words] { return words.finish(); });
  rate_option(c, "--rate", p.base_per_second, "normal arrival rate, as in 100/s")->required();
  auto* burst = rate_option(c, "--burst", p.burst_per_second, "arrival rate of the burst");
  auto* lasts = duration_option(c, "--for", words.lasts, "duration of the burst")->needs(burst);
  burst->needs(lasts);
  auto* workers = c.add_option("--workers", p.workers, "concurrent jobs")
                      ->check(CLI::Range(std::size_t{1}, std::size_t{10'000'000}))
                      ->type_name("N");
  duration_option(c, "--drain-within", words.drain_within,
                  "instead of --workers: enough to drain the queue this soon after the burst")
      ->excludes(workers);
  duration_option(c, "--job-time", words.job_time, "duration of a job")->required();
  duration_option(c, "--wait", words.waits, "part of it that waits for a network or a disk (0)");
  c.add_option("--cores", words.cores, "cores of the worker machines (this machine's)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000}))
      ->type_name("N");
  c.add_option("--headroom", p.headroom, "capacity beyond the peak, as a share of it")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  c.add_option("--queue", words.plan.queue, "the queue's name in the printed command")
      ->capture_default_str();
  c.add_flag("--json", words.plan.json, "print JSON, for programs");
}

}  // namespace

void add_queue_commands(command_set& commands) {
  add_queues(commands);
  add_plan(commands);
}

}  // namespace sluice::jobs::cli::detail
