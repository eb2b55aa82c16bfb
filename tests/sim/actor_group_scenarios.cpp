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
#include "sluice/base/race_checked.hpp"
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
  event* signal;
};

class counter : public actor<counter, plus, total, wait_for> {
 public:
  explicit counter(atomic<int>* handled) : handled_(*handled) {}
  void on(plus m) {
    sum_.change() += m.n;
    handled_.fetch_add(1, relaxed);
  }
  int on(total) { return sum_.read(); }
  void on(wait_for m) { m.signal->wait(); }

 private:
  atomic<int>& handled_;
  race_checked<int> sum_{0};
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
void each_message_is_handled_by_one_member() {
  atomic<int> handled{0};
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  actor_router<counter> desk(system, {.rule = Rule, .members = 2}, &handled);
  std::jthread other([&] { check(desk.send(plus{1}) == status::ok, "capacity"); });
  for (const int i : {2, 3}) check(desk.send(plus{i}) == status::ok, "capacity");
  other.join();
  desk.close();
  (void)desk.ended().get();
  check(handled.load() == 3, "every message to be handled once");
}

void a_broadcast_is_handled_by_each_member() {
  atomic<int> handled{0};
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  actor_router<counter> desk(system, {.members = 2}, &handled);
  std::size_t theirs = 0;
  std::jthread other([&] { theirs = desk.broadcast(plus{1}); });
  const std::size_t ours = desk.broadcast(plus{2});
  other.join();
  desk.close();
  (void)desk.ended().get();
  check(ours == 2 && theirs == 2 && handled.load() == 4, "two messages for each of two members");
}

// Messages are rejected or accepted, and none is lost, while one member ends and is replaced.
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
  check(ok == 2, "a member to accept the messages eventually");
  desk.close();
  (void)desk.ended().get();
  check(handled.load() == 2, "every message to be handled, by the old or the new member");
}

void a_stopping_router_rejects_messages() {
  atomic<int> handled{0};
  int ok = 0;
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  actor_router<counter> desk(system, {.members = 2}, &handled);
  std::jthread other([&] {
    for (int i = 0; i < 2; ++i) {
      const status outcome = desk.send(plus{1});
      check(outcome == status::ok || outcome == status::closed, "ok or closed");
      if (outcome) ++ok;
    }
  });
  desk.stop();
  other.join();
  (void)desk.ended().get();
  check(handled.load() <= ok, "no rejected message to be handled");
}

// One member is blocked: another is added because of the load, and wakes the first.
void a_pool_grows_when_messages_queue_up() {
  atomic<int> handled{0};
  event go;
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  actor_pool<counter> desk(
      system, {.members_min = 1, .members_max = 2, .grow_at = 1, .idle_for = 1min}, &handled);
  check(desk.send(wait_for{&go}) == status::ok, "capacity");
  for (int i = 0; i < 2; ++i) check(desk.send(plus{1}) == status::ok, "capacity");
  go.set();
  std::this_thread::sleep_for(1h);
  check(handled.fetch_add(0) == 2, "all to be handled");
  check(desk.stats().members == 1, "one member after the idle time");
}

class tally : public keyed_actor<tally, plus, total> {
 public:
  void on(plus m) { sum_.change() += m.n; }
  int on(total) { return sum_.read(); }
  std::string save() const { return std::to_string(sum_.read()); }
  void load(std::string_view bytes) { sum_.write(std::stoi(std::string(bytes))); }

 private:
  race_checked<int> sum_{0};
};

keyed_options in(memory_actor_store& store) {
  keyed_options o;
  o.store = &store;
  o.type = "tally";
  o.on_failure = [](const keyed_failure&) { check(false, "no failure of the store"); };
  return o;
}

void messages_of_one_key_reach_one_actor() {
  memory_actor_store store;
  thread_pool pool(small(2));
  actor_system system(pool, quiet());
  auto o = in(store);
  o.idle = 0s;  // it is never passivated
  keyed_actors<tally> tallies(system, std::move(o));
  std::jthread other([&] { check(tallies.of("a").send(plus{1}) == status::ok, "capacity"); });
  check(tallies.of("a").send(plus{2}) == status::ok, "capacity");
  other.join();
  check(tallies.of("a").ask(total{}).get() == 3, "both messages at one actor");
  check(tallies.stats().loads == 1, "one actor");
}

void accepted_messages_survive_passivation() {
  memory_actor_store store;
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  auto o = in(store);
  o.idle = 1min;
  keyed_actors<tally> tallies(system, std::move(o));
  check(tallies.of("a").send(plus{1}) == status::ok, "capacity");
  std::jthread other([&] {
    std::this_thread::sleep_for(1min);
    check(tallies.of("a").send(plus{2}) == status::ok, "capacity");
  });
  std::this_thread::sleep_for(2min);
  check(tallies.of("a").send(plus{4}) == status::ok, "capacity");
  other.join();
  check(tallies.of("a").ask(total{}).get() == 7, "no message lost by passivation");
}

void more_keys_than_the_capacity_are_served_in_turn() {
  memory_actor_store store;
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  auto o = in(store);
  o.live_max = 1;
  o.live_limit = 1;
  keyed_actors<tally> tallies(system, std::move(o));
  std::jthread other([&] { check(tallies.of("a").send(plus{1}) == status::ok, "its result"); });
  check(tallies.of("b").send(plus{2}) == status::ok, "its result");
  other.join();
  check(tallies.of("a").ask(total{}).get() == 1, "the message to the first key");
  check(tallies.of("b").ask(total{}).get() == 2, "the message to the second key");
}

void close_saves_all_actors() {
  memory_actor_store store;
  thread_pool pool(small(1));
  bool ok = false;
  {
    actor_system system(pool, quiet());
    keyed_actors<tally> tallies(system, in(store));
    check(tallies.of("a").send(plus{1}) == status::ok, "capacity");
    std::jthread other([&] { ok = static_cast<bool>(tallies.of("a").send(plus{2})); });
    tallies.close();
    other.join();
    (void)tallies.ended().get();
  }
  const auto saved = store.load("tally", "a").get();
  check(saved == (ok ? "3" : "1"), "the accepted messages to be saved");
}

void a_forgotten_key_restarts() {
  memory_actor_store store;
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  keyed_actors<tally> tallies(system, in(store));
  check(tallies.of("a").send(plus{1}) == status::ok, "capacity");
  std::jthread other([&] { check(tallies.of("a").send(plus{2}) == status::ok, "capacity"); });
  tallies.forget("a").get();
  other.join();
  const int sum = tallies.of("a").ask(total{}).get();
  check(sum == 0 || sum == 2, "the first message forgotten, the second depending on its order");
}

void a_waiter_finds_a_name() {
  atomic<int> handled{0};
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  actor_registry names;
  auto c = system.spawn<counter>(&handled);
  std::jthread other(
      [&] { check(names.register_as("c", c) == registration::done, "a free name"); });
  const auto found = names.wait_for<counter>("c", deadline::after(1s));
  other.join();
  check(found ? *found == c : found.status() == status::timed_out, "the actor, or a time-out");
  c.stop();
  (void)c.ended().get();
}

void a_publication_reaches_subscribers() {
  atomic<int> handled{0};
  thread_pool pool(small(1));
  actor_system system(pool, quiet());
  event_bus bus;
  auto c = system.spawn<counter>(&handled);
  const auto subscription = bus.subscribe<plus>("orders.*", c);
  std::size_t accepted = 0;
  std::jthread other([&] { accepted = bus.publish("orders.eu", plus{1}); });
  const bool was_there = bus.unsubscribe(subscription);
  other.join();
  c.close();
  (void)c.ended().get();
  check(was_there && handled.load() == static_cast<int>(accepted),
        "the accepted messages to be handled");
}

[[maybe_unused]] const bool added =
    add({.name = "actor_router: in turn, each message is handled by one member",
         .options = {.schedules = 2'000},
         .body = &each_message_is_handled_by_one_member<routing::round_robin>}) &&
    add({.name = "actor_router: by load, each message is handled by one member",
         .options = {.schedules = 2'000},
         .body = &each_message_is_handled_by_one_member<routing::least_loaded>}) &&
    add({.name = "actor_router: by key, each message is handled by one member",
         .options = {.schedules = 2'000},
         .body = &each_message_is_handled_by_one_member<routing::by_key>}) &&
    add({.name = "actor_router: a broadcast is handled by each member",
         .options = {.schedules = 2'000},
         .body = &a_broadcast_is_handled_by_each_member}) &&
    add({.name = "actor_router: a member that ended is replaced",
         .options = {.schedules = 2'500},
         .body = &a_member_that_ended_is_replaced}) &&
    add({.name = "actor_router: a stopping router rejects messages",
         .options = {.schedules = 2'500},
         .body = &a_stopping_router_rejects_messages}) &&
    add({.name = "actor_pool: it grows when messages queue up, and shrinks",
         .options = {.schedules = 1'000, .early_timeouts = false},
         .body = &a_pool_grows_when_messages_queue_up}) &&
    add({.name = "keyed_actors: messages of one key reach one actor",
         .options = {.schedules = 2'500},
         .body = &messages_of_one_key_reach_one_actor}) &&
    add({.name = "keyed_actors: accepted messages survive passivation",
         .options = {.schedules = 2'500},
         .body = &accepted_messages_survive_passivation}) &&
    add({.name = "keyed_actors: more keys than the capacity are served in turn",
         .options = {.schedules = 2'500},
         .body = &more_keys_than_the_capacity_are_served_in_turn}) &&
    add({.name = "keyed_actors: close saves all actors",
         .options = {.schedules = 2'500},
         .body = &close_saves_all_actors}) &&
    add({.name = "keyed_actors: a forgotten key restarts",
         .options = {.schedules = 2'500},
         .body = &a_forgotten_key_restarts}) &&
    add({.name = "actor_registry: a waiter finds a name",
         .options = {.schedules = 2'000},
         .body = &a_waiter_finds_a_name}) &&
    add({.name = "event_bus: a publication reaches subscribers",
         .options = {.schedules = 2'000},
         .body = &a_publication_reaches_subscribers});

}  // namespace
}  // namespace sluice::sim
