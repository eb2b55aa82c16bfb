#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "sluice/actor/actor.hpp"
#include "sluice/actor/actor_error.hpp"
#include "sluice/actor/actor_pool.hpp"
#include "sluice/actor/actor_registry.hpp"
#include "sluice/actor/actor_router.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/event_bus.hpp"
#include "sluice/actor/keyed_actor.hpp"
#include "sluice/actor/keyed_actors.hpp"
#include "sluice/actor/memory_actor_store.hpp"
#include "sluice/base/shared.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;

struct plus {
  int n;
  int key() const { return n; }
};
struct total {
  using reply = int;
};
struct wait_for {
  event* what;
};

class counter : public actor<counter, plus, total, wait_for> {
 public:
  explicit counter(atomic<int>* handled) : handled_(*handled) {}
  void on(plus m) {
    sum_.change() += m.n;
    handled_.fetch_add(1, relaxed);
  }
  int on(total) { return sum_.read(); }
  void on(wait_for m) { m.what->wait(); }

 private:
  atomic<int>& handled_;
  shared<int> sum_{0};
};

thread_pool::options small(std::size_t threads) {
  return {.core = threads, .capacity = 4, .time_every = 0};
}
actor_system::options quiet() {
  actor_system::options o;
  o.on_failure = [](const actor_failure&) {};
  return o;
}

template <routing Rule>
void what_is_sent_to_several_is_handled_by_one() {
  atomic<int> handled{0};
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  actor_router<counter> desk(system, {.rule = Rule, .members = 2}, &handled);
  std::jthread other([&] { check(desk.send(plus{1}) == status::ok, "room"); });
  for (const int i : {2, 3}) check(desk.send(plus{i}) == status::ok, "room");
  other.join();
  desk.close();
  (void)desk.ended().get();
  check(handled.load() == 3, "each to be handled once");
}

void what_is_told_to_all_is_handled_by_each() {
  atomic<int> handled{0};
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  actor_router<counter> desk(system, {.members = 2}, &handled);
  std::size_t theirs = 0;
  std::jthread other([&] { theirs = desk.broadcast(plus{1}); });
  const std::size_t mine = desk.broadcast(plus{2});
  other.join();
  desk.close();
  (void)desk.ended().get();
  check(mine == 2 && theirs == 2 && handled.load() == 4, "two by each of the two");
}

// Refused or accepted, and nothing of it is lost, while one member ends and is replaced.
void a_member_that_ended_is_replaced() {
  atomic<int> handled{0};
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  actor_router<counter> desk(system, {.members = 1}, &handled);
  const auto first = desk.members().at(0);
  std::jthread other([&] { first.close(); });
  int ok = 0;
  for (int i = 0; i < 2; ++i) {
    if (desk.send(plus{1})) ++ok;
  }
  other.join();
  check(ok == 2, "somebody to be there, sooner or later");
  desk.close();
  (void)desk.ended().get();
  check(handled.load() == 2, "each to be handled, by the old one or the new one");
}

void a_router_that_stops_tells_who_sends() {
  atomic<int> handled{0};
  int ok = 0;
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  actor_router<counter> desk(system, {.members = 2}, &handled);
  std::jthread other([&] {
    for (int i = 0; i < 2; ++i) {
      const status how = desk.send(plus{1});
      check(how == status::ok || how == status::closed, "ok or closed");
      if (how) ++ok;
    }
  });
  desk.stop();
  other.join();
  (void)desk.ended().get();
  check(handled.load() <= ok, "none that was refused to be handled");
}

// One member is held up: the other comes because of the load, and does what wakes the first.
void a_pool_grows_when_messages_queue_up() {
  atomic<int> handled{0};
  event go;
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  actor_pool<counter> desk(
      system, {.members_min = 1, .members_max = 2, .grow_at = 1, .idle_for = 1min}, &handled);
  check(desk.send(wait_for{&go}) == status::ok, "room");
  for (int i = 0; i < 2; ++i) check(desk.send(plus{1}) == status::ok, "room");
  go.set();
  std::this_thread::sleep_for(1h);
  check(handled.fetch_add(0) == 2, "all to be handled");
  check(desk.stats().members == 1, "it to have shrunk after its time");
}

class tally : public keyed_actor<tally, plus, total> {
 public:
  void on(plus m) { sum_.change() += m.n; }
  int on(total) { return sum_.read(); }
  std::string save() const { return std::to_string(sum_.read()); }
  void load(std::string_view bytes) { sum_.write(std::stoi(std::string(bytes))); }

 private:
  shared<int> sum_{0};
};

keyed_options in(memory_actor_store& store) {
  keyed_options o;
  o.store = &store;
  o.type = "tally";
  o.on_failure = [](const keyed_failure&) { check(false, "no failure of the store"); };
  return o;
}

void two_of_one_key_meet_one_actor() {
  memory_actor_store store;
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  auto o = in(store);
  o.idle = 0s;  // it never rests
  keyed_actors<tally> tallies(system, std::move(o));
  std::jthread other([&] { check(tallies.of("a").send(plus{1}) == status::ok, "room"); });
  check(tallies.of("a").send(plus{2}) == status::ok, "room");
  other.join();
  check(tallies.of("a").ask(total{}).get() == 3, "both to have come to the same one");
  check(tallies.stats().loads == 1, "one to have been made");
}

void what_was_accepted_outlives_a_rest() {
  memory_actor_store store;
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  auto o = in(store);
  o.idle = 1min;
  keyed_actors<tally> tallies(system, std::move(o));
  check(tallies.of("a").send(plus{1}) == status::ok, "room");
  std::jthread other([&] {
    std::this_thread::sleep_for(1min);
    check(tallies.of("a").send(plus{2}) == status::ok, "room");
  });
  std::this_thread::sleep_for(2min);
  check(tallies.of("a").send(plus{4}) == status::ok, "room");
  other.join();
  check(tallies.of("a").ask(total{}).get() == 7, "nothing to be lost to its rests");
}

void more_keys_than_may_live_take_turns() {
  memory_actor_store store;
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  auto o = in(store);
  o.live_max = 1;
  o.live_limit = 1;
  keyed_actors<tally> tallies(system, std::move(o));
  std::jthread other([&] { check(tallies.of("a").send(plus{1}) == status::ok, "its turn"); });
  check(tallies.of("b").send(plus{2}) == status::ok, "its turn");
  other.join();
  check(tallies.of("a").ask(total{}).get() == 1, "what was sent to the one");
  check(tallies.of("b").ask(total{}).get() == 2, "what was sent to the other");
}

void all_are_saved_when_it_closes() {
  memory_actor_store store;
  thread_pool pool(small(1));
  bool ok = false;
  {
    actor_system system(pool, quiet());
    keyed_actors<tally> tallies(system, in(store));
    check(tallies.of("a").send(plus{1}) == status::ok, "room");
    std::jthread other([&] { ok = static_cast<bool>(tallies.of("a").send(plus{2})); });
    tallies.close();
    other.join();
    (void)tallies.ended().get();
  }
  const auto saved = store.load("tally", "a").get();
  check(saved == (ok ? "3" : "1"), "what was accepted to have been saved");
}

void what_is_forgotten_begins_anew() {
  memory_actor_store store;
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  keyed_actors<tally> tallies(system, in(store));
  check(tallies.of("a").send(plus{1}) == status::ok, "room");
  std::jthread other([&] { check(tallies.of("a").send(plus{2}) == status::ok, "room"); });
  tallies.forget("a").get();
  other.join();
  const int sum = tallies.of("a").ask(total{}).get();
  check(sum == 0 || sum == 2, "the first to be forgotten, the other by when it came");
}

void a_name_is_found_by_who_waits_for_it() {
  atomic<int> handled{0};
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  actor_registry names;
  auto c = system.spawn<counter>(&handled);
  std::jthread other(
      [&] { check(names.register_as("c", c) == registration::done, "a free name"); });
  const auto found = names.wait_for<counter>("c", deadline::after(1s));
  other.join();
  check(found ? *found == c : found.status() == status::timed_out, "it, or timed out");
  c.stop();
  (void)c.ended().get();
}

void a_publication_comes_to_who_has_subscribed() {
  atomic<int> handled{0};
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  event_bus bus;
  auto c = system.spawn<counter>(&handled);
  const auto mine = bus.subscribe<plus>("orders.*", c);
  std::size_t told = 0;
  std::jthread other([&] { told = bus.publish("orders.eu", plus{1}); });
  const bool was_there = bus.unsubscribe(mine);
  other.join();
  c.close();
  (void)c.ended().get();
  check(was_there && handled.load() == static_cast<int>(told), "what was accepted to be handled");
}

[[maybe_unused]] const bool added =
    add({.name = "actor_router: in turn, each is handled by one",
         .how = {.schedules = 2'000},
         .body = &what_is_sent_to_several_is_handled_by_one<routing::round_robin>}) &&
    add({.name = "actor_router: by load, each is handled by one",
         .how = {.schedules = 2'000},
         .body = &what_is_sent_to_several_is_handled_by_one<routing::least_loaded>}) &&
    add({.name = "actor_router: by key, each is handled by one",
         .how = {.schedules = 2'000},
         .body = &what_is_sent_to_several_is_handled_by_one<routing::by_key>}) &&
    add({.name = "actor_router: what is told to all is handled by each",
         .how = {.schedules = 2'000},
         .body = &what_is_told_to_all_is_handled_by_each}) &&
    add({.name = "actor_router: a member that ended is replaced",
         .how = {.schedules = 2'500},
         .body = &a_member_that_ended_is_replaced}) &&
    add({.name = "actor_router: one that stops tells who sends",
         .how = {.schedules = 2'500},
         .body = &a_router_that_stops_tells_who_sends}) &&
    add({.name = "actor_pool: it grows when messages queue up, and shrinks",
         .how = {.schedules = 1'000, .early_timeouts = false},
         .body = &a_pool_grows_when_messages_queue_up}) &&
    add({.name = "keyed_actors: two of one key meet one actor",
         .how = {.schedules = 2'500},
         .body = &two_of_one_key_meet_one_actor}) &&
    add({.name = "keyed_actors: what was accepted outlives a rest",
         .how = {.schedules = 2'500},
         .body = &what_was_accepted_outlives_a_rest}) &&
    add({.name = "keyed_actors: more keys than may live take turns",
         .how = {.schedules = 2'500},
         .body = &more_keys_than_may_live_take_turns}) &&
    add({.name = "keyed_actors: all are saved when it closes",
         .how = {.schedules = 2'500},
         .body = &all_are_saved_when_it_closes}) &&
    add({.name = "keyed_actors: what is forgotten begins anew",
         .how = {.schedules = 2'500},
         .body = &what_is_forgotten_begins_anew}) &&
    add({.name = "actor_registry: a name is found by who waits for it",
         .how = {.schedules = 2'000},
         .body = &a_name_is_found_by_who_waits_for_it}) &&
    add({.name = "event_bus: a publication comes to who has subscribed",
         .how = {.schedules = 2'000},
         .body = &a_publication_comes_to_who_has_subscribed});

}  // namespace
}  // namespace sluice::sim
