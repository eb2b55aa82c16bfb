#include <gtest/gtest.h>

#include <mutex>
#include <string>

#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/inspect/deadlock.hpp"
#include "sluice/inspect/testing/deadlock_fixture.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/barrier.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"

namespace sluice::testing::certain_deadlock_test {
namespace {

using namespace std::chrono_literals;

class certain_deadlock_test : public deadlock_fixture {};

// Ends waits that have neither a deadline nor a stop_token by releasing permits.
class rescue {
 public:
  explicit rescue(semaphore& s) : of_(s) {}
  ~rescue() { of_.release(8); }

 private:
  semaphore& of_;
};

TEST_F(certain_deadlock_test, LocksAndPermitsWithoutLimitsAreCertain) {
  semaphore slots(1, named("slots"));
  mutex m(named("m"));
  const ending at_the_end{*this};
  const rescue by_permits(slots);
  party("ann", [&] {
    slots.acquire();
    both_.arrive_and_wait();
    const std::lock_guard hold(m);
  });
  party("bob", [&] {
    const std::lock_guard hold(m);
    both_.arrive_and_wait();
    slots.acquire();
  });
  const auto found = the_deadlock();
  EXPECT_TRUE(found.is_certain());
  EXPECT_FALSE(found.ends_by_itself());
  EXPECT_NE(found.text().find("deadlock of 2 parties:\n"), std::string::npos) << found.text();
}

TEST_F(certain_deadlock_test, ALimitIsNotCertain) {
  semaphore slots(1, named("slots"));
  mutex m(named("m"));
  const ending at_the_end{*this};
  const rescue by_permits(slots);
  party("ann", [&] {
    slots.acquire();
    both_.arrive_and_wait();
    want(m);
  });
  party("bob", [&] {
    const std::lock_guard hold(m);
    both_.arrive_and_wait();
    slots.acquire();
  });
  EXPECT_FALSE(the_deadlock().is_certain());
}

TEST_F(certain_deadlock_test, AQueueIsNotCertain) {
  bounded_queue<int> q({.capacity = 1, .name = "q"});
  mutex m(named("m"));
  const ending at_the_end{*this};
  party("ann", [&] {
    EXPECT_TRUE(q.push(0));
    EXPECT_TRUE(q.pop());  // recorded as a consumer
    both_.arrive_and_wait();
    const std::lock_guard hold(m);
  });
  party("bob", [&] {
    const std::lock_guard hold(m);
    both_.arrive_and_wait();
    while (q.push(1)) {
    }
  });
  const auto found = the_deadlock();
  EXPECT_FALSE(found.is_certain());
  EXPECT_FALSE(found.ends_by_itself());
  EXPECT_NE(found.text().find("as far as is known"), std::string::npos) << found.text();
  q.close();
}

// Ann and Bob are certainly deadlocked only if Cat is, which holds a permit too.
TEST_F(certain_deadlock_test, AThirdHolderThatIsNotCertainlyDeadlockedMakesItUncertain) {
  semaphore slots(2, named("slots"));
  bounded_queue<int> q({.capacity = 1, .name = "q"});
  mutex m(named("m"));
  barrier all(3);
  event first;  // Ann is the first holder of a permit
  const ending at_the_end{*this};
  const rescue by_permits(slots);
  party("ann", [&] {
    slots.acquire();
    first.set();
    EXPECT_TRUE(q.push(0));
    EXPECT_TRUE(q.pop());
    all.arrive_and_wait();
    const std::lock_guard hold(m);
  });
  party("bob", [&] {
    const std::lock_guard hold(m);
    all.arrive_and_wait();
    slots.acquire();
  });
  party("cat", [&] {
    first.wait();
    slots.acquire();
    all.arrive_and_wait();
    while (q.push(1)) {
    }
  });
  eventually([] { return inspect::waits().size() == 3; });
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "bob"}));
  EXPECT_FALSE(found.is_certain());
  q.close();
}

// The task that was granted the permit will run and could release it.
TEST_F(certain_deadlock_test, APermitGrantedToATaskThatHasNotRunMakesItUncertain) {
  semaphore slots(2, named("slots"));
  mutex m(named("m"));
  manual_executor later;
  const auto body = [&]() -> task<> {
    EXPECT_TRUE(co_await slots.async_acquire());
    slots.release();
  };
  slots.acquire();
  const ending at_the_end{*this};
  const rescue by_permits(slots);
  party("ann", [&] {
    slots.acquire();
    both_.arrive_and_wait();
    const std::lock_guard hold(m);
  });
  event none_is_left;
  party("bob", [&] {
    const std::lock_guard hold(m);
    both_.arrive_and_wait();
    none_is_left.wait();
    slots.acquire();
  });
  until_waited_for(&m);
  auto x = spawn(later, body());
  (void)later.run_all();
  ASSERT_EQ(slots.waiting(), 1U);
  slots.release();  // grants it to x
  none_is_left.set();
  const auto found = the_deadlock();
  EXPECT_EQ(parties(found), (names{"ann", "bob"}));
  EXPECT_FALSE(found.is_certain()) << found.text();
  (void)later.run_all();
  x.get();
}

// A coroutine releases under the name of its thread, so any thread could release the permit.
TEST_F(certain_deadlock_test, AnAwaitedPermitIsNotCertain) {
  semaphore slots(1, named("slots"));
  const ending at_the_end{*this};
  const rescue by_permits(slots);
  party("ann", [&] {
    const auto body = [&]() -> task<> {
      EXPECT_TRUE(co_await slots.async_acquire());
      EXPECT_TRUE(co_await slots.async_acquire());
    };
    sync_wait(body());
  });
  EXPECT_FALSE(the_deadlock().is_certain());
}

TEST_F(certain_deadlock_test, ASyncWaitWithADeadlineIsNotCertain) {
  manual_clock time;
  mutex m(named("m"));
  const ending at_the_end{*this};
  party("ann", [&] {
    const std::lock_guard hold(m);
    const auto body = [&]() -> task<> { (void)co_await m.async_lock(); };
    EXPECT_FALSE(sync_wait(body(), {deadline::after(1h, time)}));
  });
  EXPECT_FALSE(the_deadlock().is_certain());
  eventually([&] { return time.pending() == 1; });
  time.advance(2h);
}

}  // namespace
}  // namespace sluice::testing::certain_deadlock_test
