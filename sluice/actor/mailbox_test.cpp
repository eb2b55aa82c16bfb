// What a mailbox does when it is full, in which order messages come out, and who hears what.
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

using heard = std::vector<std::string>;

class listener : public actor<listener, word, urgent_word, low_word, owned, length, tell_yourself,
                              fill, fill_waiting, remind, have_child> {
 public:
  explicit listener(heard* to) : heard_(to) {}
  void on(word w) { heard_->push_back(std::move(w.text)); }
  void on(urgent_word w) { heard_->push_back(std::move(w.text)); }
  void on(low_word w) { heard_->push_back(std::move(w.text)); }
  void on(owned o) { heard_->push_back(std::to_string(*o.value)); }
  std::size_t on(length l) { return l.text.size(); }
  void on(tell_yourself t) {
    heard_->push_back(t.text + std::to_string(t.number));
    EXPECT_TRUE(self().send(urgent_word{"urgent" + std::to_string(t.number)}));
  }
  void on(fill f) {
    heard_->push_back(std::string(to_string(f.itself.try_send(word{"filled"}))));
    heard_->push_back(std::string(to_string(f.itself.try_send(word{"filled"}))));
  }
  void on(remind) { (void)send_after(1s, word{"reminded"}); }
  void on(have_child);
  void on(fill_waiting f) {
    for (int i = 0; i < 3; ++i) {
      heard_->push_back(std::string(to_string(f.itself.send(word{"filled"}))));
    }
  }

 private:
  heard* heard_;
};

class child : public actor<child, word> {
 public:
  child(const ref<listener>& parent, heard* to) {
    for (int i = 0; i < 2; ++i) {
      to->push_back(std::string(to_string(parent.send(word{"from the child"}))));
    }
  }
  void on(word) {}
};

void listener::on(have_child) {
  (void)spawn<child>(self(), heard_);
}

// Nothing is handled before the test says so.
class Mailbox : public ::testing::Test {
 protected:
  ref<listener> make(overflow when_full, std::uint32_t capacity = 2) {
    actor_options o;
    o.mailbox.capacity = capacity;
    o.mailbox.overflow = when_full;
    return system->spawn_with<listener>(o, &said);
  }
  void run() { later.run_all(); }
  // Ends the system while there is somebody to run it.
  ~Mailbox() override {
    system->stop();
    while (!system->join(deadline::after(0ns))) later.run_all();
  }

  heard said;
  std::mutex guard;
  std::vector<std::string> lost;  // protected by guard while there are other threads
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

TEST_F(Mailbox, ThatRejectsSaysFullAndTheMessageStaysWithTheCaller) {
  const auto to = make(overflow::reject);
  EXPECT_TRUE(to.send(word{"a"}));
  EXPECT_TRUE(to.send(word{"b"}));
  owned mine{std::make_unique<int>(7)};
  EXPECT_EQ(to.try_send_ref(mine), status::full);
  ASSERT_NE(mine.value, nullptr);
  EXPECT_EQ(to.send_within(mine, {}), status::full) << "it never lets wait";
  run();
  EXPECT_TRUE(to.send_within(mine, {}));
  EXPECT_EQ(mine.value, nullptr);
  run();
  EXPECT_EQ(said, (heard{"a", "b", "7"}));
  EXPECT_TRUE(lost.empty());
}

TEST_F(Mailbox, ThatBlocksSaysFullToWhoDoesNotWait) {
  const auto to = make(overflow::block, 1);
  EXPECT_TRUE(to.try_send(word{"a"}));
  EXPECT_EQ(to.try_send(word{"b"}), status::full);
  EXPECT_EQ(to.try_send_for(word{"b"}, 1ms), status::timed_out);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(to.send(word{"b"}, stop.get_token()), status::stopped);
  run();
  EXPECT_EQ(said, (heard{"a"}));
}

TEST_F(Mailbox, ThatDropsTheNewestSaysDropped) {
  const auto to = make(overflow::drop_newest);
  for (const char* text : {"a", "b"}) EXPECT_TRUE(to.send(word{text}));
  EXPECT_EQ(to.send(word{"c"}), status::dropped);
  run();
  EXPECT_EQ(said, (heard{"a", "b"}));
  EXPECT_EQ(lost, (std::vector<std::string>{"dropped by a full mailbox"}));
  EXPECT_EQ(system->stats().dropped, 1U);
}

TEST_F(Mailbox, ThatDropsTheOldestKeepsTheLast) {
  const auto to = make(overflow::drop_oldest);
  for (const char* text : {"a", "b", "c", "d"}) EXPECT_TRUE(to.send(word{text}));
  run();
  EXPECT_EQ(said, (heard{"c", "d"}));
  EXPECT_EQ(lost.size(), 2U);
}

TEST_F(Mailbox, ThatKeepsTheLatestReplacesTheNewest) {
  const auto to = make(overflow::latest);
  for (const char* text : {"a", "b", "c", "d"}) EXPECT_TRUE(to.send(word{text}));
  run();
  EXPECT_EQ(said, (heard{"a", "d"}));
  EXPECT_EQ(lost.size(), 2U);
}

TEST_F(Mailbox, ThatKeepsTheLatestLooksPastWhatDoesNotCount) {
  const auto to = make(overflow::latest, 1);
  EXPECT_TRUE(to.send(remind{}));
  run();
  EXPECT_TRUE(to.send(word{"a"}));
  clock.advance(1s);
  EXPECT_TRUE(to.send(word{"b"}));
  run();
  EXPECT_EQ(said, (heard{"b", "reminded"}));
  EXPECT_EQ(lost.size(), 1U);
}

TEST_F(Mailbox, AParentThatIsFullIsFullForTheConstructorOfItsChild) {
  const auto to = make(overflow::block, 1);
  EXPECT_TRUE(to.send(have_child{}));
  run();
  EXPECT_EQ(said, (heard{"ok", "full", "from the child"}));
}

TEST_F(Mailbox, OfOneThatHasEndedIsEmpty) {
  const auto to = make(overflow::reject, 4);
  EXPECT_TRUE(to.send(word{"a"}));
  EXPECT_EQ(to.queued(), 1U);
  to.stop();
  run();
  EXPECT_EQ(to.queued(), 0U);
}

TEST_F(Mailbox, AnAskThatIsNotTakenHearsWhy) {
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
  const auto to = make(overflow::reject, 16);
  EXPECT_TRUE(to.send(low_word{"l1"}));
  EXPECT_TRUE(to.send(word{"n1"}));
  EXPECT_TRUE(to.send(low_word{"l2"}));
  EXPECT_TRUE(to.send(urgent_word{"u1"}));
  EXPECT_TRUE(to.send(word{"n2"}));
  EXPECT_TRUE(to.send(urgent_word{"u2"}));
  run();
  EXPECT_EQ(said, (heard{"u1", "u2", "n1", "n2", "l1", "l2"}));
}

TEST_F(Mailbox, NoLaneStarves) {
  const auto to = make(overflow::reject, 200);
  EXPECT_TRUE(to.send(low_word{"low"}));
  EXPECT_TRUE(to.send(word{"normal"}));
  for (int i = 0; i < 150; ++i) EXPECT_TRUE(to.send(urgent_word{"u"}));
  run();
  const auto place = [&](const char* what) {
    return std::find(said.begin(), said.end(), what) - said.begin();
  };
  EXPECT_LT(place("low"), 64);
  EXPECT_LT(place("normal"), 128);
}

TEST_F(Mailbox, AnUrgentMessageOvertakesABatchThatWasTakenAlready) {
  const auto to = make(overflow::reject, 200);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(to.send(tell_yourself{"now", 2 - i}));
  run();
  EXPECT_EQ(said, (heard{"now2", "urgent2", "now1", "urgent1", "now0", "urgent0"}));
}

TEST_F(Mailbox, CountsWhatHasNotBegun) {
  const auto to = make(overflow::reject, 2);
  // While the first is handled, there is room for one more than before.
  EXPECT_TRUE(to.send(fill{to}));
  EXPECT_TRUE(to.send(word{"second"}));
  EXPECT_EQ(to.queued(), 2U);
  EXPECT_EQ(to.try_send(word{"x"}), status::full);
  run();
  EXPECT_EQ(said, (heard{"ok", "full", "second", "filled"}));
  EXPECT_EQ(to.queued(), 0U);
}

TEST_F(Mailbox, ItsOwnActorHearsFullWhereOthersWouldWait) {
  const auto to = make(overflow::block, 2);
  EXPECT_TRUE(to.send(fill_waiting{to}));
  run();
  EXPECT_EQ(said, (heard{"ok", "ok", "full", "filled", "filled"}));
}

TEST_F(Mailbox, SendersThatWaitAreLetInInTheirOrder) {
  const auto to = make(overflow::block, 1);
  EXPECT_TRUE(to.send(word{"0"}));
  std::vector<std::thread> senders;
  for (int i = 1; i <= 4; ++i) {
    senders.emplace_back([&to, i] { EXPECT_TRUE(to.send(word{std::to_string(i)})); });
    testing::eventually([&] { return to.waiting() == static_cast<std::size_t>(i); });
  }
  while (said.size() < 5) later.run_all();
  for (auto& t : senders) t.join();
  EXPECT_EQ(said, (heard{"0", "1", "2", "3", "4"}));
}

TEST_F(Mailbox, OneThatEndsTellsSendersThatWait) {
  const auto to = make(overflow::block, 1);
  EXPECT_TRUE(to.send(word{"a"}));
  status how = status::ok;
  std::thread sender([&] { how = to.send(word{"b"}); });
  testing::eventually([&] { return to.waiting() == 1; });
  to.stop();
  run();
  sender.join();
  EXPECT_EQ(how, status::closed);
  EXPECT_TRUE(said.empty());
  EXPECT_EQ(lost.size(), 2U) << "the one inside, and the one that waited";
}

TEST_F(Mailbox, ACloseHandlesWhatIsInsideAndTakesNoMore) {
  const auto to = make(overflow::block, 4);
  EXPECT_TRUE(to.send(word{"a"}));
  EXPECT_TRUE(to.send(low_word{"b"}));
  to.close();
  run();
  EXPECT_EQ(said, (heard{"a", "b"}));
  EXPECT_TRUE(to.is_over());
  EXPECT_EQ(to.send(word{"c"}), status::closed);
}

TEST_F(Mailbox, AWaitThatTimesOutTookNothing) {
  const auto to = make(overflow::block, 1);
  EXPECT_TRUE(to.send(word{"a"}));
  owned mine{std::make_unique<int>(1)};
  EXPECT_EQ(to.send_within(mine, deadline::after(1ms)), status::timed_out);
  EXPECT_NE(mine.value, nullptr);
  EXPECT_EQ(to.waiting(), 0U);
  run();
  EXPECT_EQ(said, (heard{"a"}));
}

TEST_F(Mailbox, AWaitThatIsStoppedInTheMiddleTookNothing) {
  const auto to = make(overflow::block, 1);
  EXPECT_TRUE(to.send(word{"a"}));
  owned mine{std::make_unique<int>(1)};
  std::stop_source stop;
  status how = status::ok;
  {
    const std::jthread sender([&] { how = to.send_within(mine, {deadline(), stop.get_token()}); });
    testing::eventually([&] { return to.waiting() == 1; });
    stop.request_stop();
  }
  EXPECT_EQ(how, status::stopped);
  ASSERT_NE(mine.value, nullptr);
  EXPECT_EQ(*mine.value, 1);
  EXPECT_EQ(to.waiting(), 0U);
  EXPECT_EQ(to.queued(), 1U);
  run();
  EXPECT_EQ(said, (heard{"a"}));
  EXPECT_EQ(system->stats().dead_letters, 0U);
  EXPECT_TRUE(to.send(std::move(mine))) << "it can be sent once more";
  run();
  EXPECT_EQ(said, (heard{"a", "1"}));
}

// ---- senders that meet

TEST_F(Mailbox, SendersWaitForOneAnotherLessAgainWhenTheyMeetNoMore) {
  const auto to = make(overflow::reject, 1000);
  const detail::cell& its = to.cell_of();
  EXPECT_EQ(its.patience(), 0U);
  {
    // Nobody takes out what they send: they get more and more patient.
    std::atomic<bool> has_met{false};
    const auto send_many = [&] {
      while (!has_met) (void)to.try_send(low_word{"x"});
    };
    const std::jthread one(send_many);
    const std::jthread other(send_many);
    testing::eventually([&] { return its.patience() > 0; });
    has_met = true;
  }
  const std::uint32_t most = its.patience();
  ASSERT_GT(most, 0U);
  run();
  for (std::uint32_t turns = 1; turns <= most; ++turns) {
    EXPECT_TRUE(to.send(word{"alone"}));
    run();
    EXPECT_LE(its.patience(), most - turns);
  }
  EXPECT_EQ(its.patience(), 0U);
}

// ---- with coroutines that wait

task<status> send_word(ref<listener> to, std::string text, wait_limits limits = {}) {
  word w{std::move(text)};  // named, for the sake of g++ 12: see ref.hpp
  const status how = co_await to.async_send(std::move(w), std::move(limits));
  co_return how;
}

TEST_F(Mailbox, ACoroutineWaitsForRoomWithoutAThread) {
  const auto to = make(overflow::block, 1);
  manual_executor tasks;
  EXPECT_TRUE(to.send(word{"a"}));
  auto sent = spawn(tasks, send_word(to, "b"));
  auto also = spawn(tasks, send_word(to, "c"));
  tasks.run_all();
  EXPECT_FALSE(sent.is_ready());
  EXPECT_EQ(to.waiting(), 2U);
  run();
  tasks.run_all();
  run();
  EXPECT_EQ(sent.get(), status::ok);
  EXPECT_EQ(also.get(), status::ok);
  EXPECT_EQ(said, (heard{"a", "b", "c"}));
}

TEST_F(Mailbox, ACoroutineHearsAllOutcomesToo) {
  manual_executor tasks;
  const auto outcome_of = [&](const ref<listener>& to, wait_limits limits = {}) {
    auto f = spawn(tasks, send_word(to, "x", std::move(limits)));
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
    const auto to = system.spawn_with<check_order>(o, &bad, &count);
    std::vector<std::thread> senders;
    for (int s = 0; s < 4; ++s) {
      senders.emplace_back([&, s] {
        for (int i = 0; i < each / (capacity < 64 ? 20 : 1); ++i) {
          ASSERT_TRUE(to.send(numbered{s, i}));
        }
      });
    }
    for (auto& t : senders) t.join();
    to.close();
    EXPECT_EQ(to.ended().get().why, end_reason::stopped);
    EXPECT_EQ(bad, 0) << "capacity " << capacity;
    EXPECT_EQ(count, 4 * (each / (capacity < 64 ? 20 : 1))) << "capacity " << capacity;
  }
}

}  // namespace
}  // namespace sluice::mailbox_test
