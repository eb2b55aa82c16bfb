// Asks and forwards of coroutines: a full mailbox blocks no thread.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>

#include "sluice/actor/actor_router.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/keyed_actors.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/spawn.hpp"

namespace sluice::async_ask_test {
namespace {

using namespace std::chrono_literals;

struct half {
  using reply = int;
  int of;
};
struct touch {
  using reply = void;
};

class worker : public actor<worker, half, touch> {
 public:
  int on(half h) {
    if (h.of % 2 != 0) throw std::invalid_argument("odd");
    return h.of / 2;
  }
  void on(touch) {}
};

// Keeps its requests.
class silent : public actor<silent, half> {
 public:
  explicit silent(std::shared_ptr<std::optional<responder<int>>> kept) : kept_(std::move(kept)) {}
  void on(half, responder<int> asker) { kept_->emplace(std::move(asker)); }

 private:
  std::shared_ptr<std::optional<responder<int>>> kept_;
};

// One thread, driven by the test: a call that blocked it would hang the test.
class async_ask_test : public ::testing::Test {
 protected:
  ~async_ask_test() override {
    system.stop();
    while (!system.join(deadline::after(0ns))) run();
  }
  void run() {
    while (actors.run_all() + tasks.run_all() > 0) {
    }
  }
  ref<worker> make(std::uint32_t capacity = 100) {
    actor_options o;
    o.mailbox.capacity = capacity;
    return system.spawn_with<worker>(o);
  }
  template <class To>
  future<int> ask(const To& receiver, int of, wait_limits limits = {}) {
    auto f = spawn(tasks, asks(receiver, of, std::move(limits)));
    tasks.run_all();
    return f;
  }
  template <class To>
  static task<int> asks(To receiver, int of, wait_limits limits) {
    half h{of};
    auto asking = receiver.async_ask(h, std::move(limits));
    co_return co_await std::move(asking);
  }
  template <class E, class T>
  static auto why(future<T> f) {
    try {
      (void)f.get();
    } catch (const E& e) {
      return std::optional(e.why());
    }
    return decltype(std::optional(std::declval<const E&>().why()))();
  }

  manual_executor actors;
  manual_executor tasks;
  actor_system system{actors};
};

TEST_F(async_ask_test, ReturnsTheReply) {
  auto f = ask(make(), 8);
  run();
  EXPECT_EQ(f.get(), 4);
}

TEST_F(async_ask_test, ReturnsVoidToo) {
  const auto receiver = make();
  auto f = spawn(tasks, [](ref<worker> w) -> task<> {
    touch t;
    co_await w.async_ask(t);
  }(receiver));
  run();
  EXPECT_TRUE(f.is_ready());
  f.get();
}

TEST_F(async_ask_test, ThrowsTheExceptionOfTheHandler) {
  auto f = ask(make(), 7);
  run();
  EXPECT_THROW((void)f.get(), std::invalid_argument);
}

TEST_F(async_ask_test, IsSuspendedWhileThereIsNoCapacity) {
  const auto receiver = make(1);
  ASSERT_TRUE(receiver.try_send(touch{}));
  auto f = ask(receiver, 8);
  EXPECT_EQ(receiver.waiting(), 1U);
  EXPECT_FALSE(f.is_ready());
  run();
  EXPECT_EQ(f.get(), 4);
}

TEST_F(async_ask_test, ADeadlineEndsTheWaitForCapacity) {
  const auto receiver = make(1);
  ASSERT_TRUE(receiver.try_send(touch{}));
  auto f = ask(receiver, 8, deadline::after(1ms));
  while (!f.is_ready()) tasks.run_all();
  EXPECT_EQ(why<actor_error>(std::move(f)), actor_error::full);
  EXPECT_EQ(receiver.waiting(), 0U);
}

TEST_F(async_ask_test, AStopEndsTheWaitForCapacity) {
  const auto receiver = make(1);
  ASSERT_TRUE(receiver.try_send(touch{}));
  std::stop_source stop;
  auto f = ask(receiver, 8, stop.get_token());
  stop.request_stop();
  tasks.run_all();
  EXPECT_EQ(why<actor_error>(std::move(f)), actor_error::stopped);
  EXPECT_EQ(receiver.waiting(), 0U);
}

TEST_F(async_ask_test, ItsLimitsEndTheWaitForTheReplyAndTheResponderIsNotWanted) {
  auto kept = std::make_shared<std::optional<responder<int>>>();
  const auto receiver = system.spawn<silent>(kept);
  std::stop_source stop;
  auto stopped = ask(receiver, 8, stop.get_token());
  run();
  ASSERT_TRUE(kept->has_value());
  EXPECT_TRUE((*kept)->is_wanted());
  stop.request_stop();
  run();
  EXPECT_EQ(why<future_error>(std::move(stopped)), future_error::cancelled);
  EXPECT_FALSE((*kept)->is_wanted());

  auto late = ask(receiver, 8, deadline::after(1ms));
  while (!late.is_ready()) run();
  EXPECT_EQ(why<future_error>(std::move(late)), future_error::timed_out);
  EXPECT_FALSE((*kept)->is_wanted());
}

TEST_F(async_ask_test, AnEndedActorIsTerminated) {
  const auto receiver = make();
  receiver.stop();
  run();
  EXPECT_EQ(why<actor_error>(ask(receiver, 8)), actor_error::terminated);
}

TEST_F(async_ask_test, ARecipientARouterAndAKeyAreAskedInTheSameWay) {
  const auto receiver = make();
  auto by_recipient = ask(recipient<half>(receiver), 8);
  const actor_router<worker> desk(system, {.members = 2});
  auto by_router = ask(desk, 10);
  const keyed_actors<worker> workers(system, {.idle = 0s});
  auto by_key = ask(workers.of("a"), 12);
  run();
  EXPECT_EQ(by_recipient.get(), 4);
  EXPECT_EQ(by_router.get(), 5);
  EXPECT_EQ(by_key.get(), 6);
}

TEST_F(async_ask_test, AFullRouterSuspends) {
  actor_router_options o;
  o.members = 1;
  o.member.mailbox.capacity = 1;
  const actor_router<worker> desk(system, o);
  ASSERT_TRUE(desk.try_send(touch{}));
  auto f = ask(desk, 10);
  EXPECT_FALSE(f.is_ready());
  EXPECT_EQ(desk.members()[0].waiting(), 1U);
  run();
  EXPECT_EQ(f.get(), 5);
}

// ---- forwarded

struct hand_on {
  using reply = int;
  int of;
};

template <class To>
class between : public actor<between<To>, hand_on> {
 public:
  between(To receiver, wait_limits limits)
      : receiver_(std::move(receiver)), limits_(std::move(limits)) {}
  void on(hand_on m, responder<int> asker) {
    (void)this->forward(receiver_, half{m.of}, std::move(asker), limits_);
  }

 private:
  const To receiver_;
  const wait_limits limits_;
};

template <class To>
class between_later : public actor<between_later<To>, hand_on> {
 public:
  between_later(To receiver, wait_limits limits)
      : receiver_(std::move(receiver)), limits_(std::move(limits)) {}
  task<> on(hand_on m, responder<int> asker) {
    half h{m.of};
    auto handing = this->async_forward(receiver_, h, std::move(asker), limits_);
    (void)co_await std::move(handing);
  }

 private:
  const To receiver_;
  const wait_limits limits_;
};

TEST_F(async_ask_test, ARequestIsForwardedToEveryKindOfAddress) {
  const auto receiver = make();
  const recipient<half> as_recipient = receiver;
  const keyed_actors<worker> workers(system, {.idle = 0s});
  const actor_router<worker> desk(system, {.members = 2});
  const auto a = system.spawn<between<recipient<half>>>(as_recipient, wait_limits());
  const auto b = system.spawn<between<keyed_ref<worker>>>(workers.of("a"), wait_limits());
  const auto c = system.spawn<between<actor_router<worker>>>(desk, wait_limits());
  auto fa = a.ask(hand_on{2});
  auto fb = b.ask(hand_on{4});
  auto fc = c.ask(hand_on{6});
  run();
  EXPECT_EQ(fa.get(), 1);
  EXPECT_EQ(fb.get(), 2);
  EXPECT_EQ(fc.get(), 3);
}

TEST_F(async_ask_test, ACoroutineForwardsToEveryKindOfAddress) {
  const auto receiver = make();
  const keyed_actors<worker> workers(system, {.idle = 0s});
  const actor_router<worker> desk(system, {.members = 2});
  const auto a =
      system.spawn<between_later<recipient<half>>>(recipient<half>(receiver), wait_limits());
  const auto b = system.spawn<between_later<keyed_ref<worker>>>(workers.of("a"), wait_limits());
  const auto c = system.spawn<between_later<actor_router<worker>>>(desk, wait_limits());
  auto fa = a.ask(hand_on{2});
  auto fb = b.ask(hand_on{4});
  auto fc = c.ask(hand_on{6});
  run();
  EXPECT_EQ(fa.get(), 1);
  EXPECT_EQ(fb.get(), 2);
  EXPECT_EQ(fc.get(), 3);
}

TEST_F(async_ask_test, AForwardWaitsForCapacityWithoutAThread) {
  const auto receiver = make(1);
  ASSERT_TRUE(receiver.try_send(touch{}));
  const auto a = system.spawn<between_later<ref<worker>>>(receiver, wait_limits());
  auto answer = a.ask(hand_on{2});
  run();
  EXPECT_EQ(answer.get(), 1);
}

TEST_F(async_ask_test, AForwardHasItsLimits) {
  manual_executor never;
  actor_options o;
  o.mailbox.capacity = 1;
  o.on = &never;
  const auto receiver = system.spawn_with<worker>(o);
  ASSERT_TRUE(receiver.try_send(touch{}));
  std::stop_source stop;
  stop.request_stop();
  const wait_limits stopped(stop.get_token());
  const wait_limits late(deadline::after(0ns));
  auto a = system.spawn<between<ref<worker>>>(receiver, stopped).ask(hand_on{2});
  auto b = system.spawn<between<ref<worker>>>(receiver, late).ask(hand_on{2});
  auto c = system.spawn<between_later<ref<worker>>>(receiver, stopped).ask(hand_on{2});
  auto d = system.spawn<between_later<ref<worker>>>(receiver, late).ask(hand_on{2});
  while (!d.is_ready()) run();
  EXPECT_EQ(why<actor_error>(std::move(a)), actor_error::stopped);
  EXPECT_EQ(why<actor_error>(std::move(b)), actor_error::full);
  EXPECT_EQ(why<actor_error>(std::move(c)), actor_error::stopped);
  EXPECT_EQ(why<actor_error>(std::move(d)), actor_error::full);
  receiver.stop();
  never.run_all();
}

TEST_F(async_ask_test, ARecipientCanWaitUntilATime) {
  manual_executor never;
  actor_options o;
  o.mailbox.capacity = 1;
  o.on = &never;
  const recipient<touch> receiver = system.spawn_with<worker>(o);
  EXPECT_EQ(receiver.send(touch{}, std::chrono::steady_clock::now()), status::ok);
  EXPECT_EQ(receiver.send({}, std::chrono::steady_clock::now()), status::timed_out);
  receiver.stop();
  never.run_all();
}

}  // namespace
}  // namespace sluice::async_ask_test
