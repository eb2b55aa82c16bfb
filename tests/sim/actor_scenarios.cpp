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
#include "sluice/actor/actor_watch.hpp"
#include "sluice/actor/letting_others_in.hpp"
#include "sluice/base/shared.hpp"
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
  event* what;
};

// What the actors of a scenario did, all of them together.
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
  void on(wait_for m) { m.what->wait(); }

 private:
  journal& log_;
  shared<int> sum_{0};  // nothing but the actor's own order guards it
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

void two_send_and_nothing_overlaps() {
  journal log;
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  auto c = system.spawn_with<counter>(bounded(1, overflow::block), &log);
  std::jthread other([&] {
    for (int i = 0; i < 2; ++i) check(c.send(plus{1}) == status::ok, "a live actor to wait for");
  });
  for (int i = 0; i < 2; ++i) check(c.send(plus{1}) == status::ok, "a live actor to wait for");
  other.join();
  check(c.ask(total{}).get() == 4, "all of them to be handled before what came later");
}

void what_is_sent_while_it_stops_is_handled_or_a_dead_letter() {
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
        const status how = c.send(plus{1});
        check(how == status::ok || how == status::closed, "ok or closed");
        ++(how ? ok : closed);
      }
    });
    c.stop();
    other.join();
    check(system.shutdown_within({}) == status::ok, "an end");
    dead = system.stats().dead_letters;
  }
  check(log.handled.load() + static_cast<int>(dead) == ok + closed, "each message in one of them");
  check(log.handled.load() <= ok, "none that was refused to be handled");
  check(log.made.load() == 1 && log.gone.load() == 1, "its state to be gone");
}

void what_is_in_the_mailbox_of_one_that_closes_is_handled() {
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
  check(log.handled.load() == ok, "what was accepted, and nothing else, to be handled");
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
    check(e.why() == actor_error::gone || e.why() == actor_error::unanswered, "that it is gone");
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
    check(e.why() == future_error::cancelled, "that it was stopped");
  } catch (const actor_error& e) {
    check(e.why() == actor_error::stopped, "that it was stopped before it was asked");
  }
}

void an_ask_that_runs_out_of_time_is_told() {
  journal log;
  event go;
  thread_pool pool(small(1));
  const auto began = seam::now();
  actor_system system(pool, quiet());
  auto c = system.spawn<counter>(&log);
  check(c.send(wait_for{&go}) == status::ok, "room");
  bool timed_out = false;
  try {
    (void)c.ask(total{}, deadline::after(1h)).get();
  } catch (const future_error& e) {
    timed_out = e.why() == future_error::timed_out;
  }
  check(timed_out && seam::now() - began >= 1h, "an hour without an answer");
  go.set();
}

template <overflow Policy>
void what_a_full_mailbox_does_adds_up() {
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
    const auto count = [&](status how) {
      ok += how == status::ok ? 1 : 0;
      full += how == status::full ? 1 : 0;
      dropped += how == status::dropped ? 1 : 0;
    };
    for (int i = 0; i < 2; ++i) count(c.send(plus{1}));
    other.join();
    count(theirs);
    check(system.shutdown_within({}) == status::ok, "an end");
    lost = system.stats().dropped;
  }
  check(ok + full + dropped == 3, "ok, full or dropped");
  check(log.handled.load() + static_cast<int>(lost) + full == 3, "each to be in one of them");
  if (Policy == overflow::reject) check(lost == 0 && dropped == 0, "none to be dropped");
  if (Policy == overflow::block) check(ok == 3, "all to be let in");
}

void who_gave_up_waiting_for_room_sent_nothing() {
  journal log;
  event go;
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  auto c = system.spawn_with<counter>(bounded(1, overflow::block), &log);
  check(c.send(wait_for{&go}) == status::ok && c.send(plus{1}) == status::ok, "room");
  std::jthread opens([&] { go.set(); });
  const status how = c.try_send_for(plus{1}, 1s);
  check(how == status::ok || how == status::timed_out, "ok or timed out");
  opens.join();
  check(c.ask(total{}).get() == (how ? 2 : 1), "what was accepted, and nothing else");
}

task<status> sends(ref<counter> to, wait_limits limits) {
  plus one{1};  // named, for g++ 12
  const status how = co_await to.async_send(std::move(one), std::move(limits));
  co_return how;
}

void a_task_that_waits_for_room_is_let_in_or_stopped() {
  journal log;
  event go;
  thread_pool pool(small(1));
  thread_pool others(small(1));
  actor_system system(pool, quiet());
  auto c = system.spawn_with<counter>(bounded(1, overflow::block), &log);
  check(c.send(wait_for{&go}) == status::ok && c.send(plus{1}) == status::ok, "room");
  std::stop_source asks;
  auto sending = spawn(others, sends(c, wait_limits(asks.get_token())));
  std::jthread stops([&] { asks.request_stop(); });
  go.set();
  const status how = sending.get();
  check(how == status::ok || how == status::stopped, "ok or stopped");
  check(c.ask(total{}).get() == (how ? 2 : 1), "what was accepted, and nothing else");
}

void one_that_fails_is_made_anew_and_keeps_its_mailbox() {
  journal log;
  std::uint64_t restarts = 0;
  thread_pool pool(small(1));
  {
    actor_system system(pool, quiet());
    auto c = system.spawn<counter>(&log);
    std::jthread other([&] { check(c.send(plus{1}) == status::ok, "room"); });
    check(c.send(fall{}) == status::ok && c.send(plus{1}) == status::ok, "room");
    other.join();
    const int sum = c.ask(total{}).get();
    check(sum == 1 || sum == 2, "what came after it fell");
    restarts = system.stats().restarts;
  }
  check(log.handled.load() == 2 && restarts == 1, "no message but the one to be lost");
  check(log.made.load() == 2 && log.gone.load() == 2, "the old state and the new one to be gone");
}

void one_that_waits_to_be_made_anew_can_be_stopped() {
  journal log;
  auto o = quiet();
  o.top.backoff_first = 1min;
  thread_pool pool(small(1));
  actor_system system(pool, std::move(o));
  auto c = system.spawn<counter>(&log);
  check(c.send(fall{}) == status::ok, "room");
  std::jthread other([&] { c.stop(); });
  const auto end = c.ended().get();
  check(end.why == end_reason::stopped, "to have been stopped");
  check(c.is_over(), "to be over");
}

class watcher : public actor<watcher, other_ended, total> {
 public:
  explicit watcher(ref<counter> whom) {
    watch(whom, [](const actor_end&) { return other_ended{}; });
  }
  void on(other_ended) {
    ++told_;
    for (auto& each : waiting_) each.reply(told_);
    waiting_.clear();
  }
  void on(total, responder<int> to) {
    if (told_ > 0) return to.reply(told_);
    waiting_.push_back(std::move(to));
  }

 private:
  int told_ = 0;
  std::vector<responder<int>> waiting_;
};

void who_watches_hears_of_the_end_once() {
  journal log;
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  auto c = system.spawn<counter>(&log);
  std::jthread other([&] { c.stop(); });
  auto w = system.spawn<watcher>(c);
  check(w.ask(total{}).get() == 1, "the end, whether it came before or after");
  other.join();
  check(w.ask(total{}).get() == 1, "and only once");
}

class clockwork : public actor<clockwork, tick, total> {
 public:
  clockwork() : began_(seam::now()) { send_every(10min, tick{}); }
  void on(tick) {
    ++ticks_;
    check(seam::now() - began_ >= ticks_ * 10min, "none to come early");
    if (ticks_ < 6) return;
    for (auto& each : waiting_) each.reply(ticks_);
    stop_self();
  }
  void on(total, responder<int> to) { waiting_.push_back(std::move(to)); }

 private:
  const time_point began_;
  int ticks_ = 0;
  std::vector<responder<int>> waiting_;
};

void an_hour_of_ticks_passes_in_no_time() {
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  auto c = system.spawn<clockwork>();
  check(c.ask(total{}).get() == 6, "six of them in an hour");
}

// A coroutine in the middle of a message lets others in while it waits.
class patient : public actor<patient, wait_for, plus, total> {
 public:
  task<> on(wait_for m) {
    co_await letting_others_in(until(m.what));
    sum_.change() += 100;
  }
  void on(plus m) { sum_.change() += m.n; }
  int on(total) { return sum_.read(); }

 private:
  static task<> until(event* what) {
    const status how = co_await what->async_wait();
    check(how == status::ok || how == status::stopped, "ok or stopped");
  }
  shared<int> sum_{0};
};

void others_are_let_in_while_a_handler_waits() {
  event go;
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  auto p = system.spawn<patient>();
  check(p.send(wait_for{&go}) == status::ok && p.send(plus{1}) == status::ok, "room");
  std::jthread other([&] { go.set(); });
  const int seen = p.ask(total{}).get();
  check(seen == 1 || seen == 101, "others to be handled meanwhile");
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
    check(c.send(plus{1}) == status::ok, "room");
    other.join();
    check(c.ask(total{}).get() == 2, "both to be handled");
  }
  check(log.made.load() == log.gone.load(), "its state to be gone");
}

void a_shutdown_within_an_hour_stops_what_takes_longer() {
  event never;
  thread_pool pool(small(1));
  const auto began = seam::now();
  actor_system system(pool, quiet());
  auto p = system.spawn<patient>();
  check(p.send(wait_for{&never}) == status::ok, "room");
  check(system.shutdown_within(deadline::after(1h)) == status::timed_out, "that it timed out");
  check(seam::now() - began >= 1h, "it not to give up before");
  check(system.join() == status::ok && p.is_over(), "all to end after the hour");
}

// Its children end before it does, whatever they are at, and none is left.
class family : public actor<family, fall, total> {
 public:
  explicit family(journal* log) : log_(*log) {
    child_ = spawn<counter>(log);
    log_.made.fetch_add(1, relaxed);
  }
  ~family() { check(log_.gone.fetch_add(1) % 2 == 1, "the child to be gone before its parent"); }
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
  check(log.made.load() == 2 && log.gone.load() == 2, "both to be gone");
}

void who_looks_at_children_sees_those_that_are_there() {
  journal log;
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  auto f = system.spawn<family>(&log);
  std::jthread other([&] { f.stop(); });
  const std::vector<actor_child> seen = f.children();
  check(seen.size() <= 1, "no more than the one child");
  for (const actor_child& each : seen) check(each.who.id() == each.id, "the child itself");
  (void)f.ended().get();
  check(f.child_count() == 0, "nobody below one that has ended");
}

struct look_after {
  using reply = std::size_t;
};
struct give_child {
  using reply = ref<counter>;
};
// Answers when it hears that its child has ended: with how many it has then.
class nursery : public actor<nursery, look_after, give_child, other_ended> {
 public:
  explicit nursery(journal* log) : child_(spawn_with<counter>({.name = "child"}, log)) {}
  ref<counter> on(give_child) { return child_; }
  void on(look_after, responder<std::size_t> to) {
    to_ = std::move(to);
    watch(child_, [](const actor_end&) { return other_ended{}; });
  }
  void on(other_ended) { to_.reply(child_count()); }

 private:
  const ref<counter> child_;
  responder<std::size_t> to_;
};

void a_child_whose_end_its_parent_hears_of_is_there_no_more() {
  journal log;
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  auto n = system.spawn<nursery>(&log);
  auto child = n.ask(give_child{}).get();
  std::jthread other([&] { child.stop(); });
  check(n.ask(look_after{}).get() == 0, "no child, whenever it began to look");
}

void a_dead_letter_has_its_path_whoever_ends_first() {
  journal log;
  atomic<int> told{0};
  auto o = quiet();
  o.on_dead_letter = [&](const dead_letter& d) {
    check(d.path == "/nursery/child", "the names of both");
    told.fetch_add(1, relaxed);
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
  check(system.shutdown_within({}) == status::ok, "an end");
  check(log.handled.load() + told.load() == 2, "each message in one of them");
}

void a_child_that_keeps_failing_takes_its_parent_along() {
  journal log;
  auto o = quiet();
  o.top.what = directive::stop;
  thread_pool pool(small(2));
  {
    actor_system system(pool, std::move(o));
    actor_options strict;
    strict.children.what = directive::escalate;
    auto f = system.spawn_with<family>(strict, &log);
    check(f.send(fall{}) == status::ok, "room");
    std::jthread other([&] { (void)f.try_send(fall{}); });
    (void)f.ended().get();
  }
  check(log.made.load() == 2 && log.gone.load() == 2, "both to be gone, once");
}

void who_looks_on_sees_no_cycle_where_there_is_none() {
  journal log;
  actor_watch watch({.period = 0s});
  auto o = quiet();
  o.observer = &watch;
  thread_pool pool(small(1));
  actor_system system(pool, std::move(o));
  auto c = system.spawn_with<counter>(bounded(1, overflow::block), &log);
  std::jthread other([&] {
    check(c.send(plus{1}) == status::ok && c.ask(total{}).get() == 1, "what was sent before");
  });
  check(watch.find_cycles().empty() && watch.find_slow(1h).empty(), "nothing to be told of");
}

void a_ref_may_be_kept_when_the_system_is_gone() {
  journal log;
  thread_pool pool(small(1));
  std::optional<ref<counter>> kept;
  std::jthread other;
  {
    actor_system system(pool, quiet());
    auto c = system.spawn<counter>(&log);
    check(c.send(plus{1}) == status::ok, "room");
    kept = c;
    other = std::jthread([mine = c]() mutable { mine = ref<counter>(); });
  }
  check(kept->is_over(), "to be over");
}

[[maybe_unused]] const bool added =
    add({.name = "actor: two send and nothing overlaps",
         .how = {.schedules = 3'500},
         .body = &two_send_and_nothing_overlaps}) &&
    add({.name = "actor: what is sent while it stops is in one place",
         .how = {.schedules = 5'000},
         .body = &what_is_sent_while_it_stops_is_handled_or_a_dead_letter}) &&
    add({.name = "actor: what is in the mailbox of one that closes is handled",
         .how = {.schedules = 3'500},
         .body = &what_is_in_the_mailbox_of_one_that_closes_is_handled}) &&
    add({.name = "actor: an ask is answered or fails, and never hangs",
         .how = {.schedules = 3'500},
         .body = &an_ask_is_answered_or_fails_and_never_hangs}) &&
    add({.name = "actor: an ask that is stopped has one outcome",
         .how = {.schedules = 3'500},
         .body = &an_ask_that_is_stopped_has_one_outcome}) &&
    add({.name = "actor: an ask that runs out of time is told",
         .how = {.schedules = 1'000},
         .body = &an_ask_that_runs_out_of_time_is_told}) &&
    add({.name = "actor: a full mailbox that lets wait",
         .how = {.schedules = 2'500},
         .body = &what_a_full_mailbox_does_adds_up<overflow::block>}) &&
    add({.name = "actor: a full mailbox that rejects",
         .how = {.schedules = 2'500},
         .body = &what_a_full_mailbox_does_adds_up<overflow::reject>}) &&
    add({.name = "actor: a full mailbox that drops the newest",
         .how = {.schedules = 2'500},
         .body = &what_a_full_mailbox_does_adds_up<overflow::drop_newest>}) &&
    add({.name = "actor: a full mailbox that drops the oldest",
         .how = {.schedules = 2'500},
         .body = &what_a_full_mailbox_does_adds_up<overflow::drop_oldest>}) &&
    add({.name = "actor: a full mailbox that keeps the latest",
         .how = {.schedules = 2'500},
         .body = &what_a_full_mailbox_does_adds_up<overflow::latest>}) &&
    add({.name = "actor: who gave up waiting for room sent nothing",
         .how = {.schedules = 3'000},
         .body = &who_gave_up_waiting_for_room_sent_nothing}) &&
    add({.name = "actor: a task that waits for room is let in or stopped",
         .how = {.schedules = 3'000},
         .body = &a_task_that_waits_for_room_is_let_in_or_stopped}) &&
    add({.name = "actor: one that fails is made anew and keeps its mailbox",
         .how = {.schedules = 3'000},
         .body = &one_that_fails_is_made_anew_and_keeps_its_mailbox}) &&
    add({.name = "actor: one that waits to be made anew can be stopped",
         .how = {.schedules = 3'000},
         .body = &one_that_waits_to_be_made_anew_can_be_stopped}) &&
    add({.name = "actor: who watches hears of the end once",
         .how = {.schedules = 3'000},
         .body = &who_watches_hears_of_the_end_once}) &&
    add({.name = "actor: an hour of ticks passes in no time",
         .how = {.schedules = 1'000},
         .body = &an_hour_of_ticks_passes_in_no_time}) &&
    add({.name = "actor: others are let in while a handler waits",
         .how = {.schedules = 3'000},
         .body = &others_are_let_in_while_a_handler_waits}) &&
    add({.name = "actor: one with a thread of its own ends with the system",
         .how = {.schedules = 2'500},
         .body = &an_actor_with_a_thread_of_its_own_ends_with_the_system}) &&
    add({.name = "actor: a shutdown within an hour stops what takes longer",
         .how = {.schedules = 1'000, .early_timeouts = false},
         .body = &a_shutdown_within_an_hour_stops_what_takes_longer}) &&
    add({.name = "actor: children end before their parent",
         .how = {.schedules = 2'500},
         .body = &children_end_before_their_parent}) &&
    add({.name = "actor: who looks at children sees those that are there",
         .how = {.schedules = 2'500},
         .body = &who_looks_at_children_sees_those_that_are_there}) &&
    add({.name = "actor: a child whose end its parent hears of is there no more",
         .how = {.schedules = 2'500},
         .body = &a_child_whose_end_its_parent_hears_of_is_there_no_more}) &&
    add({.name = "actor: a dead letter has its path whoever ends first",
         .how = {.schedules = 2'500},
         .body = &a_dead_letter_has_its_path_whoever_ends_first}) &&
    add({.name = "actor: a child that fails takes its parent along",
         .how = {.schedules = 2'500},
         .body = &a_child_that_keeps_failing_takes_its_parent_along}) &&
    add({.name = "actor_watch: who looks on sees no cycle where there is none",
         .how = {.schedules = 2'000},
         .body = &who_looks_on_sees_no_cycle_where_there_is_none}) &&
    add({.name = "actor: a ref may be kept when the system is gone",
         .how = {.schedules = 3'000},
         .body = &a_ref_may_be_kept_when_the_system_is_gone});

}  // namespace
}  // namespace sluice::sim
