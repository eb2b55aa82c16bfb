// Senders that wait for capacity are admitted several at a time, but never later than a handler
// that waits for one of them needs it. Each of these tests would wait until its deadline if the
// senders were not admitted before the wait.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/actor/keyed_actor.hpp"
#include "sluice/actor/keyed_actors.hpp"
#include "sluice/actor/memory_actor_store.hpp"
#include "sluice/actor/testing/stage.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/fork.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/sync/detail/wait_report.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/semaphore.hpp"

namespace sluice::capacity_test {
namespace {

using namespace std::chrono_literals;
using testing::act;
using testing::eventually;
using testing::perform;
using testing::player;
using testing::question;
using testing::say;

constexpr std::uint32_t capacity = 64;  // four are admitted at a time
constexpr auto far_off = 10s;           // reached only by a deadlock
constexpr auto long_wait = 50us;        // as in in_turn.hpp: after this, admitted sooner

using in_handler = std::function<void(player&)>;

class Room : public ::testing::Test {
 protected:
  ~Room() override {
    gate.set();
    system.stop();
    EXPECT_TRUE(system.join(deadline::after(far_off)));
  }

  ref<player> make(const std::string& name, actor_options o = {}) {
    o.name = name;
    return system.spawn_with<player>(o, testing::part{.name = name, .log = &log});
  }
  static actor_options crowded() {
    actor_options o;
    o.mailbox.capacity = capacity;
    return o;
  }

  // Fills the receiver's mailbox with these and further messages, while it handles a message that
  // waits for the gate.
  template <class... First>
  void fill(First... first) {
    EXPECT_TRUE(receiver.send(act{[this](player&) {
      begun.set();
      gate.wait();
      opened = std::chrono::steady_clock::now();
    }}));
    begun.wait();
    const bool taken = (true && ... && static_cast<bool>(receiver.try_send(std::move(first))));
    EXPECT_TRUE(taken);
    while (receiver.try_send(say{"x"})) {
    }
  }
  // Makes the sender wait for capacity; it begins no other message until it is admitted.
  void crowd() {
    const std::size_t before = receiver.waiting();
    EXPECT_TRUE(sender.send(perform{[this](player&) -> task<> {
      say word{"late"};
      const status outcome = co_await receiver.async_send(std::move(word));
      EXPECT_EQ(outcome, status::ok);
      admitted.set();
    }}));
    eventually([&] { return receiver.waiting() > before; });
  }
  // These are begun first when the mailbox is full and the sender waits.
  template <class... First>
  void when_crowded(First... first) {
    fill(std::move(first)...);
    crowd();
    gate.set();
  }
  // Waits for the sender's reply.
  std::string asks() const {
    try {
      return sender.ask(question{}, deadline::after(far_off)).get();
    } catch (const std::exception& e) {
      return e.what();
    }
  }
  // The results of a handler.
  std::string found() {
    if (!done.wait(2 * far_off)) return "nothing";
    return answer;
  }
  void finds(std::string text) {
    answer = std::move(text);
    done.set();
  }

  testing::journal log;
  event begun;
  event gate;
  event admitted;
  event done;
  std::string answer;                            // published by done
  std::chrono::steady_clock::time_point opened;  // when the gate was opened; published by done
  memory_actor_store store;
  work_stealing_pool pool{{.threads = 4}};
  actor_system system{pool};
  ref<player> receiver = make("receiver", crowded());
  ref<player> sender = make("sender");
};

TEST_F(Room, AHandlerCanBlockForAWaitingSender) {
  when_crowded(act{[this](player&) { finds(asks()); }});
  EXPECT_EQ(found(), "sender");
}

TEST_F(Room, ACoroutineCanAwaitAWaitingSender) {
  when_crowded(perform{[this](player&) -> task<> {
    question q;
    finds(co_await sender.ask(q, deadline::after(far_off)));
  }});
  EXPECT_EQ(found(), "sender");
}

TEST_F(Room, ACoroutineCanAwaitAWaitingSenderReentrantly) {
  when_crowded(perform{[this](player&) -> task<> {
    auto reply = sender.ask(question{}, deadline::after(far_off));
    finds(co_await reentrant(std::move(reply)));
  }});
  EXPECT_EQ(found(), "sender");
}

TEST_F(Room, AStashedMessageCanBlockForAWaitingSender) {
  when_crowded(
      act{[this](player& me) { EXPECT_TRUE(me.stash(act{[this](player&) { finds(asks()); }})); }},
      act{[](player& me) { me.unstash_all(); }});
  EXPECT_EQ(found(), "sender");
}

TEST_F(Room, TheLastMessageOfATurnCanBlockForAWaitingSender) {
  actor_options o = crowded();
  o.per_turn = 2;
  receiver = make("receiver of two", o);
  when_crowded(act{[this](player&) { finds(asks()); }});
  EXPECT_EQ(found(), "sender");
}

TEST_F(Room, AHandlerCanBlockForASenderThatArrivedSinceTheLastMessage) {
  fill(act{[this](player&) {
         while (receiver.try_send(say{"x"})) {  // full again
         }
         crowd();
       }},
       act{[this](player&) { finds(asks()); }});
  gate.set();
  EXPECT_EQ(found(), "sender");
}

// Another actor uses the thread while this one is queued.
TEST_F(Room, NoSenderIsLeftWaitingBetweenTurns) {
  thread_pool alone({.core = 1});
  {
    actor_options o = crowded();
    o.per_turn = 1;
    o.on = &alone;
    receiver = make("receiver of one", o);
    o.per_turn = 64;
    const ref<player> neighbour = make("neighbour", o);
    when_crowded(act{
        [&](player&) { EXPECT_TRUE(neighbour.send(act{[this](player&) { finds(asks()); }})); }});
    EXPECT_EQ(found(), "sender");
    system.stop();
    EXPECT_TRUE(system.join(deadline::after(far_off)));
  }
}

TEST_F(Room, WaitingSendersAreAdmittedWhenTheActorFails) {
  when_crowded(act{[](player& me) { testing::falls(me); }});
  EXPECT_TRUE(admitted.wait(far_off));
}

TEST_F(Room, AHandlerCanWaitForTheNextActionOfAWaitingSender) {
  when_crowded(act{[this](player&) { finds(admitted.wait(far_off) ? "let in" : "not let in"); }});
  EXPECT_EQ(found(), "let in");
}

TEST_F(Room, AHandlerCanWaitForCapacityAtAWaitingSender) {
  actor_options o;
  o.mailbox.capacity = 1;
  sender = make("small sender", o);
  when_crowded(act{[this](player&) {
    while (sender.try_send(say{"y"})) {
    }
    finds(std::string(to_string(sender.send(say{"y"}, far_off))));
  }});
  EXPECT_EQ(found(), "ok");
}

TEST_F(Room, AChildsConstructorCanBlockForAWaitingSender) {
  when_crowded(act{[this](player& me) {
    (void)me.hire(testing::part{.name = "child", .at_start = [this](player&) { finds(asks()); }});
  }});
  EXPECT_EQ(found(), "sender");
}

TEST_F(Room, AForkOnAnotherThreadCanBlockForAWaitingSender) {
  when_crowded(act{[this](player&) {
    event child_begun;
    auto child = fork([&] {
      child_begun.set();
      return asks();
    });
    eventually([&] { return child_begun.is_set(); });  // not on this thread, in the join
    finds(child.join());
  }});
  EXPECT_EQ(found(), "sender");
}

TEST_F(Room, AWaitingThreadIsAdmittedToo) {
  fill(act{[this](player&) { finds(admitted.wait(far_off) ? "let in" : "not let in"); }});
  std::thread outside([this] {
    EXPECT_TRUE(receiver.send(say{"late"}));
    admitted.set();
  });
  eventually([&] { return receiver.waiting() == 1; });
  gate.set();
  EXPECT_EQ(found(), "let in");
  outside.join();
}

TEST_F(Room, AtMostASixteenthOfTheMailboxIsWithheld) {
  std::vector<std::size_t> waiting;
  std::chrono::steady_clock::time_point second;
  const auto look = act{[&](player&) {
    waiting.push_back(receiver.waiting());
    if (waiting.size() == 2) second = std::chrono::steady_clock::now();
    if (waiting.size() == 4) done.set();
  }};
  const auto takes_long = [&] {
    for (event* const each : {&begun, &gate, &done}) each->reset();
    waiting.clear();
    fill(look, look, look, look);
    for (int i = 0; i < 6; ++i) {
      sender = make("sender" + std::to_string(i));
      crowd();
    }
    gate.set();
    (void)found();
    eventually([&] { return receiver.waiting() == 0; });  // before the system is stopped
    return second - opened >= long_wait;
  };
  eventually([&] { return !takes_long(); }, "two messages without a pause");
  EXPECT_EQ(waiting, (std::vector<std::size_t>{6, 6, 6, 2}))
      << "four have been begun, and four of six are admitted";
}

TEST_F(Room, TheMessageAfterALongOneAdmitsSenders) {
  const auto long_one = act{[](player&) {
    const auto until = std::chrono::steady_clock::now() + 1ms;
    while (std::chrono::steady_clock::now() < until) {
    }
  }};
  when_crowded(long_one, act{[this](player&) { finds(std::to_string(receiver.waiting())); }});
  EXPECT_EQ(found(), "0");
}

// ---- passivation

struct ask_him {
  ref<player> target;
  event* gate;
  event* begun;
  event* done;
};
struct noise {};

class desk : public keyed_actor<desk, ask_him, noise> {
 public:
  void on(ask_him m) {
    if (m.gate != nullptr) {
      m.begun->set();
      return m.gate->wait();
    }
    try {
      if (m.target.ask(question{}, deadline::after(far_off)).get() == "sender") m.done->set();
    } catch (const std::exception&) {
    }
  }
  void on(noise) {}
  std::string save() const { return {}; }
  void load(std::string_view) {}
};

TEST_F(Room, AKeyedActorCanBlockForAWaitingSender) {
  keyed_options o;
  o.store = &store;
  o.each = crowded();
  const keyed_actors<desk> desks(system, o);
  const keyed_ref<desk> keyed = desks.of("one");
  EXPECT_TRUE(keyed.send(ask_him{sender, &gate, &begun, nullptr}));
  begun.wait();
  EXPECT_TRUE(keyed.try_send(ask_him{sender, nullptr, nullptr, &done}));
  while (keyed.try_send(noise{})) {
  }
  EXPECT_TRUE(sender.send(perform{[keyed](player&) -> task<> {
    noise late;
    const status outcome = co_await keyed.async_send(late);
    EXPECT_EQ(outcome, status::ok);
  }}));
  eventually([&] { return keyed.now().waiting() == 1; });
  gate.set();
  EXPECT_TRUE(done.wait(2 * far_off));
}

// Records how many senders wait for capacity when the wait for a certain object is reported.
class senders_at_a_wait final : public wait_report::observer {
 public:
  void wait_started(wait_report::wait_record& w) noexcept override {
    wait_report::subject on;
    if (w.wait_subject(&on, 1) == 1 && on.object == object) waiting = receiver->waiting();
  }
  void wait_ended(wait_report::wait_record&) noexcept override {}
  void took(const wait_report::hold&) noexcept override {}
  void gave(const void*, wait_report::party, std::int64_t) noexcept override {}
  void used(const void*, wait_report::side, wait_report::party) noexcept override {}
  void destroyed(const void*) noexcept override {}

  const void* object = nullptr;
  const ref<player>* receiver = nullptr;
  atomic<std::size_t> waiting{0};
};

// A deadlock search at that moment would report those senders, and the handler with them.
class WatchedRoom : public Room {
 protected:
  WatchedRoom() {
    seen().object = &slots;
    seen().receiver = &receiver;
    seen().waiting = 1000;
    before_ = wait_report::observe(&seen());
  }
  ~WatchedRoom() override { wait_report::observe(before_); }

  static senders_at_a_wait& seen() {
    static senders_at_a_wait watching;  // an installed watcher is never destroyed
    return watching;
  }
  void release_one() {
    eventually([&] { return slots.waiting() == 1; });
    slots.release();
    EXPECT_EQ(found(), "a permit");
  }

  semaphore slots{0};

 private:
  wait_report::observer* before_;
};

TEST_F(WatchedRoom, AHandlerAdmitsSendersBeforeItsWaitIsReported) {
  when_crowded(act{[this](player&) {
    slots.acquire();
    finds("a permit");
  }});
  release_one();
  EXPECT_EQ(seen().waiting, 0U);
}

TEST_F(WatchedRoom, ACoroutineAdmitsSendersBeforeItsWaitIsReported) {
  when_crowded(perform{[this](player&) -> task<> {
    EXPECT_TRUE(co_await slots.async_acquire());
    finds("a permit");
  }});
  release_one();
  EXPECT_EQ(seen().waiting, 0U);
}

}  // namespace
}  // namespace sluice::capacity_test
