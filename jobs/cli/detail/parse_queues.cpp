// queues, plan: what a queue is set to, and what it should be set to.
#include <algorithm>
#include <chrono>

#include "jobs/cli/detail/command_set.hpp"
#include "jobs/cli/detail/flags.hpp"
#include "jobs/json/codec.hpp"
#include "sluice/base/seam.hpp"

namespace sluice::jobs::cli::detail {
namespace {

void add_queue_options(CLI::App& c, queue_patch& p) {
  c.add_option("--capacity", p.capacity_jobs, "jobs that have not ended")->type_name("JOBS");
  c.add_option("--capacity-bytes", p.capacity_bytes, "bytes of these (64MB)")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE");
  word_option(c, "--when-full", p.when_full, "what becomes of a push then",
              "block|reject|drop_newest|drop_oldest|latest", json::overflow_from);
  duration_option(c, "--lease-for", p.lease_for, "how long a lease lasts without a heartbeat");
  duration_option(c, "--keep-done", p.keep_done, "done jobs without a result; 0: not at all");
  duration_option(c, "--keep-results", p.keep_results, "done jobs with a result");
  duration_option(c, "--keep-dead", p.keep_dead, "dead and cancelled jobs");
  rate_option(c, "--rate", p.rate, "jobs that start in a time, as in 1000/s; 0: no limit");
  c.add_option("--burst", p.rate_burst,
               "that may start at once after a pause; 0: a tenth of --rate")
      ->type_name("JOBS");
  c.add_option("--concurrency", p.concurrency, "jobs that run at a time; 0: no limit")
      ->type_name("JOBS");
  c.add_option("--weight", p.weight, "its share beside the other queues of a worker")
      ->type_name("N");
  c.add_option("--key-concurrency", p.key_concurrency, "jobs of one key that run at a time")
      ->type_name("JOBS");
  rate_option(c, "--key-rate", p.key_rate, "jobs of one key that start in a time; 0: no limit");
  c.add_option("--key-burst", p.key_burst, "of one key, that may start at once after a pause")
      ->type_name("JOBS");
  c.add_option("--deliver-url", p.deliver_url,
               "post its jobs there instead of waiting for workers; '': no more")
      ->type_name("URL");
  c.add_option("--deliver-concurrency", p.deliver_concurrency, "jobs posted at a time")
      ->type_name("JOBS");
  duration_option(c, "--deliver-timeout", p.deliver_timeout, "for the answer to one");
}

void add_queues(command_set& to) {
  auto& queues = to.keep<queues_arguments>();
  CLI::App& c = to.add("queues", "Show the queues; or change, pause, resume or empty one.",
                       "  sluice queues\n"
                       "  sluice queues show mail\n"
                       "  sluice queues set mail --capacity 10000 --when-full block\n"
                       "  sluice queues set mail --rate 100/s --burst 200 --concurrency 20\n"
                       "  sluice queues pause mail\n"
                       "  sluice queues purge mail --yes",
                       [&queues]() -> arguments { return queues; });
  add_connection(c, queues.to);
  c.require_subcommand(0, 1);
  const auto add = [&](const char* name, const char* about, queues_arguments::action what) {
    CLI::App& sub = *c.add_subcommand(name, about);
    sub.fallthrough();
    sub.add_option("name", queues.name, "the queue")->required();
    sub.final_callback([&queues, what] { queues.what = what; });
    return &sub;
  };
  using action = queues_arguments::action;
  add("show", "Show one queue with all its settings.", action::show);
  CLI::App& set = *add("set", "Change settings; those not named stay as they are.", action::set);
  add_queue_options(set, queues.patch);
  add("pause", "Give out no jobs; pushes are still taken.", action::pause);
  add("resume", "Give out jobs again.", action::resume);
  add("purge", "Forget every job that is not running.", action::purge)
      ->add_flag("-y,--yes", queues.yes, "do not ask");
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
      refuse("--job-time", "is from 1ms to 366d");
    }
    if (waits > job_time) {
      refuse("--wait", "is a part of --job-time: " + format_duration(job_time) + " at most");
    }
    plan_request& p = plan.what;
    p.burst_for = lasts;
    p.compute = job_time - waits;
    p.wait = waits;
    if (drain_within) p.drain_within = *drain_within;
    p.cores = cores.value_or(std::max<std::size_t>(1, seam::thread::hardware_concurrency()));
    if (p.burst_per_second == 0) p.burst_per_second = p.base_per_second;
    return plan;
  }
};

void add_plan(command_set& to) {
  auto& words = to.keep<plan_words>();
  plan_request& p = words.plan.what;
  CLI::App& c =
      to.add("plan", "Size a queue and its workers for a burst, and draw how deep it gets.",
             "  sluice plan --rate 100/s --burst 10000/s --for 10s --workers 8 --job-time 20ms\n"
             "  sluice plan --rate 50/s --burst 2k/s --for 1m --job-time 20ms --wait 15ms "
             "--drain-within 5m\n"
             "Needs no server. Ends with the commands that set it.",
             [&words] { return words.finish(); });
  rate_option(c, "--rate", p.base_per_second, "jobs that arrive most of the time, as in 100/s")
      ->required();
  auto* burst = rate_option(c, "--burst", p.burst_per_second, "jobs that arrive for a while");
  auto* lasts = duration_option(c, "--for", words.lasts, "how long that is")->needs(burst);
  burst->needs(lasts);
  auto* workers = c.add_option("--workers", p.workers, "jobs that are worked on at a time")
                      ->check(CLI::Range(std::size_t{1}, std::size_t{10'000'000}))
                      ->type_name("N");
  duration_option(c, "--drain-within", words.drain_within,
                  "instead of --workers: as many as empty the queue so soon after the burst")
      ->excludes(workers);
  duration_option(c, "--job-time", words.job_time, "how long one job takes")->required();
  duration_option(c, "--wait", words.waits, "of that: waiting for a network, a disk (0)");
  c.add_option("--cores", words.cores, "of the machines that work (this one's)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000}))
      ->type_name("N");
  c.add_option("--headroom", p.headroom, "room beyond the peak, as a share of it")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  c.add_option("--queue", words.plan.queue, "the queue's name in the commands")
      ->capture_default_str();
  c.add_flag("--json", words.plan.json, "print JSON, for programs");
}

}  // namespace

void add_queue_commands(command_set& to) {
  add_queues(to);
  add_plan(to);
}

}  // namespace sluice::jobs::cli::detail
