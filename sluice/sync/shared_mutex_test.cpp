#include "sluice/sync/shared_mutex.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/testing/lock_suite.hpp"

namespace sluice::testing::shared_mutex_test {
namespace {

using namespace std::chrono_literals;

INSTANTIATE_TYPED_TEST_SUITE_P(shared_mutex, lock_suite, shared_mutex);
INSTANTIATE_TYPED_TEST_SUITE_P(shared_mutex, lock_suite_DeathTest, shared_mutex);
INSTANTIATE_TYPED_TEST_SUITE_P(shared_mutex_exclusive, waiting_suite, lock_gate<shared_mutex>);

// Shut for readers while a writer, which is a coroutine, is inside.
class reader_gate {
 public:
  reader_gate() { take(*this); }
  ~reader_gate() { open(); }

  status wait(const wait_limits& limits) {
    const auto ended = lock_.lock_shared(limits);
    if (ended) lock_.unlock_shared();
    return ended;
  }
  template <class Where>
  static detached await(reader_gate& gate, Where&, wait_limits limits, ending& ended) {
    status result = status::ok;
    {
      auto held = co_await gate.lock_.async_lock_shared(std::move(limits));
      result = held.status();
    }
    ended.set(result);
  }
  void open() {
    if (held_.owns_lock()) held_.unlock();
  }
  std::size_t waiting() const { return lock_.waiting_to_share(); }

 private:
  static detached take(reader_gate& gate) { gate.held_ = *co_await gate.lock_.async_lock(); }

  shared_mutex lock_;
  std::unique_lock<shared_mutex> held_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(shared_mutex_shared, waiting_suite, reader_gate);

// A shared hold has no call to upgrade it: such code does not compile, so it cannot deadlock.
template <class Hold>
concept can_upgrade = requires(Hold hold) {
  hold.upgrade();
}
|| requires(Hold hold) {
  std::unique_lock<shared_mutex>(std::move(hold));
}
|| requires(Hold hold) {
  hold.try_upgrade();
}
|| requires(Hold hold) {
  hold.lock_exclusive();
};
static_assert(!can_upgrade<std::shared_lock<shared_mutex>>);
template <class Lock>
concept has_upgrade = requires(Lock lock) {
  lock.upgrade();
}
|| requires(Lock lock) {
  lock.unlock_shared_and_lock();
}
|| requires(Lock lock) {
  lock.try_unlock_shared_and_lock();
};
static_assert(!has_upgrade<shared_mutex>);

// Readers and writers that arrive in a known order, and stay inside until the test releases them.
class shared_mutex_test : public ::testing::Test {
 protected:
  class party {
   public:
    party(shared_mutex& lock, bool writes, wait_limits limits = {})
        : thread_([this, &lock, writes, limits] {
            const auto ended = writes ? lock.lock(limits) : lock.lock_shared(limits);
            state_ = ended ? inside : ended_without;
            if (!ended) return;
            eventually([&] { return leave_.load(); });
            writes ? lock.unlock() : lock.unlock_shared();
          }) {}
    bool is_inside() const { return state_ == inside; }
    void gets_in() {
      eventually([&] { return state_ != outside; });
      EXPECT_EQ(state_, inside);
    }
    void gives_up() {
      eventually([&] { return state_ != outside; });
      EXPECT_EQ(state_, ended_without);
    }
    void leaves() {
      leave_ = true;
      thread_.join();
    }

   private:
    enum state { outside, inside, ended_without };
    std::atomic<state> state_{outside};
    std::atomic<bool> leave_{false};
    std::jthread thread_;
  };

  std::unique_ptr<party> comes(bool writes, wait_limits limits = {}) {
    return std::make_unique<party>(lock, writes, limits);
  }
  std::unique_ptr<party> queues(bool writes, wait_limits limits = {}) {
    const auto before = lock.waiting();
    auto result = comes(writes, limits);
    eventually([&] { return lock.waiting() == before + 1; });
    return result;
  }
  std::unique_ptr<party> reader_inside() {
    auto result = comes(false);
    result->gets_in();
    return result;
  }
  std::unique_ptr<party> writer_inside() {
    auto result = comes(true);
    result->gets_in();
    return result;
  }

  static constexpr bool to_write = true;
  static constexpr bool to_read = false;
  shared_mutex lock;
};

TEST_F(shared_mutex_test, ReadersShareAndAWriterIsAlone) {
  auto r1 = reader_inside();
  auto r2 = reader_inside();
  EXPECT_FALSE(lock.try_lock());
  EXPECT_TRUE(lock.try_lock_shared());
  lock.unlock_shared();
  r1->leaves();
  EXPECT_FALSE(lock.try_lock());
  r2->leaves();
  EXPECT_TRUE(lock.try_lock());
  EXPECT_TRUE(lock.held_by_me());
  std::jthread([&] {
    EXPECT_FALSE(lock.try_lock_shared());
    EXPECT_FALSE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock_shared_for(1ms));
    EXPECT_FALSE(lock.try_lock_shared_until(std::chrono::system_clock::now() - 1h));
  }).join();
  lock.unlock();
}

TEST_F(shared_mutex_test, AWaitingWriterBlocksNewReaders) {
  auto r1 = reader_inside();
  auto w = queues(to_write);
  EXPECT_FALSE(lock.try_lock_shared());
  auto r2 = queues(to_read);
  EXPECT_FALSE(r2->is_inside());
  r1->leaves();
  w->gets_in();
  EXPECT_FALSE(r2->is_inside());
  w->leaves();
  r2->gets_in();
  r2->leaves();
}

TEST_F(shared_mutex_test, AfterAWriterTheReadersThatWaitedGoFirst) {
  auto w1 = writer_inside();
  auto w2 = queues(to_write);
  auto r1 = queues(to_read);
  auto r2 = queues(to_read);
  w1->leaves();
  r1->gets_in();
  r2->gets_in();
  EXPECT_FALSE(w2->is_inside());
  auto r3 = queues(to_read);  // too late for this phase: a writer waits
  r1->leaves();
  EXPECT_FALSE(w2->is_inside());
  r2->leaves();
  w2->gets_in();
  EXPECT_FALSE(r3->is_inside());
  w2->leaves();
  r3->gets_in();
  r3->leaves();
}

TEST_F(shared_mutex_test, WritersAreServedInOrderOfArrival) {
  auto w1 = writer_inside();
  auto w2 = queues(to_write);
  auto w3 = queues(to_write);
  w1->leaves();
  w2->gets_in();
  EXPECT_FALSE(w3->is_inside());
  w2->leaves();
  w3->gets_in();
  w3->leaves();
}

TEST_F(shared_mutex_test, AWriterThatGivesUpUnblocksTheReaders) {
  auto r1 = reader_inside();
  std::stop_source source;
  auto w = queues(to_write, {{}, source.get_token()});
  auto r2 = queues(to_read);
  auto r3 = queues(to_read);
  source.request_stop();
  w->gives_up();
  r2->gets_in();
  r3->gets_in();
  EXPECT_EQ(lock.waiting(), 0U);
  EXPECT_TRUE(lock.try_lock_shared()) << "readers are not blocked now";
  lock.unlock_shared();
  r1->leaves();
  r2->leaves();
  r3->leaves();
}

TEST_F(shared_mutex_test, AWriterThatGivesUpLeavesThePlaceToTheNextWriter) {
  auto r1 = reader_inside();
  manual_clock clock;
  auto w1 = queues(to_write, {deadline::after(1s, clock), {}});
  auto w2 = queues(to_write);
  auto r2 = queues(to_read);
  eventually([&] { return clock.pending() == 1; });
  clock.advance(1s);
  w1->gives_up();
  EXPECT_FALSE(r2->is_inside()) << "the second writer still blocks it";
  r1->leaves();
  w2->gets_in();
  w2->leaves();
  r2->gets_in();
  r2->leaves();
}

TEST_F(shared_mutex_test, AReaderThatGivesUpHoldsNothing) {
  auto w = writer_inside();
  std::stop_source source;
  auto r = queues(to_read, {{}, source.get_token()});
  source.request_stop();
  r->gives_up();
  w->leaves();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST_F(shared_mutex_test, WorksWithTheStandardHolds) {
  {
    const std::shared_lock a(lock);
    std::jthread([&] {
      const std::shared_lock b(lock, 1ms);
      EXPECT_TRUE(b.owns_lock());
      const std::unique_lock c(lock, std::try_to_lock);
      EXPECT_FALSE(c.owns_lock());
    }).join();
  }
  const std::unique_lock alone(lock);
  std::jthread([&] {
    const std::shared_lock b(lock, std::try_to_lock);
    EXPECT_FALSE(b.owns_lock());
  }).join();
}

TEST_F(shared_mutex_test, ACoroutinesSharedHoldMayBeReleasedOnAnyThread) {
  std::shared_lock<shared_mutex> held;
  [](shared_mutex& m, std::shared_lock<shared_mutex>& out) -> detached {
    out = *co_await m.async_lock_shared();
  }(lock, held);
  ASSERT_TRUE(held.owns_lock());
  EXPECT_TRUE(lock.try_lock_shared());
  lock.unlock_shared();
  EXPECT_FALSE(lock.try_lock());
  std::jthread([&] { held.unlock(); }).join();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST_F(shared_mutex_test, ReadersSeeWholeWritesUnderStress) {
  stress run;
  long long a = 0;  // no atomics: the lock must be enough
  long long b = 0;
  std::atomic<long long> writes{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        auto choose = run.generator(static_cast<std::uint64_t>(t));
        for (int i = 0; i < 1'500; ++i) {
          const auto wait = std::chrono::microseconds(choose.below(100));
          const bool limited = choose.below(2) == 0;
          if (choose.below(4) == 0) {
            if (limited && !lock.try_lock_for(wait)) continue;
            if (!limited) lock.lock();
            ++a;
            ++b;
            ++writes;
            lock.unlock();
          } else {
            if (limited && !lock.try_lock_shared_for(wait)) continue;
            if (!limited) lock.lock_shared();
            EXPECT_EQ(a, b);
            lock.unlock_shared();
          }
        }
        run.did(1'500);
      });
    }
  }
  EXPECT_EQ(a, writes.load());
  EXPECT_EQ(lock.waiting(), 0U);
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST_F(shared_mutex_test, NeitherReadersNorWritersStarve) {
  // Two of each kind loop without a pause; each of the four must make progress.
  std::atomic<int> turns[4] = {};
  std::atomic<bool> stop{false};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      while (!stop) {
        if (t < 2) {
          const std::shared_lock reading(lock);
          ++turns[t];
        } else {
          const std::unique_lock writing(lock);
          ++turns[t];
        }
      }
    });
  }
  for (auto& each : turns) eventually([&] { return each >= 200; });
  stop = true;
}

TEST_F(shared_mutex_test, TheLastHolderMayDestroyIt) {
  stress run;
  for (int i = 0; i < 500; ++i) {
    auto m = std::make_unique<shared_mutex>();
    m->lock_shared();
    std::jthread writes([&] {
      m->lock();
      m->unlock();
      m.reset();  // the reader may still be returning from unlock_shared
    });
    if (i % 2 == 0) eventually([raw = m.get()] { return raw->waiting() == 1; });
    m.get()->unlock_shared();
    run.did(2);
  }
}

class shared_mutex_DeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(shared_mutex_DeathTest, AReadLockByTheWriterIsABrokenContract) {
  EXPECT_DEATH(
      {
        shared_mutex m;
        m.lock();
        m.lock_shared();
      },
      "sluice::shared_mutex.*not to be locked again by the thread that holds it exclusively");
}

TEST_F(shared_mutex_DeathTest, AnUpgradeIsABrokenContract) {
  EXPECT_DEATH(
      {
        shared_mutex m;
        const std::shared_lock reading(m);
        m.lock();
      },
      "sluice::shared_mutex.*release the shared hold first");
}

TEST_F(shared_mutex_DeathTest, ASecondReadLockBehindAWriterIsABrokenContract) {
  EXPECT_DEATH(
      {
        shared_mutex m;
        const std::shared_lock reading(m);
        std::jthread writes([&] { m.lock(); });
        eventually([&] { return m.waiting() == 1; });
        m.lock_shared();
      },
      "sluice::shared_mutex.*release the shared hold first");
}

TEST_F(shared_mutex_DeathTest, LeavingWithoutHavingEnteredIsABrokenContract) {
  EXPECT_DEATH(shared_mutex().unlock_shared(), "sluice::shared_mutex.*a reader inside");
  EXPECT_DEATH(
      {
        shared_mutex m;
        m.lock();
        m.unlock_shared();
      },
      "sluice::shared_mutex.*a reader inside");
  EXPECT_DEATH(
      {
        shared_mutex m;
        m.lock_shared();
        m.unlock();
      },
      "sluice::shared_mutex.*to be locked exclusively when it is unlocked");
}

TEST_F(shared_mutex_DeathTest, DestroyingItWhileReadIsABrokenContract) {
  EXPECT_DEATH(
      {
        shared_mutex m;
        m.lock_shared();
      },
      "sluice::shared_mutex.*neither owner, readers nor waiters");
}

}  // namespace
}  // namespace sluice::testing::shared_mutex_test
