#include "sluice/inspect/progress.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sluice/channel/channel.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/strand.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/inspect/testing/looking.hpp"
#include "sluice/inspect/watchdog.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/queue/delay_queue.hpp"
#include "sluice/queue/priority_queue.hpp"
#include "sluice/queue/spsc_ring.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/semaphore.hpp"

namespace sluice::testing::progress_test {
namespace {

using namespace std::chrono_literals;
using inspect::reports_progress;

static_assert(reports_progress<bounded_queue<int>>);
static_assert(reports_progress<priority_queue<int>>);
static_assert(reports_progress<spsc_ring<int>>);
static_assert(reports_progress<channel<int>>);
static_assert(reports_progress<thread_pool>);
static_assert(reports_progress<work_stealing_pool>);
static_assert(reports_progress<strand>);
// An item that is not due is not waiting work: it would look like a stall.
static_assert(!reports_progress<delay_queue<int>>);
struct my_delays : delay_queue<int> {};
static_assert(!reports_progress<my_delays>);
// A queue that counts its due items is supported.
struct delays_that_count : delay_queue<int> {
  using delay_queue::delay_queue;
  std::size_t due() const { return due_now; }
  std::size_t due_now = 0;
};
static_assert(reports_progress<delays_that_count>);
// They count nothing: the program runs the first, the second runs immediately.
static_assert(!reports_progress<manual_executor>);
static_assert(!reports_progress<inline_executor>);

TEST(progress_test, ADelayingQueueHasItsDueItemsWaiting) {
  delays_that_count q(4);
  ASSERT_TRUE(q.push({1, real_clock().now() + 1h}));
  EXPECT_EQ(inspect::progress_of(q).waiting, 0U);
  q.due_now = 1;
  EXPECT_EQ(inspect::progress_of(q).waiting, 1U);
}

// The reports of a watchdog that scans when the test calls it.
class stall_test : public ::testing::Test {
 protected:
  // An idle executor is not reported; one with a function that does not end is, after the time.
  template <class Executor>
  void tells_of_one_that_hangs(Executor& on, const std::string& name) {
    const auto watched = dog_.watch(on);
    event begun;
    event go;
    event done;
    eventually([&] { return inspect::progress_of(on).waiting == 0; }, "the executor to be idle");
    pass(20s);
    EXPECT_TRUE(reports_.empty());
    ASSERT_TRUE(on.submit([&] {
      begun.set();
      go.wait();
    }));
    ASSERT_TRUE(on.submit([&] { done.set(); }));  // behind it
    begun.wait();
    dog_.scan();
    pass(9s);
    EXPECT_TRUE(reports_.empty());
    pass(1s);
    ASSERT_EQ(reports_.size(), 1U);
    EXPECT_NE(reports_[0].find(name + " has finished nothing for 10.0 s"), std::string::npos)
        << reports_[0];
    const auto before = inspect::progress_of(on).done;
    go.set();
    done.wait();
    eventually([&] { return inspect::progress_of(on).done > before; },
               "the executor to make progress");
    eventually([&] { return inspect::progress_of(on).waiting == 0; },
               "the executor to be idle again");
  }
  void pass(std::chrono::nanoseconds time) {
    time_.advance(time);
    dog_.scan();
  }

  manual_clock time_;
  std::vector<std::string> reports_;
  inspect::watchdog dog_{{.period = 0s,
                          .stalled_after = 10s,
                          .on_report = [this](const auto& r) { reports_.push_back(r.text); },
                          .time = &time_}};
};

TEST_F(stall_test, AGetProgressThatThrowsIsReported) {
  const auto looking =
      dog_.watch("broken", []() -> inspect::progress { throw std::runtime_error("no count"); });
  ::testing::internal::CaptureStderr();
  dog_.scan();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "sluice: get_progress of watchdog 'broken' threw: no count\n");
}

TEST_F(stall_test, AThreadPool) {
  thread_pool pool({.core = 1, .capacity = 4, .name = "thumbs"});
  tells_of_one_that_hangs(pool, "pool thumbs");
}

TEST_F(stall_test, AWorkStealingPool) {
  work_stealing_pool pool({.threads = 1, .name = "tree", .spares_max = 0});
  tells_of_one_that_hangs(pool, "pool tree");
}

TEST_F(stall_test, AStrand) {
  thread_pool pool({.core = 1, .capacity = 4, .name = "pool"});
  strand one(pool, {.name = "one"});
  tells_of_one_that_hangs(one, "strand one");
}

// Resumptions are not submissions; a pool that only resumes makes progress too.
TEST_F(stall_test, APoolThatResumesCoroutinesIsNotStalled) {
  event go;  // before the pool, whose threads use it until they end
  event begun;
  semaphore turns(0);
  semaphore taken(0);
  thread_pool pool({.core = 2, .capacity = 4, .name = "pool"});
  ASSERT_TRUE(pool.submit([&] {
    begun.set();
    go.wait();
  }));
  begun.wait();
  const auto watched = dog_.watch(pool);
  dog_.scan();
  const auto body = [&]() -> task<> {
    for (int i = 0; i < 4; ++i) {
      (void)co_await turns.async_acquire();
      taken.release();
    }
  };
  auto ended = spawn(pool, body());
  for (int i = 0; i < 4; ++i) {
    eventually([&] { return turns.waiting() == 1; }, "the coroutine to wait");
    const auto before = inspect::progress_of(pool).done;
    turns.release();
    taken.acquire();
    eventually([&] { return inspect::progress_of(pool).done > before; }, "the resumption to count");
    pass(9s);
  }
  ended.get();
  EXPECT_TRUE(reports_.empty()) << reports_[0];
  go.set();
}

}  // namespace
}  // namespace sluice::testing::progress_test
