// A stop ends an ask as a whole, for every kind of address and in every phase.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "sluice/actor/actor_pool.hpp"
#include "sluice/actor/actor_router.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/keyed_actors.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::ask_stop_test {
namespace {

using namespace std::chrono_literals;

struct question {
  using reply = int;
};
struct answer_all {
  int with;
};

// Keeps requests until a message makes it reply.
class silent : public actor<silent, question, answer_all> {
 public:
  void on(question, responder<int> asker) { asked.push_back(std::move(asker)); }
  void on(answer_all m) {
    for (auto& asker : asked) asker.reply(m.with);
    asked.clear();
  }

  static inline std::vector<responder<int>> asked;
};

class ask_stop_test : public ::testing::Test {
 protected:
  ~ask_stop_test() override {
    silent::asked.clear();
    system.stop();
    while (!system.join(deadline::after(0ns))) on.run_all();
  }
  static actor_system_options with(clock& time) {
    actor_system_options o;
    o.time = &time;
    return o;
  }
  template <class E>
  static auto why(future<int> f) {
    using reason = decltype(std::declval<const E&>().why());
    try {
      (void)f.get();
    } catch (const E& e) {
      return std::optional<reason>(e.why());
    }
    return std::optional<reason>();
  }
  // The request has been handled without a reply; a stop ends the future.
  void expect_ended_by_stop(future<int> f) {
    on.run_all();
    ASSERT_FALSE(silent::asked.empty());
    EXPECT_FALSE(f.is_ready());
    for (const auto& asker : silent::asked) EXPECT_TRUE(asker.is_wanted());
    stop.request_stop();
    ASSERT_TRUE(f.is_ready()) << "at once, without a turn of any actor";
    EXPECT_EQ(why<future_error>(std::move(f)), future_error::cancelled);
    for (const auto& asker : silent::asked) EXPECT_FALSE(asker.is_wanted());
  }

  manual_clock time;
  manual_executor on;
  actor_system system{on, with(time)};
  std::stop_source stop;
};

TEST_F(ask_stop_test, EndsTheWaitForTheReplyAndTheResponderIsNotWanted) {
  expect_ended_by_stop(system.spawn<silent>().ask(question{}, stop.get_token()));
}

TEST_F(ask_stop_test, ThroughARecipient) {
  const recipient<question> receiver = system.spawn<silent>();
  expect_ended_by_stop(receiver.ask(question{}, stop.get_token()));
}

TEST_F(ask_stop_test, OfAKeyedActor) {
  const keyed_actors<silent> all(system, {.idle = 0s});
  expect_ended_by_stop(all.of("a").ask(question{}, stop.get_token()));
}

TEST_F(ask_stop_test, OfARouter) {
  const actor_router<silent> desk(system, {.members = 2});
  expect_ended_by_stop(desk.ask(question{}, stop.get_token()));
}

TEST_F(ask_stop_test, OfAPool) {
  const actor_pool<silent> desk(system, {.members_max = 2});
  expect_ended_by_stop(desk.ask(question{}, stop.get_token()));
}

TEST_F(ask_stop_test, OfAllMembersAtOnce) {
  const actor_router<silent> desk(system, {.members = 3});
  expect_ended_by_stop(desk.ask_first(question{}, stop.get_token()));
  EXPECT_EQ(silent::asked.size(), 3U);
}

TEST_F(ask_stop_test, AfterTheReplyChangesNothing) {
  const auto receiver = system.spawn<silent>();
  auto f = receiver.ask(question{}, stop.get_token());
  ASSERT_TRUE(receiver.send(answer_all{7}));
  on.run_all();
  stop.request_stop();
  EXPECT_EQ(f.get(), 7);
}

TEST_F(ask_stop_test, AReplyAfterItIsDiscarded) {
  const auto receiver = system.spawn<silent>();
  auto f = receiver.ask(question{}, stop.get_token());
  on.run_all();
  stop.request_stop();
  ASSERT_TRUE(receiver.send(answer_all{7}));
  on.run_all();
  EXPECT_EQ(why<future_error>(std::move(f)), future_error::cancelled);
}

TEST_F(ask_stop_test, ThatWasRequestedBeforeSendsNoRequest) {
  const actor_router<silent> desk(system, {.members = 2});
  stop.request_stop();
  auto one = system.spawn<silent>().ask(question{}, stop.get_token());
  ASSERT_TRUE(one.is_ready());
  EXPECT_EQ(why<actor_error>(std::move(one)), actor_error::stopped);
  auto all = desk.ask_first(question{}, stop.get_token());
  ASSERT_TRUE(all.is_ready());
  EXPECT_EQ(why<actor_error>(std::move(all)), actor_error::stopped);
  on.run_all();
  EXPECT_TRUE(silent::asked.empty());
}

TEST_F(ask_stop_test, OrADeadlineEndsTheAskTheEarlierOne) {
  const auto receiver = system.spawn<silent>();
  auto late = receiver.ask(question{}, {deadline::after(1s, time), stop.get_token()});
  time.advance(1s);
  EXPECT_EQ(why<future_error>(std::move(late)), future_error::timed_out);
  auto stopped = receiver.ask(question{}, {deadline::after(1s, time), stop.get_token()});
  stop.request_stop();
  EXPECT_EQ(time.pending(), 0U) << "the deadline's timer is removed";
  EXPECT_EQ(why<future_error>(std::move(stopped)), future_error::cancelled);
}

TEST_F(ask_stop_test, EndsACoroutineThatAwaitsTheFuture) {
  const auto receiver = system.spawn<silent>();
  auto f = spawn(on, [](ref<silent> target, std::stop_token token) -> task<int> {
    question q;
    auto answer = target.ask(q, std::move(token));
    co_return co_await std::move(answer);
  }(receiver, stop.get_token()));
  on.run_all();
  EXPECT_FALSE(f.is_ready());
  stop.request_stop();
  on.run_all();
  EXPECT_EQ(why<future_error>(std::move(f)), future_error::cancelled);
}

// An actor that replies at once, on real threads.
class prompt : public actor<prompt, question> {
 public:
  int on(question) { return 1; }
};

TEST(ask_stop_stress_test, AStopAndAReplyThatRaceEndTheAskOnce) {
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool);
  const auto receiver = system.spawn<prompt>();
  for (int i = 0; i < 2000; ++i) {
    std::stop_source stop;
    auto f = receiver.ask(question{}, stop.get_token());
    stop.request_stop();
    try {
      EXPECT_EQ(f.get(), 1);
    } catch (const future_error& e) {
      EXPECT_EQ(e.why(), future_error::cancelled);
    }
  }
}

}  // namespace
}  // namespace sluice::ask_stop_test
