// The examples in the headers of actor/. Compiled, never run.
// clang-format off: they stand here as they do there.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/actor/actor.hpp"
#include "sluice/actor/actor_child.hpp"
#include "sluice/actor/actor_counters.hpp"
#include "sluice/actor/actor_error.hpp"
#include "sluice/actor/actor_options.hpp"
#include "sluice/actor/actor_pool.hpp"
#include "sluice/actor/actor_probe.hpp"
#include "sluice/actor/actor_registry.hpp"
#include "sluice/actor/actor_router.hpp"
#include "sluice/actor/actor_store.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/actor_test_kit.hpp"
#include "sluice/actor/actor_trace.hpp"
#include "sluice/actor/any_ref.hpp"
#include "sluice/actor/event_bus.hpp"
#include "sluice/actor/keyed_actor.hpp"
#include "sluice/actor/keyed_actors.hpp"
#include "sluice/actor/keyed_ref.hpp"
#include "sluice/actor/memory_actor_store.hpp"
#include "sluice/actor/message.hpp"
#include "sluice/actor/observer_list.hpp"
#include "sluice/actor/reentrant.hpp"
#include "sluice/actor/ref.hpp"
#include "sluice/actor/responder.hpp"
#include "sluice/actor/sqlite/sqlite_actor_store.hpp"
#include "sluice/actor/stall_detector.hpp"
#include "sluice/actor/supervision.hpp"
#include "sluice/executor/work_stealing_pool.hpp"

namespace header_examples::actors {

using namespace sluice;
using namespace std::chrono_literals;

template <class... Args>
int log(const Args&...) {
  return 0;
}
template <class... Args>
int use(const Args&...) {
  return 0;
}
void work();
void complain();
void reopen();
void slow_down();

struct add { int n; };
struct total { using reply = int; };
class counter : public actor<counter, add, total> {
 public:
  void on(add m) { sum_ += m.n; }
  int on(total) { return sum_; }
 private:
  int sum_ = 0;
};

namespace messages_of_a_counter {
struct add { int n; };
struct total { using reply = int; };
struct halt { static constexpr lane in_lane = lane::urgent; };
}  // namespace messages_of_a_counter

void first() {
  work_stealing_pool pool;
  actor_system system(pool);
  auto c = system.spawn<counter>();
  (void)c.send(add{2});
  std::printf("%d\n", c.ask(total{}).get());
}
void asks(const ref<counter>& counter) {
  if (!counter.try_send(add{2})) slow_down();
  int n = counter.ask(total{}, deadline::after(1s)).get();
}

struct done {};
class sums : public actor<sums, total, done> {
 public:
  void on(total, responder<int> asker) { waiting_.push_back(std::move(asker)); }
  void on(done) { for (auto& asker : waiting_) asker.reply(sum_); }

 private:
  int sum_ = 0;
  std::vector<responder<int>> waiting_;
};

void children(actor_system& system) {
  for (const actor_child& c : system.children())
    if (c.restarts > 3) std::printf("%s: %u restarts\n", c.name.c_str(), c.restarts);
}

void closes(const ref<counter>& parser, const ref<counter>& indexer) {
  std::vector<any_ref> workers{parser, indexer};
  for (const any_ref& each : workers) each.close();
}

struct balance { using reply = long; };
class account_actor : public actor<account_actor, balance> {
 public:
  long on(balance);
};
void errors(const ref<account_actor>& account) {
  try { use(account.ask(balance{}).get()); }
  catch (const actor_error& e) { if (e.why() == actor_error::terminated) reopen(); }
}

struct line { std::string text; };
class logger : public actor<logger, line> {
 public:
  logger() = default;
  explicit logger(std::string file);
  void on(line);
};
void named_ones(actor_system& system) {
  auto log = system.spawn_with<logger>({.name = "log", .mailbox = {.capacity = 64,
                                        .overflow = overflow::drop_oldest}}, "app.log");
}
struct begin {};
class boss : public actor<boss, begin> {
 public:
  void on(begin) {
    actor_options o;
    o.children = {.strategy = strategy::rest_for_one, .restarts_max = 3, .within = 5s};
    auto log = spawn_with<logger>({.name = "log", .kind = child_kind::permanent});
  }
};

// ---- many of one kind

struct query { using reply = int; std::string text; };
class connection : public actor<connection, query> {
 public:
  explicit connection(std::string name);
  int on(query);
};
void pools(actor_system& system) {
  actor_pool<connection> db(system, {.members_min = 1, .members_max = 16}, "dbname=shop");
  auto rows = db.ask(query{"select 1"}, deadline::after(2s)).get();
  log(db.stats().members, db.stats().grown, db.stats().drained);
}

struct picture_file {};
struct resize { picture_file file; int width; };
struct an_item {};
namespace desks {
struct price { using reply = int; an_item item; };
class resizer : public actor<resizer, resize, price> {
 public:
  explicit resizer(std::string folder);
  void on(resize);
  int on(price);
};
void routers(actor_system& system, picture_file picture, an_item item) {
  actor_router<resizer> desk(system, {.rule = routing::least_loaded, .members = 4}, "/tmp");
  (void)desk.send(resize{picture, 640});
  auto quote = desk.ask_first(price{item}, deadline::after(50ms)).get();
}
}  // namespace desks

class database : public actor<database, query> {
 public:
  int on(query);
};
task<> registries(const ref<logger>& log, std::stop_token stop) {
  actor_registry names;
  if (names.register_as("log", log) != registration::done) complain();
  if (auto log = names.find<logger>("log")) (void)log.send(line{"started"});
  auto db = names.wait_for<database>("db", {deadline::after(5s), stop});
  auto other = co_await names.async_wait_for<database>("db");
}

struct order_placed { int number; };
class desk : public actor<desk, order_placed> {
 public:
  void on(order_placed);
  void subscribes() {
    event_bus bus;
    auto subscription = bus.subscribe<order_placed>("orders.*", self());
    std::size_t accepted = bus.publish("orders.eu", order_placed{17});
    bus.unsubscribe(subscription);
  }
};

// ---- by key

struct say { std::string text; };
struct members { using reply = std::size_t; };
class room : public actor<room, say, members> {
 public:
  void on(say);
  std::size_t on(members);
  std::string save() const;
  void load(std::string_view bytes);
};
struct deposit { using reply = long; long n; };
class account : public keyed_actor<account, deposit> {
 public:
  task<long> on(deposit d) {          // struct deposit { using reply = long; long n; };
    balance_ += d.n;
    co_await save_now();
    co_return balance_;
  }
  std::string save() const;
  void load(std::string_view bytes);

 private:
  long balance_ = 0;
};
void accounts(keyed_actors<account>& all) { (void)all.of("anna").send(deposit{1}); }

void rooms_of(actor_system& system, actor_store& store) {
  keyed_actors<room> rooms(system, {.store = &store, .type = "room", .idle = 1min});
  (void)rooms.of("lobby").send(say{"hello"});
  system.of<room>("lobby")                    // the same
      .close();
}
task<> one_room(keyed_actors<room>& rooms) {
  keyed_ref<room> lobby = rooms.of("lobby");
  (void)lobby.send(say{"hello"});
  std::size_t n = co_await lobby.ask(members{});
}
void in_memory(actor_system& system) {
  memory_actor_store store;
  keyed_actors<room> rooms(system, {.store = &store});
}
void in_a_file(actor_system& system) {
  sqlite_actor_store store("entities.db");
  keyed_actors<room> rooms(system, {.store = &store, .type = "room"});
}
void by_hand(actor_store& store) {
  std::optional<std::string> s = store.load("room", "lobby").get();
}

// ---- coroutines

struct refresh {};
struct get { using reply = std::string; };
future<std::string> fetch(const std::string& url);
class cache : public actor<cache, refresh, get> {
 public:
  task<> on(refresh) {
    auto page = co_await reentrant(fetch(url_));   // get(), put() are served meanwhile
    cache_ = std::move(page);
  }
  std::string on(get) { return cache_; }

 private:
  std::string url_;
  std::string cache_;
};

// ---- seeing and testing

void counted(executor& pool) {
  actor_counters counters;
  actor_system system(pool, {.observer = &counters});
  work();
  std::cout << counters.read(system).top(10, actor_order::handler_time).table();
}
void traced(executor& pool, std::ofstream& file) {
  actor_trace trace;
  actor_system system(pool, {.observer = &trace});
  trace.start();
  work();
  trace.stop();
  std::cout << trace.mermaid();          // in a ```mermaid block
  file << trace.chrome_json();           // for chrome://tracing or ui.perfetto.dev
}
void watched(executor& pool) {
  stall_detector detector({.slow_after = 5s,
                           .on_slow = [](const slow_handler& s) { log(s.text()); },
                           .on_cycle = [](const actor_cycle& c) { log(c.text()); }});
  actor_system system(pool, {.observer = &detector});
}
void both(executor& pool) {
  actor_trace trace;
  actor_counters counters;
  observer_list seen({&trace, &counters});
  actor_system system(pool, {.observer = &seen});
}

struct opened {};
struct closed {};
struct price { using reply = int; std::string of; };
void probes(actor_test_kit& kit) {
  actor_probe<opened, price> shop(kit);                 // struct price { using reply = int; }
  auto answer = shop.ref().ask(price{"tea"});
  EXPECT_EQ(shop.expect<price>().of, "tea");
  shop.reply<price>(3);
  shop.expect_no_message();
}

struct open { recipient<opened> visitor; };
class door_actor : public actor<door_actor, open> {
 public:
  explicit door_actor(std::chrono::seconds closes_after);
  void on(open);
};
void doors() {
  actor_test_kit kit;
  auto door = kit.spawn<door_actor>(5s);
  actor_probe<opened, closed> hall(kit);
  (void)door.send(open{hall.ref()});
  hall.expect<opened>();
  kit.advance(5s);
  hall.expect<closed>();
}

}  // namespace header_examples::actors
