#include "sluice/actor/actor.hpp"

#include <chrono>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/actor/actor_error.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/reentrant.hpp"
#include "sluice/actor/stall_detector.hpp"
#include "sluice/base/race_checked.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

struct plus {
  int n;
};
struct total {
  using reply = int;
};
struct fall {};
struct other_ended {};
struct tick {};
struct wait_for {
  event* signal;
};

// The counts of all actors of a scenario.
struct journal {
  atomic<int> handled{0};
  atomic<int> made{0};
  atomic<int> gone{0};
};

class counter : public actor<counter, plus, total, fall, wait_for> {
 public:
  explicit counter(journal* log) : log_(*log) { log_.made.fetch_add(1, relaxed); }
  ~counter() { log_.gone.fetch_add(1, relaxed); }
  void on(plus m) {
    sum_.change() += m.n;
    log_.handled.fetch_add(1, relaxed);
  }
  int on(total) { return sum_.read(); }
  void on(fall) { throw std::runtime_error("it fell"); }
  void on(wait_for m) { m.signal->wait(); }

 private:
  journal& log_;
  race_checked<int> sum_{0};  // guarded only by the order of the actor's turns
};

actor_system::options quiet() {
  actor_system::options o;
  o.on_failure = [](const actor_failure&) {};
  return o;
}
thread_pool::options small(std::size_t threads) {
  return {.core = threads, .capacity = 4, .time_every = 0};
}
actor_options bounded(std::uint32_t capacity, overflow policy) {
  actor_options o;
  o.mailbox = {.capacity = capacity, .overflow = policy};
  o.per_turn = 1;
  return o;
}

void messages_of_two_senders_do_not_overlap() {
  journal log;
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  auto c = system.spawn_with<counter>(bounded(1, overflow::block), &log);
  std::jthread other([&] {
    for (int i = 0; i < 2; ++i) check(c.send(plus{1}) == status::ok, "a live actor to accept it");
  });
  for (int i = 0; i < 2; ++i) check(c.send(plus{1}) == status::ok, "a live actor to accept it");
  other.join();
  check(c.ask(total{}).get() == 4, "all earlier messages to be handled first");
}

void a_message_during_the_stop_is_handled_or_a_dead_letter() {
  journal log;
  int ok = 0;
  int closed = 0;
  std::uint64_t dead = 0;
  thread_pool pool(small(1));
  {
    actor_system system(pool, quiet());
    auto c = system.spawn_with<counter>(bounded(1, overflow::block), &log);
    std::jthread other([&] {
      for (int i = 0; i < 2; ++i) {
        const status outcome = c.send(plus{1});
        check(outcome == status::ok || outcome == status::closed, "ok or closed");
        ++(outcome ? ok : closed);
      }
    });
    c.stop();
    other.join();
    check(system.shutdown({}) == status::ok, "an end");
    dead = system.stats().dead_letters;
  }
  check(log.handled.load() + static_cast<int>(dead) == ok + closed,
        "every message to be handled or a dead letter");
  check(log.handled.load() <= ok, "no rejected message to be handled");
  check(log.made.load() == 1 && log.gone.load() == 1, "its state to be destroyed");
}

void a_closing_actor_handles_its_mailbox() {
  journal log;
  int ok = 0;
  thread_pool pool(small(1));
  {
    actor_system system(pool, quiet());
    auto c = system.spawn_with<counter>(bounded(2, overflow::block), &log);
    std::jthread other([&] {
      for (int i = 0; i < 2; ++i) {
        if (c.send(plus{1})) ++ok;
      }
    });
    c.close();
    other.join();
    check(c.ended().get().why == end_reason::stopped, "its end");
  }
  check(log.handled.load() == ok, "exactly the accepted messages to be handled");
}

void an_ask_is_answered_or_fails_and_never_hangs() {
  journal log;
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  auto c = system.spawn<counter>(&log);
  std::jthread other([&] { c.stop(); });
  try {
    check(c.ask(total{}).get() == 0, "the answer");
  } catch (const actor_error& e) {
    check(e.why() == actor_error::terminated || e.why() == actor_error::unanswered,
          "terminated or unanswered");
  }
}

void an_ask_that_is_stopped_has_one_outcome() {
  journal log;
  std::stop_source stop;
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  auto c = system.spawn<counter>(&log);
  std::jthread other([&] { stop.request_stop(); });
  try {
    check(c.ask(total{}, stop.get_token()).get() == 0, "the answer");
  } catch (const future_error& e) {
    check(e.why() == future_error::cancelled, "a cancellation");
  } catch (const actor_error& e) {
    check(e.why() == actor_error::stopped, "a stop before the request was sent");
  }
}

void an_ask_without_a_reply_times_out() {
  journal log;
  event go;
  thread_pool pool(small(1));
  const auto began = seam::now();
  actor_system system(pool, quiet());
  auto c = system.spawn<counter>(&log);
  check(c.send(wait_for{&go}) == status::ok, "capacity");
  bool timed_out = false;
  try {
    (void)c.ask(total{}, deadline::after(1h)).get();
  } catch (const future_error& e) {
    timed_out = e.why() == future_error::timed_out;
  }
  check(timed_out && seam::now() - began >= 1h, "an hour without a reply");
  go.set();
}

template <overflow Policy>
void the_counts_of_a_full_mailbox_add_up() {
  journal log;
  int ok = 0;
  int full = 0;
  int dropped = 0;
  std::uint64_t lost = 0;
  thread_pool pool(small(1));
  {
    actor_system system(pool, quiet());
    auto c = system.spawn_with<counter>(bounded(1, Policy), &log);
    status theirs = status::closed;
    std::jthread other([&] { theirs = c.send(plus{1}); });
    const auto count = [&](status outcome) {
      ok += outcome == status::ok ? 1 : 0;
      full += outcome == status::full ? 1 : 0;
      dropped += outcome == status::dropped ? 1 : 0;
    };
    for (int i = 0; i < 2; ++i) count(c.send(plus{1}));
    other.join();
    count(theirs);
    check(system.shutdown({}) == status::ok, "an end");
    lost = system.stats().dropped;
  }
  check(ok + full + dropped == 3, "ok, full or dropped");
  check(log.handled.load() + static_cast<int>(lost) + full == 3,
        "every message to have one outcome");
  if (Policy == overflow::reject) check(lost == 0 && dropped == 0, "none to be dropped");
  if (Policy == overflow::block) check(ok == 3, "all to be accepted");
}

void a_timed_out_wait_for_capacity_sent_nothing() {
  journal log;
  event go;
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  auto c = system.spawn_with<counter>(bounded(1, overflow::block), &log);
  check(c.send(wait_for{&go}) == status::ok && c.send(plus{1}) == status::ok, "capacity");
  std::jthread opens([&] { go.set(); });
  const status outcome = c.send(plus{1}, 1s);
  check(outcome == status::ok || outcome == status::timed_out, "ok or timed out");
  opens.join();
  check(c.ask(total{}).get() == (outcome ? 2 : 1), "exactly the accepted messages");
}

task<status> sends(ref<counter> target, wait_limits limits) {
  plus one{1};  // named, for g++ 12
  const status outcome = co_await target.async_send(std::move(one), std::move(limits));
  co_return outcome;
}

void a_task_that_waits_for_capacity_is_accepted_or_stopped() {
  journal log;
  event go;
  thread_pool pool(small(1));
  thread_pool others(small(1));
  actor_system system(pool, quiet());
  auto c = system.spawn_with<counter>(bounded(1, overflow::block), &log);
  check(c.send(wait_for{&go}) == status::ok && c.send(plus{1}) == status::ok, "capacity");
  std::stop_source asks;
  auto sending = spawn(others, sends(c, wait_limits(asks.get_token())));
  std::jthread stops([&] { asks.request_stop(); });
  go.set();
  const status outcome = sending.get();
  check(outcome == status::ok || outcome == status::stopped, "ok or stopped");
  check(c.ask(total{}).get() == (outcome ? 2 : 1), "exactly the accepted messages");
}

void a_failed_actor_restarts_and_keeps_its_mailbox() {
  journal log;
  std::uint64_t restarts = 0;
  thread_pool pool(small(1));
  {
    actor_system system(pool, quiet());
    auto c = system.spawn<counter>(&log);
    std::jthread other([&] { check(c.send(plus{1}) == status::ok, "capacity"); });
    check(c.send(fall{}) == status::ok && c.send(plus{1}) == status::ok, "capacity");
    other.join();
    const int sum = c.ask(total{}).get();
    check(sum == 1 || sum == 2, "the messages after the failure");
    restarts = system.stats().restarts;
  }
  check(log.handled.load() == 2 && restarts == 1, "only the failed message to be lost");
  check(log.made.load() == 2 && log.gone.load() == 2, "the old and the new state to be destroyed");
}

void a_pending_restart_can_be_stopped() {
  journal log;
  auto o = quiet();
  o.top.backoff_first = 1min;
  thread_pool pool(small(1));
  actor_system system(pool, std::move(o));
  auto c = system.spawn<counter>(&log);
  check(c.send(fall{}) == status::ok, "capacity");
  std::jthread other([&] { c.stop(); });
  const auto end = c.ended().get();
  check(end.why == end_reason::stopped, "the reason stopped");
  check(c.is_terminated(), "to be terminated");
}

class watcher : public actor<watcher, other_ended, total> {
 public:
  explicit watcher(ref<counter> watched) {
    watch(watched, [](const actor_end&) { return other_ended{}; });
  }
  void on(other_ended) {
    ++ended_;
    for (auto& each : waiting_) each.reply(ended_);
    waiting_.clear();
  }
  void on(total, responder<int> reply) {
    if (ended_ > 0) return reply.reply(ended_);
    waiting_.push_back(std::move(reply));
  }

 private:
  int ended_ = 0;
  std::vector<responder<int>> waiting_;
};

void a_death_watch_is_notified_once() {
  journal log;
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  auto c = system.spawn<counter>(&log);
  std::jthread other([&] { c.stop(); });
  auto w = system.spawn<watcher>(c);
  check(w.ask(total{}).get() == 1, "one notification, before or after the watch");
  other.join();
  check(w.ask(total{}).get() == 1, "one notification only");
}

class clockwork : public actor<clockwork, tick, total> {
 public:
  clockwork() : began_(seam::now()) { send_every(10min, tick{}); }
  void on(tick) {
    ++ticks_;
    check(seam::now() - began_ >= ticks_ * 10min, "no early tick");
    if (ticks_ < 6) return;
    for (auto& each : waiting_) each.reply(ticks_);
    stop_self();
  }
  void on(total, responder<int> reply) { waiting_.push_back(std::move(reply)); }

 private:
  const time_point began_;
  int ticks_ = 0;
  std::vector<responder<int>> waiting_;
};

void an_hour_of_ticks_passes_in_no_time() {
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  auto c = system.spawn<clockwork>();
  check(c.ask(total{}).get() == 6, "six ticks in an hour");
}

// A handler that waits reentrantly: other messages are handled meanwhile.
class patient : public actor<patient, wait_for, plus, total> {
 public:
  task<> on(wait_for m) {
    co_await reentrant(until(m.signal));
    sum_.change() += 100;
  }
  void on(plus m) { sum_.change() += m.n; }
  int on(total) { return sum_.read(); }

 private:
  static task<> until(event* signal) {
    const status outcome = co_await signal->async_wait();
    check(outcome == status::ok || outcome == status::stopped, "ok or stopped");
  }
  race_checked<int> sum_{0};
};

void other_messages_are_handled_during_a_reentrant_wait() {
  event go;
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  auto p = system.spawn<patient>();
  check(p.send(wait_for{&go}) == status::ok && p.send(plus{1}) == status::ok, "capacity");
  std::jthread other([&] { go.set(); });
  const int seen = p.ask(total{}).get();
  check(seen == 1 || seen == 101, "other messages to be handled meanwhile");
  p.close();
  (void)p.ended().get();
}

void an_actor_with_a_thread_of_its_own_ends_with_the_system() {
  journal log;
  thread_pool pool(small(1));
  {
    actor_system system(pool, quiet());
    actor_options o;
    o.own_thread = true;
    auto c = system.spawn_with<counter>(o, &log);
    std::jthread other([&] { (void)c.send(plus{1}); });
    check(c.send(plus{1}) == status::ok, "capacity");
    other.join();
    check(c.ask(total{}).get() == 2, "both to be handled");
  }
  check(log.made.load() == log.gone.load(), "its state to be destroyed");
}

void a_shutdown_with_a_time_limit_stops_longer_handlers() {
  event never;
  thread_pool pool(small(1));
  const auto began = seam::now();
  actor_system system(pool, quiet());
  auto p = system.spawn<patient>();
  check(p.send(wait_for{&never}) == status::ok, "capacity");
  check(system.shutdown(1h) == status::timed_out, "a time-out");
  check(seam::now() - began >= 1h, "no earlier time-out");
  check(system.join() == status::ok && p.is_terminated(), "all to end after the hour");
}

// The children end before their parent, at any point of their work, and none is left.
class family : public actor<family, fall, total> {
 public:
  explicit family(journal* log) : log_(*log) {
    child_ = spawn<counter>(log);
    log_.made.fetch_add(1, relaxed);
  }
  ~family() {
    check(log_.gone.fetch_add(1) % 2 == 1, "the child to be destroyed before its parent");
  }
  void on(fall) { (void)child_.send(fall{}); }
  int on(total) { return log_.made.load(); }

 private:
  journal& log_;
  ref<counter> child_;
};

void children_end_before_their_parent() {
  journal log;
  thread_pool pool(small(2));
  {
    actor_system system(pool, quiet());
    auto f = system.spawn<family>(&log);
    std::jthread other([&] { f.stop(); });
    check(f.ended().get().why == end_reason::stopped, "its end");
  }
  check(log.made.load() == 2 && log.gone.load() == 2, "both to be destroyed");
}

void the_list_of_children_has_the_live_ones() {
  journal log;
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  auto f = system.spawn<family>(&log);
  std::jthread other([&] { f.stop(); });
  const std::vector<actor_child> seen = f.children();
  check(seen.size() <= 1, "at most one child");
  for (const actor_child& each : seen) check(each.actor.id() == each.id, "the child itself");
  (void)f.ended().get();
  check(f.child_count() == 0, "no children of a terminated actor");
}

struct look_after {
  using reply = std::size_t;
};
struct give_child {
  using reply = ref<counter>;
};
// Replies with the number of its children when it is notified of a child's end.
class nursery : public actor<nursery, look_after, give_child, other_ended> {
 public:
  explicit nursery(journal* log) : child_(spawn_with<counter>({.name = "child"}, log)) {}
  ref<counter> on(give_child) { return child_; }
  void on(look_after, responder<std::size_t> reply) {
    reply_ = std::move(reply);
    watch(child_, [](const actor_end&) { return other_ended{}; });
  }
  void on(other_ended) { reply_.reply(child_count()); }

 private:
  const ref<counter> child_;
  responder<std::size_t> reply_;
};

void a_terminated_child_is_unlinked_before_its_parent_is_notified() {
  journal log;
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  auto n = system.spawn<nursery>(&log);
  auto child = n.ask(give_child{}).get();
  std::jthread other([&] { child.stop(); });
  check(n.ask(look_after{}).get() == 0, "no child");
}

void a_dead_letter_has_its_path_in_every_order_of_ends() {
  journal log;
  atomic<int> dead_letters{0};
  auto o = quiet();
  o.on_dead_letter = [&](const dead_letter& d) {
    check(d.path == "/nursery/child", "the names of parent and child");
    dead_letters.fetch_add(1, relaxed);
  };
  thread_pool pool(small(2));
  actor_system system(pool, std::move(o));
  ref<counter> child;
  {
    auto n = system.spawn_with<nursery>({.name = "nursery"}, &log);
    child = n.ask(give_child{}).get();
    n.stop();
  }
  std::jthread other([child] { (void)child.try_send(plus{1}); });
  (void)child.try_send(plus{1});
  other.join();
  check(system.shutdown({}) == status::ok, "an end");
  check(log.handled.load() + dead_letters.load() == 2,
        "every message to be handled or a dead letter");
}

void a_child_that_keeps_failing_terminates_its_parent() {
  journal log;
  auto o = quiet();
  o.top.action = directive::stop;
  thread_pool pool(small(2));
  {
    actor_system system(pool, std::move(o));
    actor_options strict;
    strict.children.action = directive::escalate;
    auto f = system.spawn_with<family>(strict, &log);
    check(f.send(fall{}) == status::ok, "capacity");
    std::jthread other([&] { (void)f.try_send(fall{}); });
    (void)f.ended().get();
  }
  check(log.made.load() == 2 && log.gone.load() == 2, "both to be destroyed once");
}

void the_stall_detector_reports_no_false_cycle() {
  journal log;
  stall_detector watch({.period = 0s});
  auto o = quiet();
  o.observer = &watch;
  thread_pool pool(small(1));
  actor_system system(pool, std::move(o));
  auto c = system.spawn_with<counter>(bounded(1, overflow::block), &log);
  std::jthread other([&] {
    check(c.send(plus{1}) == status::ok && c.ask(total{}).get() == 1,
          "the effect of the earlier message");
  });
  check(watch.find_cycles().empty() && watch.find_slow(1h).empty(), "no report");
}

void a_ref_may_outlive_its_system() {
  journal log;
  thread_pool pool(small(1));
  std::optional<ref<counter>> kept;
  std::jthread other;
  {
    actor_system system(pool, quiet());
    auto c = system.spawn<counter>(&log);
    check(c.send(plus{1}) == status::ok, "capacity");
    kept = c;
    other = std::jthread([copy = c]() mutable { copy = ref<counter>(); });
  }
  check(kept->is_terminated(), "to be terminated");
}

[[maybe_unused]] const bool added =
    add({.name = "actor: messages of two senders do not overlap",
         .options = {.schedules = 3'500},
         .body = &messages_of_two_senders_do_not_overlap}) &&
    add({.name = "actor: a message during the stop is handled or a dead letter",
         .options = {.schedules = 5'000},
         .body = &a_message_during_the_stop_is_handled_or_a_dead_letter}) &&
    add({.name = "actor: a closing actor handles its mailbox",
         .options = {.schedules = 3'500},
         .body = &a_closing_actor_handles_its_mailbox}) &&
    add({.name = "actor: an ask is answered or fails, and never hangs",
         .options = {.schedules = 3'500},
         .body = &an_ask_is_answered_or_fails_and_never_hangs}) &&
    add({.name = "actor: an ask that is stopped has one outcome",
         .options = {.schedules = 3'500},
         .body = &an_ask_that_is_stopped_has_one_outcome}) &&
    add({.name = "actor: an ask without a reply times out",
         .options = {.schedules = 1'000},
         .body = &an_ask_without_a_reply_times_out}) &&
    add({.name = "actor: a full mailbox that blocks",
         .options = {.schedules = 2'500},
         .body = &the_counts_of_a_full_mailbox_add_up<overflow::block>}) &&
    add({.name = "actor: a full mailbox that rejects",
         .options = {.schedules = 2'500},
         .body = &the_counts_of_a_full_mailbox_add_up<overflow::reject>}) &&
    add({.name = "actor: a full mailbox that drops the newest",
         .options = {.schedules = 2'500},
         .body = &the_counts_of_a_full_mailbox_add_up<overflow::drop_newest>}) &&
    add({.name = "actor: a full mailbox that drops the oldest",
         .options = {.schedules = 2'500},
         .body = &the_counts_of_a_full_mailbox_add_up<overflow::drop_oldest>}) &&
    add({.name = "actor: a full mailbox that keeps the latest",
         .options = {.schedules = 2'500},
         .body = &the_counts_of_a_full_mailbox_add_up<overflow::latest>}) &&
    add({.name = "actor: a timed-out wait for capacity sent nothing",
         .options = {.schedules = 3'000},
         .body = &a_timed_out_wait_for_capacity_sent_nothing}) &&
    add({.name = "actor: a task that waits for capacity is accepted or stopped",
         .options = {.schedules = 3'000},
         .body = &a_task_that_waits_for_capacity_is_accepted_or_stopped}) &&
    add({.name = "actor: a failed actor restarts and keeps its mailbox",
         .options = {.schedules = 3'000},
         .body = &a_failed_actor_restarts_and_keeps_its_mailbox}) &&
    add({.name = "actor: a pending restart can be stopped",
         .options = {.schedules = 3'000},
         .body = &a_pending_restart_can_be_stopped}) &&
    add({.name = "actor: a death watch is notified once",
         .options = {.schedules = 3'000},
         .body = &a_death_watch_is_notified_once}) &&
    add({.name = "actor: an hour of ticks passes in no time",
         .options = {.schedules = 1'000},
         .body = &an_hour_of_ticks_passes_in_no_time}) &&
    add({.name = "actor: other messages are handled during a reentrant wait",
         .options = {.schedules = 3'000},
         .body = &other_messages_are_handled_during_a_reentrant_wait}) &&
    add({.name = "actor: an actor with a thread of its own ends with the system",
         .options = {.schedules = 2'500},
         .body = &an_actor_with_a_thread_of_its_own_ends_with_the_system}) &&
    add({.name = "actor: a shutdown with a time limit stops longer handlers",
         .options = {.schedules = 1'000, .early_timeouts = false},
         .body = &a_shutdown_with_a_time_limit_stops_longer_handlers}) &&
    add({.name = "actor: children end before their parent",
         .options = {.schedules = 2'500},
         .body = &children_end_before_their_parent}) &&
    add({.name = "actor: the list of children has the live ones",
         .options = {.schedules = 2'500},
         .body = &the_list_of_children_has_the_live_ones}) &&
    add({.name = "actor: a terminated child is unlinked before its parent is notified",
         .options = {.schedules = 2'500},
         .body = &a_terminated_child_is_unlinked_before_its_parent_is_notified}) &&
    add({.name = "actor: a dead letter has its path in every order of ends",
         .options = {.schedules = 2'500},
         .body = &a_dead_letter_has_its_path_in_every_order_of_ends}) &&
    add({.name = "actor: a child that keeps failing terminates its parent",
         .options = {.schedules = 2'500},
         .body = &a_child_that_keeps_failing_terminates_its_parent}) &&
    add({.name = "stall_detector: reports no false cycle",
         .options = {.schedules = 2'000},
         .body = &the_stall_detector_reports_no_false_cycle}) &&
    add({.name = "actor: a ref may outlive its system",
         .options = {.schedules = 3'000},
         .body = &a_ref_may_outlive_its_system});

}  // namespace
}  // namespace sluice::sim
