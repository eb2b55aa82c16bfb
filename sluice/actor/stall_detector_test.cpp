#include "sluice/actor/stall_detector.hpp"

#include <gtest/gtest.h>

#include <stop_token>
#include <string>
#include <vector>

#include "sluice/actor/actor_probe.hpp"
#include "sluice/actor/actor_router.hpp"
#include "sluice/actor/actor_test_kit.hpp"
#include "sluice/actor/observer_list.hpp"
#include "sluice/actor/reentrant.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/latch.hpp"

namespace sluice::stall_detector_test {
namespace {

using namespace std::chrono_literals;

struct answer_me {
  using reply = int;
};
struct nudge {};
// The messages of a `worker`.
struct ask_other {};
struct ask_other_later {};
struct ask_other_and_go_on {};
struct fill_other {};
struct ask_in_turn {
  using reply = int;
};
struct nap {
  std::chrono::nanoseconds time;
};
struct know {
  recipient<answer_me> asked;
  recipient<ask_in_turn> asked_in_turn;
  recipient<nudge> nudged;
};

// Asks and sends to another worker, as the test requests.
class worker : public actor<worker, answer_me, nudge, ask_other, ask_other_later,
                            ask_other_and_go_on, fill_other, ask_in_turn, nap, know> {
 public:
  explicit worker(clock& time) : time_(time) {}
  void on(know m) { other_ = std::move(m); }
  int on(answer_me) { return 1; }
  void on(nudge) {}
  task<> on(ask_other) {
    auto answer = other_.asked_in_turn.ask(ask_in_turn{});
    (void)co_await std::move(answer);
  }
  task<> on(ask_other_later) {
    auto answer = other_.asked_in_turn.ask(ask_in_turn{});
    (void)co_await reentrant(std::move(answer));
  }
  void on(ask_other_and_go_on) {
    pipe(
        other_.asked_in_turn.ask(ask_in_turn{}), [](int) { return nudge{}; },
        [](const std::exception_ptr&) { return nudge{}; });
  }
  task<int> on(ask_in_turn) {
    auto answer = other_.asked.ask(answer_me{});
    co_return co_await std::move(answer);
  }
  task<> on(fill_other) {
    for (;;) {
      const status outcome = co_await other_.nudged.async_send(nudge{});
      if (!outcome) co_return;
    }
  }
  task<> on(nap m) { (void)co_await sleep_for(m.time, time_); }

 private:
  clock& time_;
  know other_;
};

// Forwards requests, and asks back when it is nudged.
class passer : public actor<passer, ask_in_turn, nudge> {
 public:
  passer(recipient<ask_in_turn> receiver, recipient<answer_me> back)
      : receiver_(std::move(receiver)), back_(std::move(back)) {}
  void on(ask_in_turn m, responder<int> asker) { (void)forward(receiver_, m, std::move(asker)); }
  task<> on(nudge) {
    answer_me m;
    (void)co_await back_.ask(m);
  }

 private:
  const recipient<ask_in_turn> receiver_;
  const recipient<answer_me> back_;
};

struct async_ask_other {};
struct ask_first_other {};
struct async_nudge_other {};

// Asks one of several.
class client : public actor<client, ask_other, answer_me, async_ask_other, ask_first_other,
                            async_nudge_other> {
 public:
  task<> on(async_ask_other) {
    auto answer = desk_.async_ask(ask_in_turn{});
    (void)co_await std::move(answer);
  }
  task<> on(ask_first_other) {
    auto answer = desk_.ask_first(ask_in_turn{});
    (void)co_await std::move(answer);
  }
  task<> on(async_nudge_other) {
    for (;;) {
      auto sending = desk_.async_send(nudge{});
      if (!co_await std::move(sending)) co_return;
    }
  }
  explicit client(actor_router<worker> desk) : desk_(std::move(desk)) {}
  task<> on(ask_other) {
    auto answer = desk_.ask(ask_in_turn{});
    (void)co_await std::move(answer);
  }
  int on(answer_me) { return 1; }

 private:
  const actor_router<worker> desk_;
};

// Workers in a kit, a stall_detector on demand, and a clock for both.
class stall_detector_test : public ::testing::Test {
 protected:
  stall_detector_options reporting() {
    stall_detector_options o;
    o.period = 1s;
    o.slow_after = 5s;
    o.cycle_after = 2s;
    o.on_slow = [this](const slow_handler& s) { reports.push_back(s.text()); };
    o.on_cycle = [this](const actor_cycle& c) { reports.push_back(c.text()); };
    o.time = &time;
    return o;
  }
  actor_system_options observed() {
    actor_system_options o;
    o.observer = &detector;
    return o;
  }
  ref<worker> hire(std::string name, std::uint32_t capacity = 100) {
    return kit.spawn_with<worker>({.name = std::move(name), .mailbox = {.capacity = capacity}},
                                  std::ref(static_cast<clock&>(time)));
  }
  void introduce(const ref<worker>& receiver, const ref<worker>& other) {
    ASSERT_TRUE(receiver.send(know{other, other, other}));
    kit.settle();
  }
  std::vector<std::string> cycles() {
    std::vector<std::string> all;
    for (const actor_cycle& c : detector.find_cycles()) all.push_back(c.text());
    return all;
  }
  using lines = std::vector<std::string>;

  lines reports;
  manual_clock time;
  stall_detector detector{reporting()};
  actor_test_kit kit{observed()};
};

TEST_F(stall_detector_test, ReportsASlowHandlerOnceWithItsMessage) {
  const auto a = hire("a");
  ASSERT_TRUE(a.send(nap{12s}));
  kit.settle();
  time.advance(4s);
  EXPECT_EQ(reports, lines{});
  time.advance(1s);
  EXPECT_EQ(reports, lines{"actor a has been on message nap for 5 s"});
  time.advance(6s);
  EXPECT_EQ(reports.size(), 1U);
  ASSERT_EQ(detector.find_slow(5s).size(), 1U);
  EXPECT_EQ(detector.find_slow(5s)[0].time, 11s);
  time.advance(1s);
  kit.settle();
  EXPECT_TRUE(detector.find_slow(0s).empty());
  // The next message is reported by itself.
  ASSERT_TRUE(a.send(nap{6s}));
  kit.settle();
  time.advance(6s);
  EXPECT_EQ(reports.size(), 2U);
}

TEST_F(stall_detector_test, NamesTheWaitOfASlowHandler) {
  actor_probe<ask_in_turn, answer_me, nudge> deaf(kit, "deaf");
  const auto a = hire("a");
  ASSERT_TRUE(a.send(know{deaf.ref(), deaf.ref(), deaf.ref()}));
  ASSERT_TRUE(a.send(ask_other{}));
  kit.settle();
  time.advance(5s);
  EXPECT_EQ(reports, lines{"actor a has been on message ask_other for 5 s; it waits for an answer "
                           "from deaf"});
}

TEST_F(stall_detector_test, NamesActorsThatAskEachOther) {
  const auto a = hire("a");
  const auto b = hire("b");
  introduce(a, b);
  introduce(b, a);
  EXPECT_EQ(cycles(), lines{});
  ASSERT_TRUE(a.send(ask_other{}));
  kit.settle();
  EXPECT_EQ(cycles(), lines{"a -(ask)-> b -(ask)-> a"});
  const actor_cycle found = detector.find_cycles()[0];
  EXPECT_EQ(found.steps[0].message, "ask_other");
  EXPECT_EQ(found.steps[1].message, "ask_in_turn");
  EXPECT_TRUE(detector.find_cycles(1s).empty());  // the waits are younger
}

TEST_F(stall_detector_test, NamesACycleThroughAFullMailboxAndAnAsk) {
  const auto a = hire("a");
  const auto b = hire("b", 1);
  introduce(a, b);
  introduce(b, a);
  ASSERT_TRUE(b.send(ask_other{}));  // a is asked, and asks b while it handles that
  kit.settle();
  EXPECT_EQ(cycles(), lines{"a -(ask)-> b -(ask)-> a"});
  b.stop();
  a.stop();
  kit.settle();
  EXPECT_EQ(cycles(), lines{});

  const auto c = hire("c");
  const auto d = hire("d", 1);
  introduce(c, d);
  introduce(d, c);
  ASSERT_TRUE(c.send(fill_other{}));
  ASSERT_TRUE(d.send(ask_other{}));
  kit.settle();
  EXPECT_EQ(cycles(), lines{"c -(full mailbox)-> d -(ask)-> c"});
}

TEST_F(stall_detector_test, FollowsAForwardedRequest) {
  const auto a = hire("a");
  const auto b = hire("b");
  introduce(b, a);
  const auto between = kit.spawn_with<passer>({.name = "between"}, recipient<ask_in_turn>(b),
                                              recipient<answer_me>(a));
  ASSERT_TRUE(a.send(know{b, between, b}));
  ASSERT_TRUE(a.send(ask_other{}));
  kit.settle();
  EXPECT_EQ(cycles(), lines{"a -(ask)-> b -(ask)-> a"});
}

TEST_F(stall_detector_test, AForwardingActorIsNotWaitedFor) {
  actor_probe<ask_in_turn, answer_me, nudge> deaf(kit, "deaf");
  const auto a = hire("a");
  const auto between = kit.spawn_with<passer>(
      {.name = "between"}, recipient<ask_in_turn>(deaf.ref()), recipient<answer_me>(a));
  ASSERT_TRUE(a.send(know{deaf.ref(), between, deaf.ref()}));
  ASSERT_TRUE(a.send(ask_other{}));
  kit.settle();
  ASSERT_TRUE(between.send(nudge{}));  // it waits for a; a waits for deaf, not for it
  kit.settle();
  EXPECT_EQ(cycles(), lines{});
}

// A router with one member, which asks its client back when it is asked.
class stall_detector_group_test : public stall_detector_test {
 protected:
  template <class M>
  lines cycles_after(M m) {
    must(member.send(know{a, member, member}));
    kit.settle();
    must(a.send(std::move(m)));
    kit.settle();
    return cycles();
  }
  static void must(status sent) { check(static_cast<bool>(sent), "test", "to be sent"); }
  static actor_router_options one() {
    actor_router_options o;
    o.members = 1;
    o.member.name = "member";
    o.member.mailbox.capacity = 2;
    return o;
  }

  const actor_router<worker> desk{kit.system(), one(), std::ref(static_cast<clock&>(time))};
  const ref<client> a = kit.spawn_with<client>({.name = "a"}, desk);
  const ref<worker> member = desk.members()[0];
};

const char* const asks_back = "member/1 -(ask)-> a -(ask)-> member/1";

TEST_F(stall_detector_group_test, NamesTheMemberOfAGroupThatHasTheRequest) {
  EXPECT_EQ(cycles_after(ask_other{}), lines{asks_back});
}

TEST_F(stall_detector_group_test, NamesTheMemberThatHasTheRequestOfACoroutine) {
  EXPECT_EQ(cycles_after(async_ask_other{}), lines{asks_back});
}

TEST_F(stall_detector_group_test, NamesTheOnlyMemberOfAnAskFirst) {
  EXPECT_EQ(cycles_after(ask_first_other{}), lines{asks_back});
}

TEST_F(stall_detector_group_test, NamesTheMemberThatIsFullForACoroutine) {
  ASSERT_TRUE(member.send(know{a, member, member}));
  kit.settle();
  ASSERT_TRUE(a.send(async_nudge_other{}));
  ASSERT_TRUE(member.send(ask_in_turn{}));
  kit.settle();
  EXPECT_EQ(cycles(), lines{"member/1 -(ask)-> a -(full mailbox)-> member/1"});
}

TEST_F(stall_detector_test, AnActorThatAsksItselfIsACycle) {
  const auto a = hire("a");
  introduce(a, a);
  ASSERT_TRUE(a.send(ask_other{}));
  kit.settle();
  EXPECT_EQ(cycles(), lines{"a -(ask)-> a"});
}

TEST_F(stall_detector_test, AReentrantWaitIsNoWait) {
  const auto a = hire("a");
  const auto b = hire("b");
  introduce(a, b);
  introduce(b, a);
  ASSERT_TRUE(a.send(ask_other_later{}));
  // Also not in between, when b has asked a and a has not begun that message.
  while (kit.runs_on().run_one()) EXPECT_EQ(cycles(), lines{});
  EXPECT_TRUE(detector.find_slow(0s).empty());  // both handlers have ended
}

TEST_F(stall_detector_test, AnAskOfAnEarlierMessageIsNoWaitOfTheNext) {
  actor_probe<ask_in_turn, answer_me, nudge> deaf(kit, "deaf");
  const auto a = hire("a");
  const auto b = hire("b");
  ASSERT_TRUE(a.send(know{deaf.ref(), b, deaf.ref()}));
  ASSERT_TRUE(b.send(know{a, a, a}));
  ASSERT_TRUE(a.send(ask_other_and_go_on{}));  // b is asked, and asks a, which is busy meanwhile
  ASSERT_TRUE(a.send(nap{3s}));
  kit.settle();
  ASSERT_EQ(detector.find_slow(0s).size(), 2U);
  EXPECT_EQ(cycles(), lines{});
  time.advance(3s);
  kit.settle();
  EXPECT_TRUE(detector.find_slow(0s).empty());
}

TEST_F(stall_detector_test, ReportsACycleOnceWhenItIsOldEnough) {
  const auto a = hire("a");
  const auto b = hire("b");
  introduce(a, b);
  introduce(b, a);
  ASSERT_TRUE(a.send(ask_other{}));
  kit.settle();
  time.advance(1s);
  EXPECT_EQ(reports, lines{});
  time.advance(3s);
  EXPECT_EQ(reports, lines{"a -(ask)-> b -(ask)-> a"});
}

// Notifies a test when a number of waits have begun.
class wait_count final : public actor_observer {
 public:
  explicit wait_count(std::size_t wanted) : all(static_cast<std::ptrdiff_t>(wanted)) {}
  unsigned note_bits() const noexcept override { return 0; }
  void wait_begun(actor_id, actor_id, actor_wait, std::uint64_t) noexcept override {
    all.count_down();
  }
  latch all;
};

struct stuff {
  std::stop_token until;
};
struct meet {
  recipient<nudge> other;
};
class sender : public actor<sender, nudge, stuff, meet> {
 public:
  explicit sender(latch& both) : both_(both) {}
  void on(nudge) {}
  void on(meet m) { other_ = std::move(m.other); }
  // Both handle this message before either mailbox is full.
  void on(stuff m) {
    both_.arrive_and_wait();
    while (other_.send(nudge{}, m.until)) {
    }
  }

 private:
  latch& both_;
  recipient<nudge> other_;
};

TEST(actor_watch_threads_test, NamesActorsThatAreBlockedOnEachOthersFullMailboxes) {
  wait_count waits(2);
  stall_detector detector({.period = 0s});
  observer_list both_observers({&detector, &waits});
  work_stealing_pool pool({.threads = 2});
  actor_system_options o;
  o.observer = &both_observers;
  latch both(2);
  std::stop_source end;
  actor_system system(pool, std::move(o));
  const auto a =
      system.spawn_with<sender>({.name = "a", .mailbox = {.capacity = 3}}, std::ref(both));
  const auto b =
      system.spawn_with<sender>({.name = "b", .mailbox = {.capacity = 3}}, std::ref(both));
  ASSERT_TRUE(a.send(meet{b}));
  ASSERT_TRUE(b.send(meet{a}));
  ASSERT_TRUE(a.send(stuff{end.get_token()}));
  ASSERT_TRUE(b.send(stuff{end.get_token()}));
  waits.all.wait();
  const auto cycles = detector.find_cycles();
  ASSERT_EQ(cycles.size(), 1U);
  EXPECT_EQ(cycles[0].text(), "a -(full mailbox)-> b -(full mailbox)-> a");
  EXPECT_EQ(cycles[0].steps[0].message, "stuff");
  end.request_stop();
  system.close();
  ASSERT_TRUE(system.join());
  EXPECT_TRUE(detector.find_cycles().empty());
  EXPECT_TRUE(detector.find_slow(0s).empty());
}

struct query {
  using reply = int;
};
struct put_question {
  std::stop_token until;
};
struct dial {
  recipient<query> other;
};
class caller : public actor<caller, query, put_question, dial> {
 public:
  explicit caller(latch& both) : both_(both) {}
  int on(query) { return 1; }
  void on(dial m) { other_ = std::move(m.other); }
  void on(put_question m) {
    both_.arrive_and_wait();
    (void)other_.ask(query{}).get(m.until);
  }

 private:
  latch& both_;
  recipient<query> other_;
};

TEST(actor_watch_threads_test, NamesActorsThatAreBlockedInGet) {
  wait_count waits(2);
  stall_detector detector({.period = 0s});
  observer_list both_observers({&detector, &waits});
  work_stealing_pool pool({.threads = 2});
  actor_system_options o;
  o.observer = &both_observers;
  latch both(2);
  std::stop_source end;
  actor_system system(pool, std::move(o));
  const auto a = system.spawn_with<caller>({.name = "a"}, std::ref(both));
  const auto b = system.spawn_with<caller>({.name = "b"}, std::ref(both));
  ASSERT_TRUE(a.send(dial{b}));
  ASSERT_TRUE(b.send(dial{a}));
  ASSERT_TRUE(a.send(put_question{end.get_token()}));
  ASSERT_TRUE(b.send(put_question{end.get_token()}));
  waits.all.wait();
  const auto cycles = detector.find_cycles();
  ASSERT_EQ(cycles.size(), 1U);
  EXPECT_EQ(cycles[0].text(), "a -(ask)-> b -(ask)-> a");
  end.request_stop();
  system.close();
  ASSERT_TRUE(system.join());
  EXPECT_TRUE(detector.find_cycles().empty());
}

}  // namespace
}  // namespace sluice::stall_detector_test
