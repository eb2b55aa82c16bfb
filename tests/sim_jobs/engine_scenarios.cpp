// Two callers that meet in the engine, and the thread that commits for both.

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

// An engine on a store that is still there when it has gone.
struct server {
  std::shared_ptr<jobs::memory_contents> contents = jobs::make_memory_contents();
  // Set and asked by threads that run one at a time.
  bool fails = false;
  std::unique_ptr<jobs::engine> it = open();

  std::unique_ptr<jobs::engine> open() {
    jobs::engine_options o;
    o.seed = 1;
    jobs::memory_options m{.contents = contents};
    m.before_apply = [this](const jobs::batch&) { return before_apply(); };
    return std::move(jobs::engine::open(jobs::make_memory_store(m), o)).value();
  }
  // A disk takes its time: others come to run.
  std::optional<jobs::error> before_apply() const {
    seam::yield();
    if (!fails) return std::nullopt;
    return jobs::error{error_code::disk_full, "made to be full"};
  }
  jobs::engine* operator->() { return it.get(); }

  static jobs::job_spec a_job() {
    jobs::job_spec spec;
    spec.kind = "k";
    spec.retry.first = 1ms;
    spec.retry.jitter = 0;
    return spec;
  }
  job_id push(jobs::job_spec spec = a_job()) {
    const auto pushed = it->push(std::move(spec)).get();
    check(pushed.has_value(), "a push to be taken");
    return pushed->id;
  }
  std::optional<leased_job> try_take(milliseconds within) {
    auto leased = it->lease({}, deadline::after(within)).get();
    if (leased) return leased->front();
    check(leased.error().code == error_code::timed_out, "a job, or that there is none in time");
    return std::nullopt;
  }
  leased_job take() {
    auto leased = it->lease({}).get();
    check(leased.has_value(), "a job to take");
    return leased->front();
  }
  // What the store has, without the engine.
  std::size_t stored() {
    it.reset();
    const auto page = jobs::make_memory_store({.contents = contents})->list({}, 0, 10);
    check(page.has_value(), "a store that can be read");
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
      check(was_taken || pushed.error().code == error_code::shutting_down, "no other refusal");
    });
    s->stop();
  }
  check(s.stored() == (was_taken ? 1U : 0U), "what was acknowledged, and no more");
}

void an_ack_against_the_end_of_its_lease() {
  server s;
  auto spec = server::a_job();
  spec.lease_for = 1ms;
  s.push(spec);
  const auto mine = s.take();
  bool was_mine = false;
  std::optional<leased_job> again;
  bool was_theirs = false;
  {
    const std::jthread worker([&] {
      const auto acked = s->ack(mine.ref()).get();
      was_mine = acked.has_value();
      check(was_mine || acked.error().code == error_code::lease_lost, "no other refusal");
    });
    again = s.try_take(20ms);
    was_theirs = again && s->ack(again->ref()).get().has_value();  // it may run out, too
  }
  check(!again || again->attempt == 2, "the lease that ran out to count");
  check(!again || !was_mine, "no job to be given out that was acked");
  check(s.stored() == (was_mine || was_theirs ? 0U : 1U), "the job to be there until its end");
}

void an_extension_against_the_end_of_its_lease() {
  server s;
  auto spec = server::a_job();
  spec.lease_for = 2ms;
  s.push(spec);
  const auto mine = s.take();
  std::optional<jobs::unix_time> until;
  bool was_taken = false;
  jobs::unix_time taken_at;
  {
    const std::jthread worker([&] {
      if (const auto more = s->extend(mine.ref(), 50ms)) until = more->until;
    });
    was_taken = s.try_take(20ms).has_value();
    taken_at = jobs::real_time().now();
  }
  check(!was_taken || !until || taken_at >= *until, "a lease that was extended to hold");
}

void a_cancel_against_an_ack() {
  server s;
  const job_id id = s.push();
  const auto mine = s.take();
  bool was_cancelled = false;
  {
    const std::jthread other([&] {
      const auto cancelled = s->cancel(id).get();
      was_cancelled = cancelled.has_value();
      check(was_cancelled || cancelled.error().code == error_code::wrong_state ||
                cancelled.error().code == error_code::not_found,
            "no other refusal");
    });
    check(s->ack(mine.ref()).get().has_value(), "a worker's ack to be taken");
  }
  const auto found = s->get(id).get();
  check(found.has_value() == was_cancelled, "a job that is kept only if it was cancelled");
  check(!found || found->state == jobs::job_state::cancelled, "to have ended as cancelled");
  check(s->queues().front().counts.unfinished() == 0, "nothing to be left");
}

void help_all(server& s) {
  while (s->help()) sim::yield();
}

void a_helper_against_the_committer() {
  server s;
  {
    const std::jthread loop([&] {
      (void)s->help();  // from now on this thread commits what it calls
      auto mine = s->push(server::a_job());
      help_all(s);
      check(mine.get().has_value(), "what a helper pushed to be answered");
    });
    s.push();
  }
  check(s.take().it->id != s.take().it->id, "two jobs");
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
  check(first.get().has_value(), "what was pushed to the one to be answered");
  check(second.get().has_value(), "what was pushed to the other to be answered");
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
  check(one.has_value() != other.has_value(), "one of them to have it");
  check(s->ack((one ? one : other)->ref()).get().has_value(), "its lease to hold");
}

void a_push_that_waits_for_room() {
  server s;
  const auto set =
      s->configure("default", {.capacity_jobs = 1, .when_full = overflow::block}).get();
  check(set.has_value(), "a queue of one job");
  const job_id first = s.push();
  {
    const std::jthread worker([&] {
      const auto mine = s.take();
      check(mine.it->id == first, "the first job first");
      check(s->ack(mine.ref()).get().has_value(), "its lease to hold");
    });
    s.push();  // or it is never answered
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
    check(pushed.get().has_value(), "a push to be taken");
  }
  check(!why || *why == error_code::stopped, "no other end");
  check(s.try_take(0ms).has_value() == why.has_value(), "a wait that was stopped to take nothing");
}

// The worker may have it before it is stored, and end it before that.
void an_ack_of_what_is_being_stored(bool fails) {
  server s;
  s.push();
  check(s->ack(s.take().ref()).get().has_value(), "its lease to hold");  // numbers are stored
  std::optional<leased_job> mine;
  std::optional<jobs::void_result> acked;
  std::optional<jobs::result<jobs::push_receipt>> pushed;
  {
    const std::jthread worker([&] {
      mine = s.try_take(20ms);
      if (mine) acked = s->ack(mine->ref()).get();
    });
    s.fails = fails;
    pushed = s->push(server::a_job()).get();
  }
  s.fails = false;
  check(pushed->has_value() == !fails, "a push to be taken where there is room");
  if (!fails) return check(mine && acked->has_value(), "a job that is stored to be one's own");
  check(!mine || acked->error().code == error_code::lease_lost, "no end of what is not stored");
  const error_code why = mine ? error_code::io_error : error_code::disk_full;
  check(pushed->error().code == why, "certainty only where nobody has begun it");
  check(s->stats().running == 0 && s.stored() == 0, "nothing to be left of it");
}
void an_ack_of_what_is_stored_later() {
  an_ack_of_what_is_being_stored(false);
}
void an_ack_of_what_is_never_stored() {
  an_ack_of_what_is_being_stored(true);
}

void a_wait_for_the_end_against_the_end() {
  server s;
  const job_id id = s.push();
  const auto mine = s.take();
  const std::jthread other([&] {
    const auto ended = s->wait(id).get();
    const bool was_gone = !ended && ended.error().code == error_code::not_found;
    check(was_gone || (ended && ended->state == jobs::job_state::done), "its end, or it is gone");
  });
  check(s->ack(mine.ref()).get().has_value(), "its lease to hold");
  check(s->drained().get() == status::ok, "nothing to run");
}

// Time passes only when nobody can run, so that no lease runs out while its worker is about to ack.
bool add(std::string name, void (*body)(), std::uint64_t schedules) {
  return sim::add({.name = "engine: " + std::move(name),
                   .how = {.schedules = schedules, .early_timeouts = false},
                   .body = body});
}
// Time passes whenever it likes.
bool add_with_clock(std::string name, void (*body)(), std::uint64_t schedules) {
  return sim::add(
      {.name = "engine: " + std::move(name), .how = {.schedules = schedules}, .body = body});
}

// Every schedule with one preemption: two are more than can be gone through.
bool add_every(std::string name, void (*body)()) {
  auto how = sim::exhaustively(1);
  how.stale_reads = 0;
  how.early_timeouts = false;
  return sim::add(
      {.name = "engine: " + std::move(name) + ", one preemption", .how = how, .body = body});
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
    add("an ack of what is stored later", &an_ack_of_what_is_stored_later, 3'000) &&
    add("an ack of what is never stored", &an_ack_of_what_is_never_stored, 3'000) &&
    add("two workers and one job", &two_workers_and_one_job, 3'000) &&
    add("a push that waits for room", &a_push_that_waits_for_room, 3'000) &&
    add("a lease that is stopped against a push", &a_lease_that_is_stopped_against_a_push, 3'000) &&
    add_every("a push against a stop", &a_push_against_a_stop) &&
    add("a wait for the end against the end", &a_wait_for_the_end_against_the_end, 3'000);

}  // namespace
}  // namespace sluice::sim_jobs
