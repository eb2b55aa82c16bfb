// Full mailboxes, the order of messages, and the status that each sender gets.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sluice/actor/actor_system.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::mailbox_test {
namespace {

using namespace std::chrono_literals;

struct word {
  std::string text;
};
struct urgent_word {
  static constexpr lane in_lane = lane::urgent;
  std::string text;
};
struct low_word {
  static constexpr lane in_lane = lane::low;
  std::string text;
};
struct owned {
  std::unique_ptr<int> value;
};
struct length {
  using reply = std::size_t;
  std::string text;
};
class listener;
struct tell_yourself {
  std::string text;
  int number;
};
struct fill {
  ref<listener> itself;
};
struct fill_waiting {
  ref<listener> itself;
};
struct remind {};
struct have_child {};

using lines = std::vector<std::string>;

class listener : public actor<listener, word, urgent_word, low_word, owned, length, tell_yourself,
                              fill, fill_waiting, remind, have_child> {
 public:
  explicit listener(lines* handled) : handled_(handled) {}
  void on(word w) { handled_->push_back(std::move(w.text)); }
  void on(urgent_word w) { handled_->push_back(std::move(w.text)); }
  void on(low_word w) { handled_->push_back(std::move(w.text)); }
  void on(owned o) { handled_->push_back(std::to_string(*o.value)); }
  std::size_t on(length l) { return l.text.size(); }
  void on(tell_yourself t) {
    handled_->push_back(t.text + std::to_string(t.number));
    EXPECT_TRUE(self().send(urgent_word{"urgent" + std::to_string(t.number)}));
  }
  void on(fill f) {
    handled_->push_back(std::string(to_string(f.itself.try_send(word{"filled"}))));
    handled_->push_back(std::string(to_string(f.itself.try_send(word{"filled"}))));
  }
  void on(remind) { (void)send_after(1s, word{"reminded"}); }
  void on(have_child);
  void on(fill_waiting f) {
    for (int i = 0; i < 3; ++i) {
      handled_->push_back(std::string(to_string(f.itself.send(word{"filled"}))));
    }
  }

 private:
  lines* handled_;
};

class child : public actor<child, word> {
 public:
  child(const ref<listener>& parent, lines* handled) {
    for (int i = 0; i < 2; ++i) {
      handled->push_back(std::string(to_string(parent.send(word{"from the child"}))));
    }
  }
  void on(word) {}
};

void listener::on(have_child) {
  (void)spawn<child>(self(), handled_);
}

// Messages are handled only when the test runs the executor.
class Mailbox : public ::testing::Test {
 protected:
  ref<listener> make(overflow when_full, std::uint32_t capacity = 2) {
    actor_options o;
    o.mailbox.capacity = capacity;
    o.mailbox.overflow = when_full;
    return system->spawn_with<listener>(o, &handled);
  }
  void run() { later.run_all(); }
  // Ends the system while the executor still runs.
  ~Mailbox() override {
    system->stop();
    while (!system->join(deadline::after(0ns))) later.run_all();
  }

  lines handled;
  std::mutex guard;
  std::vector<std::string> lost;  // protected by guard while other threads run
  manual_clock clock;
  manual_executor later;
  std::unique_ptr<actor_system> system = [this] {
    actor_system_options o;
    o.time = &clock;
    o.on_dead_letter = [this](const dead_letter& d) {
      const std::lock_guard hold(guard);
      lost.push_back(std::string(to_string(d.why)));
    };
    return std::make_unique<actor_system>(later, std::move(o));
  }();
};

TEST_F(Mailbox, ThatRejectsReturnsFullAndTheMessageStaysWithTheCaller) {
  const auto receiver = make(overflow::reject);
  EXPECT_TRUE(receiver.send(word{"a"}));
  EXPECT_TRUE(receiver.send(word{"b"}));
  owned kept{std::make_unique<int>(7)};
  EXPECT_EQ(receiver.try_send(std::move(kept)), status::full);
  ASSERT_NE(kept.value, nullptr);
  EXPECT_EQ(receiver.send(std::move(kept)), status::full) << "senders never wait";
  run();
  EXPECT_TRUE(receiver.send(std::move(kept)));
  EXPECT_EQ(kept.value, nullptr);
  run();
  EXPECT_EQ(handled, (lines{"a", "b", "7"}));
  EXPECT_TRUE(lost.empty());
}

TEST_F(Mailbox, ThatBlocksReturnsFullToTrySend) {
  const auto receiver = make(overflow::block, 1);
  EXPECT_TRUE(receiver.try_send(word{"a"}));
  EXPECT_EQ(receiver.try_send(word{"b"}), status::full);
  EXPECT_EQ(receiver.send(word{"b"}, 1ms), status::timed_out);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(receiver.send(word{"b"}, stop.get_token()), status::stopped);
  run();
  EXPECT_EQ(handled, (lines{"a"}));
}

TEST_F(Mailbox, ThatDropsTheNewestReturnsDropped) {
  const auto receiver = make(overflow::drop_newest);
  for (const char* text : {"a", "b"}) EXPECT_TRUE(receiver.send(word{text}));
  EXPECT_EQ(receiver.send(word{"c"}), status::dropped);
  run();
  EXPECT_EQ(handled, (lines{"a", "b"}));
  EXPECT_EQ(lost, (std::vector<std::string>{"dropped by a full mailbox"}));
  EXPECT_EQ(system->stats().dropped, 1U);
}

TEST_F(Mailbox, ThatDropsTheOldestKeepsTheLast) {
  const auto receiver = make(overflow::drop_oldest);
  for (const char* text : {"a", "b", "c", "d"}) EXPECT_TRUE(receiver.send(word{text}));
  run();
  EXPECT_EQ(handled, (lines{"c", "d"}));
  EXPECT_EQ(lost.size(), 2U);
}

TEST_F(Mailbox, ThatKeepsTheLatestReplacesTheNewest) {
  const auto receiver = make(overflow::latest);
  for (const char* text : {"a", "b", "c", "d"}) EXPECT_TRUE(receiver.send(word{text}));
  run();
  EXPECT_EQ(handled, (lines{"a", "d"}));
  EXPECT_EQ(lost.size(), 2U);
}

TEST_F(Mailbox, ThatKeepsTheLatestSkipsMessagesThatDoNotCount) {
  const auto receiver = make(overflow::latest, 1);
  EXPECT_TRUE(receiver.send(remind{}));
  run();
  EXPECT_TRUE(receiver.send(word{"a"}));
  clock.advance(1s);
  EXPECT_TRUE(receiver.send(word{"b"}));
  run();
  EXPECT_EQ(handled, (lines{"b", "reminded"}));
  EXPECT_EQ(lost.size(), 1U);
}

TEST_F(Mailbox, AParentThatIsFullIsFullForTheConstructorOfItsChild) {
  const auto receiver = make(overflow::block, 1);
  EXPECT_TRUE(receiver.send(have_child{}));
  run();
  EXPECT_EQ(handled, (lines{"ok", "full", "from the child"}));
}

TEST_F(Mailbox, OfAnEndedActorIsEmpty) {
  const auto receiver = make(overflow::reject, 4);
  EXPECT_TRUE(receiver.send(word{"a"}));
  EXPECT_EQ(receiver.queued(), 1U);
  receiver.stop();
  run();
  EXPECT_EQ(receiver.queued(), 0U);
}

TEST_F(Mailbox, AnAskThatIsNotAcceptedGetsTheReason) {
  const auto why_not = [](future<std::size_t> f) {
    try {
      (void)f.get();
    } catch (const actor_error& e) {
      return std::string(to_string(e.why()));
    }
    return std::string("it was answered");
  };
  const auto dropping = make(overflow::drop_oldest, 1);
  auto first = dropping.ask(length{"a"});
  EXPECT_TRUE(dropping.send(word{"b"}));
  EXPECT_EQ(why_not(std::move(first)), to_string(actor_error::dropped));
  EXPECT_EQ(lost.size(), 1U);

  const auto rejecting = make(overflow::reject, 1);
  EXPECT_TRUE(rejecting.send(word{"b"}));
  EXPECT_EQ(why_not(rejecting.ask(length{"a"})), to_string(actor_error::full));

  const auto blocking = make(overflow::block, 1);
  EXPECT_TRUE(blocking.send(word{"b"}));
  EXPECT_EQ(why_not(blocking.ask(length{"a"}, deadline::after(1ms))), to_string(actor_error::full));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(why_not(blocking.ask(length{"a"}, stop.get_token())), to_string(actor_error::stopped));
}

TEST_F(Mailbox, UrgentGoesFirstAndLowLast) {
  const auto receiver = make(overflow::reject, 16);
  EXPECT_TRUE(receiver.send(low_word{"l1"}));
  EXPECT_TRUE(receiver.send(word{"n1"}));
  EXPECT_TRUE(receiver.send(low_word{"l2"}));
  EXPECT_TRUE(receiver.send(urgent_word{"u1"}));
  EXPECT_TRUE(receiver.send(word{"n2"}));
  EXPECT_TRUE(receiver.send(urgent_word{"u2"}));
  run();
  EXPECT_EQ(handled, (lines{"u1", "u2", "n1", "n2", "l1", "l2"}));
}

TEST_F(Mailbox, NoLaneStarves) {
  const auto receiver = make(overflow::reject, 200);
  EXPECT_TRUE(receiver.send(low_word{"low"}));
  EXPECT_TRUE(receiver.send(word{"normal"}));
  for (int i = 0; i < 150; ++i) EXPECT_TRUE(receiver.send(urgent_word{"u"}));
  run();
  const auto place = [&](const char* text) {
    return std::find(handled.begin(), handled.end(), text) - handled.begin();
  };
  EXPECT_LT(place("low"), 64);
  EXPECT_LT(place("normal"), 128);
}

TEST_F(Mailbox, AnUrgentMessageOvertakesMessagesThatWereTakenAlready) {
  const auto receiver = make(overflow::reject, 200);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(receiver.send(tell_yourself{"now", 2 - i}));
  run();
  EXPECT_EQ(handled, (lines{"now2", "urgent2", "now1", "urgent1", "now0", "urgent0"}));
}

TEST_F(Mailbox, CountsMessagesThatAreNotBegun) {
  const auto receiver = make(overflow::reject, 2);
  // While the first one is handled, there is capacity for one more.
  EXPECT_TRUE(receiver.send(fill{receiver}));
  EXPECT_TRUE(receiver.send(word{"second"}));
  EXPECT_EQ(receiver.queued(), 2U);
  EXPECT_EQ(receiver.try_send(word{"x"}), status::full);
  run();
  EXPECT_EQ(handled, (lines{"ok", "full", "second", "filled"}));
  EXPECT_EQ(receiver.queued(), 0U);
}

TEST_F(Mailbox, ItsOwnActorGetsFullWhereOthersWouldWait) {
  const auto receiver = make(overflow::block, 2);
  EXPECT_TRUE(receiver.send(fill_waiting{receiver}));
  run();
  EXPECT_EQ(handled, (lines{"ok", "ok", "full", "filled", "filled"}));
}

TEST_F(Mailbox, WaitingSendersAreAdmittedInTheirOrder) {
  const auto receiver = make(overflow::block, 1);
  EXPECT_TRUE(receiver.send(word{"0"}));
  std::vector<std::thread> senders;
  for (int i = 1; i <= 4; ++i) {
    senders.emplace_back([&receiver, i] { EXPECT_TRUE(receiver.send(word{std::to_string(i)})); });
    testing::eventually([&] { return receiver.waiting() == static_cast<std::size_t>(i); });
  }
  while (handled.size() < 5) later.run_all();
  for (auto& t : senders) t.join();
  EXPECT_EQ(handled, (lines{"0", "1", "2", "3", "4"}));
}

TEST_F(Mailbox, AnEndWakesWaitingSenders) {
  const auto receiver = make(overflow::block, 1);
  EXPECT_TRUE(receiver.send(word{"a"}));
  status outcome = status::ok;
  std::thread sender([&] { outcome = receiver.send(word{"b"}); });
  testing::eventually([&] { return receiver.waiting() == 1; });
  receiver.stop();
  run();
  sender.join();
  EXPECT_EQ(outcome, status::closed);
  EXPECT_TRUE(handled.empty());
  EXPECT_EQ(lost.size(), 2U) << "the queued message and the waiting one";
}

TEST_F(Mailbox, ACloseHandlesTheQueuedMessagesAndAcceptsNoOthers) {
  const auto receiver = make(overflow::block, 4);
  EXPECT_TRUE(receiver.send(word{"a"}));
  EXPECT_TRUE(receiver.send(low_word{"b"}));
  receiver.close();
  run();
  EXPECT_EQ(handled, (lines{"a", "b"}));
  EXPECT_TRUE(receiver.is_terminated());
  EXPECT_EQ(receiver.send(word{"c"}), status::closed);
}

TEST_F(Mailbox, AWaitThatTimesOutLeavesTheMessage) {
  const auto receiver = make(overflow::block, 1);
  EXPECT_TRUE(receiver.send(word{"a"}));
  owned kept{std::make_unique<int>(1)};
  EXPECT_EQ(receiver.send(std::move(kept), 1ms), status::timed_out);
  EXPECT_NE(kept.value, nullptr);
  EXPECT_EQ(receiver.waiting(), 0U);
  run();
  EXPECT_EQ(handled, (lines{"a"}));
}

TEST_F(Mailbox, AStoppedWaitLeavesTheMessage) {
  const auto receiver = make(overflow::block, 1);
  EXPECT_TRUE(receiver.send(word{"a"}));
  owned kept{std::make_unique<int>(1)};
  std::stop_source stop;
  status outcome = status::ok;
  {
    const std::jthread sender([&] {
      outcome = receiver.send(std::move(kept), {deadline(), stop.get_token()});
    });
    testing::eventually([&] { return receiver.waiting() == 1; });
    stop.request_stop();
  }
  EXPECT_EQ(outcome, status::stopped);
  ASSERT_NE(kept.value, nullptr);
  EXPECT_EQ(*kept.value, 1);
  EXPECT_EQ(receiver.waiting(), 0U);
  EXPECT_EQ(receiver.queued(), 1U);
  run();
  EXPECT_EQ(handled, (lines{"a"}));
  EXPECT_EQ(system->stats().dead_letters, 0U);
  EXPECT_TRUE(receiver.send(std::move(kept))) << "it can be sent again";
  run();
  EXPECT_EQ(handled, (lines{"a", "1"}));
}

// ---- contending senders

TEST_F(Mailbox, TheWaitOfContendingSendersDecaysAfterTheContention) {
  const auto receiver = make(overflow::reject, 1000);
  const detail::cell& its = receiver.cell_of();
  EXPECT_EQ(its.contention_level(), 0U);
  {
    // No message is handled, so the senders wait longer and longer for each other.
    std::atomic<bool> has_met{false};
    const auto send_many = [&] {
      while (!has_met) (void)receiver.try_send(low_word{"x"});
    };
    const std::jthread one(send_many);
    const std::jthread other(send_many);
    testing::eventually([&] { return its.contention_level() > 0; });
    has_met = true;
  }
  const std::uint32_t most = its.contention_level();
  ASSERT_GT(most, 0U);
  run();
  for (std::uint32_t turns = 1; turns <= most; ++turns) {
    EXPECT_TRUE(receiver.send(word{"alone"}));
    run();
    EXPECT_LE(its.contention_level(), most - turns);
  }
  EXPECT_EQ(its.contention_level(), 0U);
}

// ---- waiting coroutines

task<status> send_word(ref<listener> receiver, std::string text, wait_limits limits = {}) {
  word w{std::move(text)};  // named, for the sake of g++ 12: see ref.hpp
  const status outcome = co_await receiver.async_send(std::move(w), std::move(limits));
  co_return outcome;
}

TEST_F(Mailbox, ACoroutineWaitsForCapacityWithoutAThread) {
  const auto receiver = make(overflow::block, 1);
  manual_executor tasks;
  EXPECT_TRUE(receiver.send(word{"a"}));
  auto sent = spawn(tasks, send_word(receiver, "b"));
  auto also = spawn(tasks, send_word(receiver, "c"));
  tasks.run_all();
  EXPECT_FALSE(sent.is_ready());
  EXPECT_EQ(receiver.waiting(), 2U);
  run();
  tasks.run_all();
  run();
  EXPECT_EQ(sent.get(), status::ok);
  EXPECT_EQ(also.get(), status::ok);
  EXPECT_EQ(handled, (lines{"a", "b", "c"}));
}

TEST_F(Mailbox, ACoroutineGetsAllOutcomesToo) {
  manual_executor tasks;
  const auto outcome_of = [&](const ref<listener>& receiver, wait_limits limits = {}) {
    auto f = spawn(tasks, send_word(receiver, "x", std::move(limits)));
    while (!f.is_ready()) tasks.run_all();
    return static_cast<status::code>(f.get());
  };
  const auto rejecting = make(overflow::reject, 1);
  EXPECT_EQ(outcome_of(rejecting), status::ok);
  EXPECT_EQ(outcome_of(rejecting), status::full);
  const auto blocking = make(overflow::block, 1);
  EXPECT_EQ(outcome_of(blocking), status::ok);
  EXPECT_EQ(outcome_of(blocking, deadline::after(1ms)), status::timed_out);
  const auto dropping = make(overflow::drop_newest, 1);
  EXPECT_EQ(outcome_of(dropping), status::ok);
  EXPECT_EQ(outcome_of(dropping), status::dropped);
  blocking.stop();
  run();
  EXPECT_EQ(outcome_of(blocking), status::closed);
}

// ---- many senders, real threads

TEST(mailbox_stress_test, OrderIsKeptBetweenEachPairAndNothingIsLost) {
  struct numbered {
    int sender;
    int number;
  };
  struct check_order : actor<check_order, numbered> {
    explicit check_order(std::atomic<int>* bad, std::atomic<int>* count)
        : bad_(bad), count_(count) {}
    void on(numbered n) {
      if (n.number != next_[static_cast<std::size_t>(n.sender)]++) ++*bad_;
      ++*count_;
    }
    std::atomic<int>* bad_;
    std::atomic<int>* count_;
    std::vector<int> next_ = std::vector<int>(4, 0);
  };
  constexpr int each = 20'000;
  for (const std::uint32_t capacity : {1U, 3U, 64U, 1024U}) {
    work_stealing_pool pool({.threads = 2});
    actor_system system(pool);
    std::atomic<int> bad = 0;
    std::atomic<int> count = 0;
    actor_options o;
    o.mailbox.capacity = capacity;
    const auto receiver = system.spawn_with<check_order>(o, &bad, &count);
    std::vector<std::thread> senders;
    for (int s = 0; s < 4; ++s) {
      senders.emplace_back([&, s] {
        for (int i = 0; i < each / (capacity < 64 ? 20 : 1); ++i) {
          ASSERT_TRUE(receiver.send(numbered{s, i}));
        }
      });
    }
    for (auto& t : senders) t.join();
    receiver.close();
    EXPECT_EQ(receiver.ended().get().why, end_reason::stopped);
    EXPECT_EQ(bad, 0) << "capacity " << capacity;
    EXPECT_EQ(count, 4 * (each / (capacity < 64 ? 20 : 1))) << "capacity " << capacity;
  }
}

}  // namespace
}  // namespace sluice::mailbox_test
