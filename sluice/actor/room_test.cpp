// Senders that wait for room are let in several at a time: and never later than a handler that
// waits for one of them needs it. Each of these would wait until its deadline if what is owed to
// senders were not paid before the wait.
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
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/watch.hpp"

namespace sluice::room_test {
namespace {

using namespace std::chrono_literals;
using testing::act;
using testing::eventually;
using testing::perform;
using testing::player;
using testing::question;
using testing::say;

constexpr std::uint32_t capacity = 64;  // lets in four at a time
constexpr auto far_off = 10s;           // only a deadlock comes to it
constexpr auto long_wait = 50us;        // as in in_turn.hpp: who waits so long is let in sooner

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

  // Fills the receiver's mailbox with these and others behind them, while it is on a message that
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
  // Has the sender wait for room; nothing else is begun by it until it is let in.
  void crowd() {
    const std::size_t before = receiver.waiting();
    EXPECT_TRUE(sender.send(perform{[this](player&) -> task<> {
      say word{"late"};
      const status how = co_await receiver.async_send(std::move(word));
      EXPECT_EQ(how, status::ok);
      let_in.set();
    }}));
    eventually([&] { return receiver.waiting() > before; });
  }
  // These are the first to be begun when the mailbox is full and the sender waits.
  template <class... First>
  void when_crowded(First... first) {
    fill(std::move(first)...);
    crowd();
    gate.set();
  }
  // What the sender answers, to one that waits.
  std::string asks() const {
    try {
      return sender.ask(question{}, deadline::after(far_off)).get();
    } catch (const std::exception& e) {
      return e.what();
    }
  }
  // What a handler has found out.
  std::string found() {
    if (!done.try_wait_for(2 * far_off)) return "nothing";
    return answer;
  }
  void finds(std::string what) {
    answer = std::move(what);
    done.set();
  }

  testing::journal log;
  event begun;
  event gate;
  event let_in;
  event done;
  std::string answer;                            // published by done
  std::chrono::steady_clock::time_point opened;  // when the gate was passed; published by done
  memory_actor_store store;
  work_stealing_pool pool{{.threads = 4}};
  actor_system system{pool};
  ref<player> receiver = make("receiver", crowded());
  ref<player> sender = make("sender");
};

TEST_F(Room, AHandlerCanBlockForOneThatWaits) {
  when_crowded(act{[this](player&) { finds(asks()); }});
  EXPECT_EQ(found(), "sender");
}

TEST_F(Room, ACoroutineCanAwaitOneThatWaits) {
  when_crowded(perform{[this](player&) -> task<> {
    question q;
    finds(co_await sender.ask(q, deadline::after(far_off)));
  }});
  EXPECT_EQ(found(), "sender");
}

TEST_F(Room, ACoroutineCanAwaitItLettingOthersIn) {
  when_crowded(perform{[this](player&) -> task<> {
    auto reply = sender.ask(question{}, deadline::after(far_off));
    finds(co_await letting_others_in(std::move(reply)));
  }});
  EXPECT_EQ(found(), "sender");
}

TEST_F(Room, AStashedMessageCanBlockForOneThatWaits) {
  when_crowded(
      act{[this](player& me) { EXPECT_TRUE(me.stash(act{[this](player&) { finds(asks()); }})); }},
      act{[](player& me) { me.unstash_all(); }});
  EXPECT_EQ(found(), "sender");
}

TEST_F(Room, TheLastMessageOfATurnCanBlockForOneThatWaits) {
  actor_options o = crowded();
  o.per_turn = 2;
  receiver = make("receiver of two", o);
  when_crowded(act{[this](player&) { finds(asks()); }});
  EXPECT_EQ(found(), "sender");
}

TEST_F(Room, AHandlerCanBlockForOneThatHasComeSinceTheLastMessage) {
  fill(act{[this](player&) {
         while (receiver.try_send(say{"x"})) {  // full again
         }
         crowd();
       }},
       act{[this](player&) { finds(asks()); }});
  gate.set();
  EXPECT_EQ(found(), "sender");
}

// The thread is another actor's while this one stands in line.
TEST_F(Room, NothingIsOwedBetweenTurns) {
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

TEST_F(Room, ThoseWhoWaitAreLetInWhenTheActorFails) {
  when_crowded(act{[](player& me) { testing::falls(me); }});
  EXPECT_TRUE(let_in.try_wait_for(far_off));
}

TEST_F(Room, AHandlerCanWaitForAnythingThatOneWhoWaitsDoesNext) {
  when_crowded(
      act{[this](player&) { finds(let_in.try_wait_for(far_off) ? "let in" : "not let in"); }});
  EXPECT_EQ(found(), "let in");
}

TEST_F(Room, AHandlerCanWaitForRoomAtOneWhoWaits) {
  actor_options o;
  o.mailbox.capacity = 1;
  sender = make("small sender", o);
  when_crowded(act{[this](player&) {
    while (sender.try_send(say{"y"})) {
    }
    finds(std::string(to_string(sender.try_send_for(say{"y"}, far_off))));
  }});
  EXPECT_EQ(found(), "ok");
}

TEST_F(Room, AChildsConstructorCanBlockForOneThatWaits) {
  when_crowded(act{[this](player& me) {
    (void)me.hire(testing::part{.name = "child", .at_start = [this](player&) { finds(asks()); }});
  }});
  EXPECT_EQ(found(), "sender");
}

TEST_F(Room, AForkThatAnotherThreadRunsCanBlockForOneThatWaits) {
  when_crowded(act{[this](player&) {
    event child_begun;
    auto child = fork([&] {
      child_begun.set();
      return asks();
    });
    eventually([&] { return child_begun.is_set(); });  // and not here, in the join
    finds(child.join());
  }});
  EXPECT_EQ(found(), "sender");
}

TEST_F(Room, AThreadThatWaitsIsLetInToo) {
  fill(act{[this](player&) { finds(let_in.try_wait_for(far_off) ? "let in" : "not let in"); }});
  std::thread outside([this] {
    EXPECT_TRUE(receiver.send(say{"late"}));
    let_in.set();
  });
  eventually([&] { return receiver.waiting() == 1; });
  gate.set();
  EXPECT_EQ(found(), "let in");
  outside.join();
}

TEST_F(Room, ASixteenthOfTheMailboxIsTheMostThatIsOwed) {
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
    eventually([&] { return receiver.waiting() == 0; });  // the others too, before the system stops
    return second - opened >= long_wait;
  };
  eventually([&] { return !takes_long(); }, "two messages without a pause");
  EXPECT_EQ(waiting, (std::vector<std::size_t>{6, 6, 6, 2}))
      << "four have been begun, and four of six are let in";
}

TEST_F(Room, AMessageThatTakesLongHasThemLetInByTheNext) {
  const auto long_one = act{[](player&) {
    const auto until = std::chrono::steady_clock::now() + 1ms;
    while (std::chrono::steady_clock::now() < until) {
    }
  }};
  when_crowded(long_one, act{[this](player&) { finds(std::to_string(receiver.waiting())); }});
  EXPECT_EQ(found(), "0");
}

// ---- one that rests and comes back

struct ask_him {
  ref<player> whom;
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
      if (m.whom.ask(question{}, deadline::after(far_off)).get() == "sender") m.done->set();
    } catch (const std::exception&) {
    }
  }
  void on(noise) {}
  std::string save() const { return {}; }
  void load(std::string_view) {}
};

TEST_F(Room, AKeyedActorCanBlockForOneThatWaits) {
  keyed_options o;
  o.store = &store;
  o.each = crowded();
  const keyed_actors<desk> desks(system, o);
  const keyed_ref<desk> to = desks.of("one");
  EXPECT_TRUE(to.send(ask_him{sender, &gate, &begun, nullptr}));
  begun.wait();
  EXPECT_TRUE(to.try_send(ask_him{sender, nullptr, nullptr, &done}));
  while (to.try_send(noise{})) {
  }
  EXPECT_TRUE(sender.send(perform{[to](player&) -> task<> {
    noise late;
    const status how = co_await to.async_send(late);
    EXPECT_EQ(how, status::ok);
  }}));
  eventually([&] { return to.now().waiting() == 1; });
  gate.set();
  EXPECT_TRUE(done.try_wait_for(2 * far_off));
}

// How many senders wait for room when a wait for a certain object is told of.
class senders_at_a_wait final : public watch::observer {
 public:
  void waits(watch::wait_record& w) noexcept override {
    watch::subject on;
    if (w.about(&on, 1) == 1 && on.object == object) waiting = receiver->waiting();
  }
  void waits_no_more(watch::wait_record&) noexcept override {}
  void took(const watch::hold&) noexcept override {}
  void gave(const void*, watch::party, std::int64_t) noexcept override {}
  void used(const void*, watch::side, watch::party) noexcept override {}
  void gone(const void*) noexcept override {}

  const void* object = nullptr;
  const ref<player>* receiver = nullptr;
  atomic<std::size_t> waiting{0};
};

// Whoever looks at that moment would take those senders for stuck, and the handler with them.
class WatchedRoom : public Room {
 protected:
  WatchedRoom() {
    seen().object = &slots;
    seen().receiver = &receiver;
    seen().waiting = 1000;
    before_ = watch::observe(&seen());
  }
  ~WatchedRoom() override { watch::observe(before_); }

  static senders_at_a_wait& seen() {
    static senders_at_a_wait watching;  // one that has watched is never destroyed
    return watching;
  }
  void let_go() {
    eventually([&] { return slots.waiting() == 1; });
    slots.release();
    EXPECT_EQ(found(), "a permit");
  }

  semaphore slots{0};

 private:
  watch::observer* before_;
};

TEST_F(WatchedRoom, AHandlerPaysWhatItOwesBeforeItsWaitIsToldOf) {
  when_crowded(act{[this](player&) {
    slots.acquire();
    finds("a permit");
  }});
  let_go();
  EXPECT_EQ(seen().waiting, 0U);
}

TEST_F(WatchedRoom, ACoroutinePaysWhatItOwesBeforeItsWaitIsToldOf) {
  when_crowded(perform{[this](player&) -> task<> {
    EXPECT_TRUE(co_await slots.async_acquire());
    finds("a permit");
  }});
  let_go();
  EXPECT_EQ(seen().waiting, 0U);
}

}  // namespace
}  // namespace sluice::room_test
