// Two concurrent callers of the engine, and the thread that commits for both.

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "jobs/engine/engine.hpp"
#include "jobs/store/memory/memory_store.hpp"
#include "sluice/base/deadline.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/sim/testing/scenario.hpp"

namespace sluice::sim_jobs {
namespace {

using namespace std::chrono_literals;
using jobs::error_code;
using jobs::job_id;
using jobs::leased_job;
using jobs::milliseconds;
using sim::check;

// An engine on a store whose contents outlive it.
struct server {
  std::shared_ptr<jobs::memory_contents> contents = jobs::make_memory_contents();
  // Used by threads that run one at a time.
  bool fails = false;
  std::unique_ptr<jobs::engine> engine = open();

  std::unique_ptr<jobs::engine> open() {
    jobs::engine_options o;
    o.seed = 1;
    jobs::memory_options m{.contents = contents};
    m.before_apply = [this](const jobs::transaction&) { return before_apply(); };
    return std::move(jobs::engine::open(jobs::make_memory_store(m), o)).value();
  }
  // A switch point, like a slow disk.
  std::optional<jobs::error> before_apply() const {
    seam::yield();
    if (!fails) return std::nullopt;
    return jobs::error{error_code::disk_full, "made to be full"};
  }
  jobs::engine* operator->() { return engine.get(); }

  static jobs::job_spec a_job() {
    jobs::job_spec spec;
    spec.kind = "k";
    spec.retry.first = 1ms;
    spec.retry.jitter = 0;
    return spec;
  }
  job_id push(jobs::job_spec spec = a_job()) {
    const auto pushed = engine->push(std::move(spec)).get();
    check(pushed.has_value(), "an accepted push");
    return pushed->id;
  }
  std::optional<leased_job> try_take(milliseconds within) {
    auto leased = engine->lease({}, deadline::after(within)).get();
    if (leased) return leased->front();
    check(leased.error().code == error_code::timed_out, "a job or a time-out");
    return std::nullopt;
  }
  leased_job take() {
    auto leased = engine->lease({}).get();
    check(leased.has_value(), "a job to lease");
    return leased->front();
  }
  // Returns the number of stored jobs, after the engine was destroyed.
  std::size_t stored() {
    engine.reset();
    const auto page = jobs::make_memory_store({.contents = contents})->list({}, 0, 10);
    check(page.has_value(), "a readable store");
    return page->jobs.size();
  }
};

void a_push_against_a_stop() {
  server s;
  bool was_taken = false;
  {
    const std::jthread pusher([&] {
      const auto pushed = s->push(server::a_job()).get();
      was_taken = pushed.has_value();
      check(was_taken || pushed.error().code == error_code::shutting_down, "no other error");
    });
    s->stop();
  }
  check(s.stored() == (was_taken ? 1U : 0U), "exactly the acknowledged jobs");
}

void an_ack_against_the_end_of_its_lease() {
  server s;
  auto spec = server::a_job();
  spec.lease_for = 1ms;
  s.push(spec);
  const auto job = s.take();
  bool was_ours = false;
  std::optional<leased_job> again;
  bool was_theirs = false;
  {
    const std::jthread worker([&] {
      const auto acked = s->ack(job.ref()).get();
      was_ours = acked.has_value();
      check(was_ours || acked.error().code == error_code::lease_lost, "no other error");
    });
    again = s.try_take(20ms);
    was_theirs = again && s->ack(again->ref()).get().has_value();  // this lease may expire too
  }
  check(!again || again->attempt == 2, "the expired lease to count as an attempt");
  check(!again || !was_ours, "no lease of an acked job");
  check(s.stored() == (was_ours || was_theirs ? 0U : 1U), "the job to be stored until its end");
}

void an_extension_against_the_end_of_its_lease() {
  server s;
  auto spec = server::a_job();
  spec.lease_for = 2ms;
  s.push(spec);
  const auto job = s.take();
  std::optional<jobs::unix_time> until;
  bool was_taken = false;
  jobs::unix_time taken_at;
  {
    const std::jthread worker([&] {
      if (const auto more = s->extend(job.ref(), 50ms)) until = more->until;
    });
    was_taken = s.try_take(20ms).has_value();
    taken_at = jobs::real_time().now();
  }
  check(!was_taken || !until || taken_at >= *until, "the extended lease to hold");
}

void a_cancel_against_an_ack() {
  server s;
  const job_id id = s.push();
  const auto job = s.take();
  bool was_cancelled = false;
  {
    const std::jthread other([&] {
      const auto cancelled = s->cancel(id).get();
      was_cancelled = cancelled.has_value();
      check(was_cancelled || cancelled.error().code == error_code::wrong_state ||
                cancelled.error().code == error_code::not_found,
            "no other error");
    });
    check(s->ack(job.ref()).get().has_value(), "the worker's ack to succeed");
  }
  const auto found = s->get(id).get();
  check(found.has_value() == was_cancelled, "the job to be kept only if it was cancelled");
  check(!found || found->state == jobs::job_state::cancelled, "the state cancelled");
  check(s->queues().front().counts.unfinished() == 0, "no unfinished job");
}

void help_all(server& s) {
  while (s->commit_here()) sim::yield();
}

void a_helper_against_the_committer() {
  server s;
  {
    const std::jthread loop([&] {
      (void)s->commit_here();  // from now on this thread commits its own calls
      auto push = s->push(server::a_job());
      help_all(s);
      check(push.get().has_value(), "a reply to the helper's push");
    });
    s.push();
  }
  check(s.take().job->id != s.take().job->id, "two jobs");
  check(s.stored() == 2, "both to be stored");
}

void a_helper_of_two_engines() {
  server one;
  server other;
  help_all(one);
  help_all(other);
  auto first = one->push(server::a_job());
  auto second = other->push(server::a_job());
  help_all(one);
  help_all(other);
  check(first.get().has_value(), "a reply to the push to the first engine");
  check(second.get().has_value(), "a reply to the push to the second engine");
}

void two_workers_and_one_job() {
  server s;
  std::optional<leased_job> one;
  std::optional<leased_job> other;
  {
    const std::jthread worker([&] { other = s.try_take(5ms); });
    s.push();
    one = s.try_take(5ms);
  }
  check(one.has_value() != other.has_value(), "exactly one worker to have the job");
  check(s->ack((one ? one : other)->ref()).get().has_value(), "its lease to hold");
}

void a_push_that_waits_for_capacity() {
  server s;
  const auto set =
      s->configure("default", {.capacity_jobs = 1, .when_full = overflow::block}).get();
  check(set.has_value(), "a queue of one job");
  const job_id first = s.push();
  {
    const std::jthread worker([&] {
      const auto job = s.take();
      check(job.job->id == first, "the first job first");
      check(s->ack(job.ref()).get().has_value(), "its lease to hold");
    });
    s.push();  // otherwise it is never answered
  }
  check(s.stored() == 1, "the second job to be stored");
}

void a_lease_that_is_stopped_against_a_push() {
  server s;
  std::stop_source stop;
  std::optional<error_code> why;
  {
    const std::jthread worker([&] {
      const auto leased = s->lease({}, wait_limits{stop.get_token()}).get();
      if (!leased) why = leased.error().code;
    });
    auto pushed = s->push(server::a_job());
    stop.request_stop();
    check(pushed.get().has_value(), "an accepted push");
  }
  check(!why || *why == error_code::stopped, "no other result");
  check(s.try_take(0ms).has_value() == why.has_value(), "a stopped wait to lease nothing");
}

// The worker may lease and ack the job before it is stored.
void an_ack_of_what_is_being_stored(bool fails) {
  server s;
  s.push();
  check(s->ack(s.take().ref()).get().has_value(), "its lease to hold");  // numbers are stored
  std::optional<leased_job> job;
  std::optional<jobs::void_result> acked;
  std::optional<jobs::result<jobs::push_receipt>> pushed;
  {
    const std::jthread worker([&] {
      job = s.try_take(20ms);
      if (job) acked = s->ack(job->ref()).get();
    });
    s.fails = fails;
    pushed = s->push(server::a_job()).get();
  }
  s.fails = false;
  check(pushed->has_value() == !fails, "the push to succeed unless the disk is full");
  if (!fails) return check(job && acked->has_value(), "a stored job to be leased and acked");
  check(!job || acked->error().code == error_code::lease_lost,
        "no ack of a job that is not stored");
  const error_code why = job ? error_code::io_error : error_code::disk_full;
  check(pushed->error().code == why, "disk_full only if no worker has begun the job");
  check(s->stats().running == 0 && s.stored() == 0, "no job");
}
void an_ack_of_a_job_that_is_stored_later() {
  an_ack_of_what_is_being_stored(false);
}
void an_ack_of_a_job_that_is_never_stored() {
  an_ack_of_what_is_being_stored(true);
}

void a_wait_for_the_end_against_the_end() {
  server s;
  const job_id id = s.push();
  const auto job = s.take();
  const std::jthread other([&] {
    const auto ended = s->wait(id).get();
    const bool was_gone = !ended && ended.error().code == error_code::not_found;
    check(was_gone || (ended && ended->state == jobs::job_state::done),
          "a finished or removed job");
  });
  check(s->ack(job.ref()).get().has_value(), "its lease to hold");
  check(s->drained().get() == status::ok, "no running job");
}

// Time passes only when no thread can run, so that no lease expires while its worker is about to
// ack.
bool add(std::string name, void (*body)(), std::uint64_t schedules) {
  return sim::add({.name = "engine: " + std::move(name),
                   .options = {.schedules = schedules, .early_timeouts = false},
                   .body = body});
}
// Time may pass at any step.
bool add_with_clock(std::string name, void (*body)(), std::uint64_t schedules) {
  return sim::add(
      {.name = "engine: " + std::move(name), .options = {.schedules = schedules}, .body = body});
}

// Every schedule with one preemption: two preemptions take too long.
bool add_every(std::string name, void (*body)()) {
  auto o = sim::exhaustively(1);
  o.stale_reads = 0;
  o.early_timeouts = false;
  return sim::add(
      {.name = "engine: " + std::move(name) + ", one preemption", .options = o, .body = body});
}

[[maybe_unused]] const bool added =
    add("a push against a stop", &a_push_against_a_stop, 3'000) &&
    add_with_clock("an ack against the end of its lease", &an_ack_against_the_end_of_its_lease,
                   3'000) &&
    add_with_clock("an extension against the end of its lease",
                   &an_extension_against_the_end_of_its_lease, 3'000) &&
    add("a cancel against an ack", &a_cancel_against_an_ack, 3'000) &&
    add("a helper against the committer", &a_helper_against_the_committer, 3'000) &&
    add("a helper of two engines", &a_helper_of_two_engines, 1'000) &&
    add("an ack of a job that is stored later", &an_ack_of_a_job_that_is_stored_later, 3'000) &&
    add("an ack of a job that is never stored", &an_ack_of_a_job_that_is_never_stored, 3'000) &&
    add("two workers and one job", &two_workers_and_one_job, 3'000) &&
    add("a push that waits for capacity", &a_push_that_waits_for_capacity, 3'000) &&
    add("a lease that is stopped against a push", &a_lease_that_is_stopped_against_a_push, 3'000) &&
    add_every("a push against a stop", &a_push_against_a_stop) &&
    add("a wait for the end against the end", &a_wait_for_the_end_against_the_end, 3'000);

}  // namespace
}  // namespace sluice::sim_jobs
