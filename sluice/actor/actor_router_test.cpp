#include "sluice/actor/actor_router.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/executor/manual_executor.hpp"

namespace sluice::actor_router_test {
namespace {

using namespace std::chrono_literals;

// The handled messages, by the name of the member.
struct diary {
  std::map<std::string, std::vector<int>> lines;
  std::size_t count() const {
    std::size_t all = 0;
    for (const auto& [who, numbers] : lines) all += numbers.size();
    return all;
  }
};

struct note {
  int n;
};
struct deposit {
  std::string account;
  int n;
  const std::string& key() const { return account; }
};
struct who_are_you {
  using reply = std::string;
};
struct quote {
  using reply = int;
};
struct fall {};
struct leave {};

class clerk : public actor<clerk, note, deposit, who_are_you, quote, fall, leave> {
 public:
  explicit clerk(diary* d) : diary_(d) {}
  void on(note m) { diary_->lines[name()].push_back(m.n); }
  void on(deposit m) { diary_->lines[name()].push_back(m.n); }
  std::string on(who_are_you) { return name(); }
  void on(quote, responder<int> asker) { asked_.push_back(std::move(asker)); }
  void on(fall) { throw std::runtime_error("it fell"); }
  void on(leave) { stop_self(); }

  static inline std::vector<responder<int>> asked_;

 private:
  std::string name() const { return self().name(); }
  diary* diary_;
};

class actor_router_test : public ::testing::Test {
 protected:
  actor_router_test() { clerk::asked_.clear(); }
  ~actor_router_test() override {
    clerk::asked_.clear();
    system_.stop();
    on_.run_all();
  }
  static actor_system_options quiet(clock& time) {
    actor_system_options o;
    o.time = &time;
    o.on_failure = [](const actor_failure&) {};
    return o;
  }
  actor_router<clerk> make(actor_router_options o) {
    actor_router<clerk> made(system_, std::move(o), &diary_);
    on_.run_all();
    return made;
  }
  std::vector<int> lines_of(int slot) { return diary_.lines["router/" + std::to_string(slot)]; }

  diary diary_;
  manual_clock time_;
  manual_executor on_{{.capacity = 64}};
  actor_system system_{on_, quiet(time_)};
};

TEST_F(actor_router_test, RoundRobinGivesOneToEachMember) {
  const auto desk = make({.members = 3});
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(desk.send(note{i}));
  on_.run_all();
  EXPECT_EQ(lines_of(1), (std::vector{0, 3}));
  EXPECT_EQ(lines_of(2), (std::vector{1, 4}));
  EXPECT_EQ(lines_of(3), (std::vector{2, 5}));
  EXPECT_EQ(desk.stats().handed, 6U);
}

TEST_F(actor_router_test, RoundRobinSkipsAFullMember) {
  const auto desk = make({.members = 2, .member = {.mailbox = {.capacity = 3}}});
  const auto first = desk.members().front();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(first.try_send(note{i}));
  for (int i = 10; i < 13; ++i) ASSERT_TRUE(desk.try_send(note{i}));
  on_.run_all();
  EXPECT_EQ(lines_of(1), (std::vector{0, 1, 2}));
  EXPECT_EQ(lines_of(2), (std::vector{10, 11, 12}));
}

TEST_F(actor_router_test, ReturnsFullWhenAllAreAndLeavesTheMessageWithTheSender) {
  const auto desk = make({.members = 2, .member = {.mailbox = {.capacity = 1}}});
  ASSERT_TRUE(desk.try_send(note{1}));
  ASSERT_TRUE(desk.try_send(note{2}));
  deposit kept{"mine", 3};
  EXPECT_EQ(desk.try_send(std::move(kept)), status::full);
  EXPECT_EQ(kept.account, "mine");
  EXPECT_EQ(desk.send(std::move(kept), 0ms), status::timed_out);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(desk.send(note{3}, stop.get_token()), status::stopped);
  EXPECT_EQ(desk.stats().refused, 3U);
  EXPECT_EQ(system_.stats().dead_letters, 0U);
}

TEST_F(actor_router_test, AMailboxThatDropsDoesSoOnlyWhenAllAreFull) {
  const auto desk = make(
      {.members = 2, .member = {.mailbox = {.capacity = 2, .overflow = overflow::drop_newest}}});
  const auto first = desk.members().front();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(first.try_send(note{i}));
  EXPECT_EQ(desk.try_send(note{10}), status::ok);
  EXPECT_EQ(desk.try_send(note{11}), status::ok);
  EXPECT_EQ(desk.try_send(note{12}), status::dropped);
  EXPECT_EQ(system_.stats().dropped, 1U);
  on_.run_all();
  EXPECT_EQ(lines_of(2), (std::vector{10, 11}));
}

TEST_F(actor_router_test, TheLeastLoadedTakesIt) {
  const auto desk = make({.rule = routing::least_loaded, .members = 3});
  const auto all = desk.members();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(all[0].try_send(note{i}));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(all[2].try_send(note{i}));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(desk.try_send(note{i}));
  EXPECT_EQ(all[0].queued(), 5U);
  EXPECT_EQ(all[1].queued(), 3U);
  EXPECT_EQ(all[2].queued(), 3U);
}

TEST_F(actor_router_test, OfEquallyLoadedTheLowestSlotTakesIt) {
  const auto desk = make({.rule = routing::least_loaded, .members = 3});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(desk.send(note{i}));
    on_.run_all();
  }
  EXPECT_EQ(lines_of(1), (std::vector{0, 1, 2}));
}

TEST_F(actor_router_test, AKeyStaysWithItsOwner) {
  const auto desk = make({.rule = routing::by_key, .members = 4});
  std::map<std::string, std::string> owner;
  for (int i = 0; i < 200; ++i) {
    const std::string account = "account " + std::to_string(i % 20);
    owner[account] = desk.owner_of(account).name();
    ASSERT_TRUE(desk.send(deposit{account, i}));
  }
  on_.run_all();
  std::size_t used = 0;
  for (const auto& [who, numbers] : diary_.lines) {
    ++used;
    EXPECT_TRUE(std::ranges::is_sorted(numbers));
    for (const int n : numbers) EXPECT_EQ(owner["account " + std::to_string(n % 20)], who);
  }
  EXPECT_EQ(diary_.count(), 200U);
  EXPECT_GT(used, 2U);
}

TEST_F(actor_router_test, ByKeyAMessageWithoutAKeyGoesRoundRobin) {
  const auto desk = make({.rule = routing::by_key, .members = 2});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(desk.send(note{i}));
  on_.run_all();
  EXPECT_EQ(lines_of(1), (std::vector{0, 2}));
  EXPECT_EQ(lines_of(2), (std::vector{1, 3}));
}

TEST_F(actor_router_test, AMemberThatJoinsTakesOnlyItsShareOfTheKeys) {
  const auto desk = make({.rule = routing::by_key, .members = 4});
  std::vector<std::string> before;
  for (std::uint64_t key = 0; key < 1000; ++key) before.push_back(desk.owner_of(key).name());
  desk.resize(5);
  on_.run_all();
  ASSERT_EQ(desk.size(), 5U);
  std::size_t moved = 0;
  for (std::uint64_t key = 0; key < 1000; ++key) {
    const std::string now = desk.owner_of(key).name();
    if (now == before[key]) continue;
    ++moved;
    EXPECT_EQ(now, "router/5");
  }
  EXPECT_GT(moved, 120U);  // exact would be 200 of 1000
  EXPECT_LT(moved, 280U);
}

TEST_F(actor_router_test, AMemberThatLeavesFinishesItsMailboxAndGivesAwayOnlyItsOwnKeys) {
  const auto desk = make({.rule = routing::by_key, .members = 3});
  std::vector<std::string> before;
  for (std::uint64_t key = 0; key < 300; ++key) before.push_back(desk.owner_of(key).name());
  const auto last = desk.members().back();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(last.try_send(note{i}));
  desk.resize(2);
  on_.run_all();
  EXPECT_EQ(lines_of(3), (std::vector{0, 1, 2, 3, 4}));
  EXPECT_TRUE(last.is_terminated());
  EXPECT_EQ(desk.stats().drained, 1U);
  EXPECT_EQ(desk.stats().replaced, 0U);
  EXPECT_EQ(desk.size(), 2U);
  for (std::uint64_t key = 0; key < 300; ++key) {
    if (before[key] == "router/3") continue;
    EXPECT_EQ(desk.owner_of(key).name(), before[key]);
  }
}

TEST_F(actor_router_test, AMemberThatEndedIsReplacedInItsSlot) {
  const auto desk = make({.rule = routing::by_key, .members = 3});
  const auto before = desk.members();
  before[1].stop();
  on_.run_all();
  const auto after = desk.members();
  ASSERT_EQ(after.size(), 3U);
  EXPECT_EQ(after[0], before[0]);
  EXPECT_FALSE(after[1] == before[1]);
  EXPECT_EQ(after[1].name(), "router/2");
  EXPECT_EQ(desk.stats().replaced, 1U);
}

TEST_F(actor_router_test, AMemberThatEndedIsSkippedUntilItIsReplaced) {
  const auto desk = make({.members = 2});
  desk.members()[0].stop();
  ASSERT_TRUE(on_.run_one());  // it has ended, and the keeper is not notified yet
  ASSERT_TRUE(desk.members()[0].is_terminated());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(desk.try_send(note{i}), status::ok);
  EXPECT_EQ(system_.stats().dead_letters, 0U);
  on_.run_all();
  EXPECT_EQ(lines_of(2), (std::vector{0, 1, 2}));
}

TEST_F(actor_router_test, WhileAnOwnerIsReplacedItsKeysGoToAnother) {
  const auto desk = make({.rule = routing::by_key, .members = 3});
  const auto owner = desk.owner_of(std::string("mine"));
  owner.stop();
  ASSERT_TRUE(on_.run_one());
  ASSERT_TRUE(owner.is_terminated());
  EXPECT_EQ(desk.try_send(deposit{"mine", 1}), status::ok);
  on_.run_all();
  EXPECT_TRUE(diary_.lines[owner.name()].empty());
  EXPECT_EQ(diary_.count(), 1U);
  EXPECT_EQ(desk.owner_of(std::string("mine")).name(), owner.name());
}

TEST_F(actor_router_test, MembersThatEndAgainAndAgainAreReplacedAsOftenAsRestartsAreAllowed) {
  const auto desk = make({.members = 1, .supervise = {.restarts_max = 3, .within = 10s}});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(desk.try_send(leave{}));
    on_.run_all();
    ASSERT_EQ(desk.size(), 1U);
  }
  ASSERT_TRUE(desk.try_send(leave{}));
  on_.run_all();
  EXPECT_EQ(desk.size(), 0U);
  EXPECT_EQ(desk.try_send(note{1}), status::full);
  time_.advance(9s);
  on_.run_all();
  EXPECT_EQ(desk.size(), 0U);
  time_.advance(2s);
  on_.run_all();
  EXPECT_EQ(desk.size(), 1U);
  EXPECT_TRUE(desk.try_send(note{2}));
  EXPECT_EQ(desk.stats().replaced, 4U);
}

TEST_F(actor_router_test, AMemberThatFailsIsRestartedAndKeepsItsMailbox) {
  const auto desk = make({.members = 1});
  const auto only = desk.members().front();
  ASSERT_TRUE(desk.try_send(fall{}));
  ASSERT_TRUE(desk.try_send(note{1}));
  on_.run_all();
  EXPECT_EQ(desk.members().front(), only);
  EXPECT_EQ(lines_of(1), (std::vector{1}));
  EXPECT_EQ(system_.stats().restarts, 1U);
  EXPECT_EQ(desk.stats().replaced, 0U);
}

TEST_F(actor_router_test, AskGoesToOne) {
  const auto desk = make({.members = 2});
  auto first = desk.ask(who_are_you{});
  auto second = desk.ask(who_are_you{});
  on_.run_all();
  EXPECT_EQ(first.get(), "router/1");
  EXPECT_EQ(second.get(), "router/2");
}

TEST_F(actor_router_test, AnAskWithoutAReplyTimesOutOnItsClock) {
  const auto desk = make({.members = 2});
  auto f = desk.ask(quote{}, {deadline::after(1s, time_)});
  on_.run_all();
  EXPECT_FALSE(f.is_ready());
  time_.advance(1s);
  ASSERT_TRUE(f.is_ready());
  EXPECT_THROW(f.get(), future_error);
  EXPECT_FALSE(clerk::asked_.front().is_wanted());
}

TEST_F(actor_router_test, BroadcastGivesACopyToEachMemberWithCapacity) {
  const auto desk = make({.members = 3, .member = {.mailbox = {.capacity = 1}}});
  ASSERT_TRUE(desk.members()[1].try_send(note{7}));
  EXPECT_EQ(desk.broadcast(deposit{"all", 1}), 2U);
  on_.run_all();
  EXPECT_EQ(lines_of(1), (std::vector{1}));
  EXPECT_EQ(lines_of(2), (std::vector{7}));
  EXPECT_EQ(lines_of(3), (std::vector{1}));
  EXPECT_EQ(desk.broadcast(deposit{"all", 2}, {deadline::after(1s, time_)}), 3U);
}

TEST_F(actor_router_test, TheFirstReplyWinsAndTheOtherAsksAreCancelled) {
  const auto desk = make({.members = 3});
  auto f = desk.ask_first(quote{});
  on_.run_all();
  ASSERT_EQ(clerk::asked_.size(), 3U);
  clerk::asked_[1].reply(42);
  ASSERT_TRUE(f.is_ready());
  EXPECT_EQ(f.get(), 42);
  EXPECT_FALSE(clerk::asked_[0].is_wanted());
  EXPECT_FALSE(clerk::asked_[2].is_wanted());
}

TEST_F(actor_router_test, AFailureIsNoReplyWhileOtherMembersMayReply) {
  const auto desk = make({.members = 3});
  auto f = desk.ask_first(quote{});
  on_.run_all();
  ASSERT_EQ(clerk::asked_.size(), 3U);
  clerk::asked_[0].fail(std::make_exception_ptr(std::runtime_error("no")));
  EXPECT_FALSE(f.is_ready());
  clerk::asked_[1] = {};
  EXPECT_FALSE(f.is_ready());
  clerk::asked_[2].reply(3);
  EXPECT_EQ(f.get(), 3);
}

TEST_F(actor_router_test, AskFirstFailsAtItsDeadlineAndCancelsAll) {
  const auto desk = make({.members = 2});
  auto f = desk.ask_first(quote{}, deadline::after(50ms, time_));
  on_.run_all();
  time_.advance(50ms);
  ASSERT_TRUE(f.is_ready());
  EXPECT_THROW(f.get(), future_error);
  for (const auto& asker : clerk::asked_) EXPECT_FALSE(asker.is_wanted());
}

TEST_F(actor_router_test, MembersFinishTheirMailboxesAfterCloseAndNotAfterStop) {
  const auto desk = make({.members = 2});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(desk.send(note{i}));
  desk.close();
  EXPECT_EQ(desk.try_send(note{9}), status::closed);
  EXPECT_EQ(system_.stats().dead_letters, 1U);
  auto ended = desk.ended();
  on_.run_all();
  ASSERT_TRUE(ended.is_ready());
  EXPECT_EQ(diary_.count(), 4U);
  EXPECT_EQ(system_.stats().dead_letters, 1U);

  const auto other = make({.members = 2});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(other.send(note{i}));
  other.stop();
  on_.run_all();
  EXPECT_TRUE(other.is_terminated());
  EXPECT_EQ(diary_.count(), 4U);
  EXPECT_EQ(system_.stats().dead_letters, 5U);
  try {
    (void)other.ask(who_are_you{}).get();
    FAIL();
  } catch (const actor_error& e) {
    EXPECT_EQ(e.why(), actor_error::terminated);
  }
  EXPECT_EQ(other.broadcast(note{1}), 0U);
  EXPECT_THROW(other.ask_first(quote{}).get(), actor_error);
}

TEST_F(actor_router_test, OfASystemThatHasEndedIsTerminated) {
  system_.stop();
  on_.run_all();
  const actor_router<clerk> desk(system_, {}, &diary_);
  EXPECT_TRUE(desk.is_terminated());
  EXPECT_EQ(desk.send(note{1}), status::closed);
}

// Each construction takes an entry of the plan; past its end all constructors succeed.
class fussy : public actor<fussy, note, leave> {
 public:
  enum class line { goes_well, throws };
  fussy() {
    if (plan.empty()) return;
    const line own = plan.front();
    plan.pop_front();
    if (own == line::throws) throw std::runtime_error("not this one");
  }
  void on(note) {}
  void on(leave) { stop_self(); }
  static inline std::deque<line> plan;
};

TEST_F(actor_router_test, AMemberThatCannotBeConstructedAtFirstMakesTheRouterThrow) {
  fussy::plan = {fussy::line::goes_well, fussy::line::goes_well, fussy::line::throws};
  EXPECT_THROW(actor_router<fussy>(system_, {.members = 3}), std::runtime_error);
  on_.run_all();
  EXPECT_EQ(system_.stats().live, 0U);
}

TEST_F(actor_router_test, AReplacementThatCannotBeConstructedFailsTheGroupAndItsParentDecides) {
  fussy::plan = {fussy::line::goes_well, fussy::line::goes_well, fussy::line::throws};
  const actor_router<fussy> desk(system_, {.members = 2});
  on_.run_all();
  const auto before = desk.members();
  ASSERT_TRUE(desk.try_send(leave{}));
  on_.run_all();
  EXPECT_EQ(system_.stats().failures, 1U);
  EXPECT_EQ(system_.stats().restarts, 1U);
  ASSERT_EQ(desk.size(), 2U);
  EXPECT_TRUE(before[1].is_terminated());
  EXPECT_TRUE(desk.try_send(note{1}));
}

TEST_F(actor_router_test, ARuleThatActorsDoNotHaveAndNoMembersAreBrokenContracts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(make({.rule = routing::work_stealing}), "round_robin, least_loaded or by_key");
  EXPECT_DEATH(make({.members = 0}), "1 <= members_min");
  EXPECT_DEATH(make({}).resize(0), "at least one member");
  const auto elsewhere = system_.spawn<clerk>(&diary_);
  EXPECT_DEATH(actor_router<clerk>(elsewhere, {}, &diary_), "to be created by its parent");
}

class office : public actor<office, note, who_are_you> {
 public:
  explicit office(diary* d) : desk_(self(), {.members = 2}, d) {}
  void on(note m) { (void)desk_.try_send(m); }
  future<std::string> on(who_are_you) { return desk_.ask(who_are_you{}); }

 private:
  actor_router<clerk> desk_;
};

TEST_F(actor_router_test, MayBelongToAnActorAndEndsWithIt) {
  const auto o = system_.spawn<office>(&diary_);
  on_.run_all();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(o.send(note{i}));
  auto answer = o.ask(who_are_you{});
  on_.run_all();
  EXPECT_EQ(answer.get(), "router/1");
  EXPECT_EQ(diary_.count(), 4U);
  EXPECT_EQ(system_.stats().live, 4U);
  o.stop();
  on_.run_all();
  EXPECT_EQ(system_.stats().live, 0U);
  EXPECT_EQ(system_.stats().dead_letters, 0U);
}

}  // namespace
}  // namespace sluice::actor_router_test
