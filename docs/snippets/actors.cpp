// The snippets of docs/concepts/actors.md, and the actor of the README.
#include <chrono>
#include <cstdio>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sluice/actor/actor_probe.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/actor_test_kit.hpp"
#include "sluice/actor/reentrant.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/promise.hpp"

using namespace std::chrono_literals;
using sluice::actor;
using sluice::deadline;
using sluice::ref;
using sluice::responder;
using sluice::status;
using sluice::task;

namespace {

void say_busy() {}

// ---- an actor

struct deposit {
  int cents;
};
struct balance {
  using reply = int;
};

class account : public sluice::actor<account, deposit, balance> {
 public:
  void on(deposit d) { cents_ += d.cents; }
  int on(balance) { return cents_; }

 private:
  int cents_ = 0;  // private to this actor: no lock
};

bool an_account() {
  sluice::work_stealing_pool pool;
  sluice::actor_system system(pool);

  auto ann = system.spawn<account>();
  if (!ann.try_send(deposit{500})) say_busy();
  int cents = ann.ask(balance{}, deadline::after(1s)).get();
  return cents == 500;
}

// ---- a full mailbox

int answer_to(const ref<account>& ann, deposit d) {
  switch (ann.send(d, 20ms)) {
    case status::ok:
      return 202;  // it is in the mailbox
    case status::closed:
      return 410;  // the actor has ended; a dead letter was counted
    default:
      return 503;  // still full after 20 ms
  }
}

struct price {
  int cents;
};

class display : public actor<display, price> {
 public:
  explicit display(std::vector<int>& shown) : shown_(shown) {}
  void on(price p) { shown_.push_back(p.cents); }

 private:
  std::vector<int>& shown_;
};

bool full_mailboxes() {
  sluice::manual_executor here;
  sluice::actor_system system(here);
  std::vector<int> shown;

  auto screen = system.spawn_with<display>(
      {.name = "screen", .mailbox = {.capacity = 1, .overflow = sluice::overflow::latest}},
      std::ref(shown));

  for (int cents = 1; cents <= 10; ++cents) (void)screen.send(price{cents});
  auto slow = system.spawn_with<account>({.mailbox = {.capacity = 1}});
  const bool answered = answer_to(slow, {1}) == 202 && answer_to(slow, {1}) == 503;
  here.run_all();
  system.stop();
  here.run_all();
  return answered && answer_to(slow, {1}) == 410 && shown == std::vector{10};
}

// ---- two actors that ask each other

struct stock {
  using reply = int;
};
struct discount {
  using reply = int;
};
struct offer {
  using reply = int;
};

class store : public actor<store, stock> {
 public:
  explicit store(sluice::recipient<discount> shop) : shop_(std::move(shop)) {}
  task<int> on(stock) {
    auto asked = shop_.ask(discount{}, 1s).recover([](const sluice::future_error&) { return 0; });
    const int off = co_await std::move(asked);
    co_return 100 - off;
  }

 private:
  sluice::recipient<discount> shop_;
};

class shop : public actor<shop, offer, discount> {
 public:
  shop() : store_(spawn_with<store>({.name = "store"}, self())) {}
  int on(discount) { return 10; }
  task<int> on(offer) {
    auto asked = store_.ask(stock{}, 1s);
    // `discount` is handled meanwhile.
    const int cents = co_await sluice::reentrant(std::move(asked));
    co_return cents;
  }

 private:
  ref<store> store_;
};

bool they_ask_each_other() {
  sluice::work_stealing_pool pool;
  sluice::actor_system system(pool);
  const auto front = system.spawn<shop>();
  return front.ask(offer{}, 10s).get() == 90;
}

// ---- replying later, and forwarding

struct next_number {
  using reply = int;
};
struct number {
  int value;
};

// Hands out numbers as they arrive; early requests wait.
class dispenser : public actor<dispenser, next_number, number> {
 public:
  void on(next_number, responder<int> asker) {
    waiting_.push_back(std::move(asker));
    match();
  }
  void on(number n) {
    ready_.push_back(n.value);
    match();
  }

 private:
  void match() {
    while (!waiting_.empty() && !ready_.empty()) {
      responder<int> asker = std::move(waiting_.front());
      waiting_.pop_front();
      if (!asker.is_wanted()) continue;  // the asker has given up meanwhile
      asker.reply(ready_.front());
      ready_.pop_front();
    }
  }

  std::deque<responder<int>> waiting_;
  std::deque<int> ready_;
};

// A gateway: keeps nothing and never waits.
class reception : public actor<reception, next_number> {
 public:
  explicit reception(ref<dispenser> behind) : behind_(std::move(behind)) {}
  void on(next_number m, responder<int> asker) { (void)forward(behind_, m, std::move(asker)); }

 private:
  const ref<dispenser> behind_;
};

bool answers() {
  sluice::work_stealing_pool pool({.threads = 2});
  sluice::actor_system system(pool);
  const auto numbers = system.spawn<dispenser>();
  const auto door = system.spawn<reception>(numbers);
  auto first = door.ask(next_number{});
  if (!numbers.send(number{7})) return false;
  return first.get() == 7;
}

// ---- coroutines

struct get {
  using reply = std::string;
  std::string url;
};
struct count {
  using reply = std::size_t;
};

class cache : public actor<cache, get, count> {
 public:
  using source = std::function<sluice::future<std::string>(std::string)>;
  explicit cache(source fetch) : fetch_(std::move(fetch)) {}

  task<std::string> on(get m) {
    const auto known = pages_.find(m.url);
    if (known != pages_.end()) co_return known->second;
    auto page = co_await reentrant(fetch_(m.url));  // others are served meanwhile
    pages_[m.url] = page;                           // `known` is out of date by now
    co_return page;
  }
  std::size_t on(count) { return pages_.size(); }

 private:
  const source fetch_;
  std::map<std::string, std::string> pages_;
};

bool coroutines() {
  sluice::work_stealing_pool pool({.threads = 2});
  sluice::actor_system system(pool);
  sluice::promise<std::string> page;
  const auto pages = system.spawn<cache>([&](const std::string&) { return page.get_future(); });
  auto body = pages.ask(get{"/index"});
  const bool served_meanwhile = pages.ask(count{}).get() == 0;
  page.set_value("hello");
  return served_meanwhile && body.get() == "hello" && pages.ask(count{}).get() == 1;
}

// ---- supervision

struct bad_request : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct parse {
  std::string text;
};
struct parsed {
  using reply = int;
};

class parser : public actor<parser, parse, parsed> {
 public:
  void on(const parse& m) {
    if (m.text.empty()) throw bad_request("nothing to parse");
    if (m.text == "?") throw std::runtime_error("lost its way");
    ++count_;
  }
  int on(parsed) { return count_; }

 private:
  int count_ = 0;
};

struct parser_is_gone {
  std::string name;
};
struct ask_child {
  using reply = ref<parser>;
};

class front : public actor<front, ask_child, parser_is_gone> {
 public:
  explicit front(std::string& log) : log_(log), child_(spawn_with<parser>({.name = "parser"})) {
    watch(child_, [](const sluice::actor_end& e) { return parser_is_gone{e.name}; });
  }
  ref<parser> on(ask_child) { return child_; }
  void on(const parser_is_gone& m) { log_ += m.name + " is gone"; }

  static sluice::actor_options options() {
    sluice::actor_options o;
    o.children = {.restarts_max = 3, .within = 5s, .backoff_first = 10ms};
    o.children.decide = [](const std::exception_ptr& why) {
      try {
        std::rethrow_exception(why);
      } catch (const bad_request&) {
        return sluice::directive::resume;  // only the message was bad
      } catch (...) {
        return sluice::directive::restart;
      }
    };
    return o;
  }

 private:
  std::string& log_;
  const ref<parser> child_;
};

bool supervision() {
  std::string log;
  sluice::manual_clock clock;
  sluice::manual_executor here;
  sluice::actor_system system(here,
                              {.time = &clock, .on_failure = [](const sluice::actor_failure&) {}});
  const auto top = system.spawn_with<front>(front::options(), std::ref(log));
  auto asked = top.ask(ask_child{});
  here.run_all();
  const ref<parser> child = asked.get();

  bool ok = child.send(parse{"a"}) && child.send(parse{""}) && child.send(parse{"b"});
  auto resumed = child.ask(parsed{});
  here.run_all();
  ok = ok && resumed.get() == 2;  // its state is unchanged

  ok = ok && child.send(parse{"?"}) && child.send(parse{"c"});
  auto anew = child.ask(parsed{});
  here.run_all();
  ok = ok && !anew.is_ready();  // the restart is delayed by 10 ms
  clock.advance(10ms);
  here.run_all();
  ok = ok && anew.get() == 1;  // same mailbox, new state

  std::string seen;
  for (const sluice::actor_child& each : top.children()) {
    seen += each.name + " is " + std::string(to_string(each.state));
    if (each.restarts > 0) each.actor.close();
  }
  here.run_all();
  ok = ok && seen == "parser is running" && log == "parser is gone";
  system.stop();
  here.run_all();
  return ok;
}

class office : public actor<office, ask_child> {
 public:
  office() {
    parser_ = spawn_with<parser>({.name = "parser", .kind = sluice::child_kind::permanent});
  }
  ref<parser> on(ask_child) { return parser_; }

 private:
  ref<parser> parser_;
};

bool kinds() {
  sluice::manual_executor here;
  sluice::actor_system system(here, {.on_failure = [](const sluice::actor_failure&) {}});
  const auto top = system.spawn<office>();
  auto asked = top.ask(ask_child{});
  here.run_all();
  const ref<parser> child = asked.get();
  bool ok = static_cast<bool>(child.send(parse{"a"}));
  here.run_all();
  child.stop();
  auto anew = child.ask(parsed{});
  here.run_all();
  ok = ok && anew.get() == 0;  // it was restarted
  system.stop();
  here.run_all();
  return ok && child.is_terminated();
}

// ---- timers, futures, become

struct connect {};
struct connected {
  int socket;
};
struct give_up {};
struct write {
  using reply = int;
  std::string text;
};

class link_to_server : public actor<link_to_server, connect, connected, give_up, write> {
 public:
  explicit link_to_server(sluice::executor& dials) : dials_(dials) {}

  void on(connect) {
    limit_ = send_after(5s, give_up{});
    pipe(async(dials_, [] { return 3; }), [](int socket) { return connected{socket}; });
  }
  void on(connected c) {
    (void)cancel(limit_);
    become([this, c](const write& w) { return send_to(c.socket, w.text); });
    unstash_all();  // stashed requests go first
  }
  void on(give_up) { stop_self(); }
  // Before there is a connection.
  void on(write w, responder<int> asker) {
    if (!stash(std::move(w), std::move(asker))) stop_self();
  }

 private:
  int send_to(int socket, const std::string& text) {
    return socket > 0 ? static_cast<int>(text.size()) : 0;
  }

  sluice::executor& dials_;
  sluice::actor_timer limit_ = 0;
};

bool becoming() {
  sluice::work_stealing_pool pool({.threads = 2});
  sluice::actor_system system(pool);
  const auto link = system.spawn<link_to_server>(std::ref<sluice::executor>(pool));
  auto early = link.ask(write{"hello"});
  if (!link.send(connect{})) return false;
  return early.get() == 5 && link.ask(write{"bye"}).get() == 3;
}

// ---- the end

bool the_end() {
  sluice::work_stealing_pool pool({.threads = 2});
  sluice::actor_system system(pool);
  const auto ann = system.spawn<account>();
  if (!ann.send(deposit{1})) return false;

  ann.close();  // after the messages in its mailbox
  const sluice::actor_end end = ann.ended().get();

  const bool in_time = static_cast<bool>(system.shutdown(10s));
  return in_time && end.why == sluice::end_reason::stopped && system.stats().live == 0;
}

// ---- a test

struct ring {};

// Rings after five seconds without a message.
struct still_there {};
class alarm_clock : public actor<alarm_clock, still_there, give_up> {
 public:
  explicit alarm_clock(sluice::recipient<ring> bell) : bell_(std::move(bell)) { wind(); }
  void on(still_there) {
    (void)cancel(limit_);
    wind();
  }
  void on(give_up) { (void)bell_.try_send(ring{}); }

 private:
  void wind() { limit_ = send_after(5s, give_up{}); }

  const sluice::recipient<ring> bell_;
  sluice::actor_timer limit_ = 0;
};

bool a_test() {
  sluice::actor_test_kit kit;
  sluice::actor_probe<ring> bell(kit);
  auto alarm = kit.spawn<alarm_clock>(bell.ref());

  kit.advance(4s);
  (void)alarm.send(still_there{});
  kit.advance(4s);
  bell.expect_no_message();
  kit.advance(1s);
  bell.expect<ring>();
  return kit.failures().empty();
}

}  // namespace

int main() {
  const bool all = an_account() && full_mailboxes() && answers() && coroutines() && supervision() &&
                   kinds() && becoming() && the_end() && a_test() && they_ask_each_other();
  std::puts(all ? "ok" : "failed");
  return all ? 0 : 1;
}
