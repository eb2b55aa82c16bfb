#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "sluice/channel/select.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/queue/delay_queue.hpp"
#include "sluice/queue/priority_queue.hpp"
#include "sluice/queue/spsc_ring.hpp"
#include "sluice/sync/barrier.hpp"
#include "sluice/sync/condition.hpp"
#include "sluice/sync/counter.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/guarded.hpp"
#include "sluice/sync/latch.hpp"
#include "sluice/sync/lazy.hpp"
#include "sluice/sync/lock_all.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/semaphore.hpp"
#include "sluice/sync/shared_mutex.hpp"
#include "sluice/sync/snapshot.hpp"

namespace sluice::seam_atomic_test {
namespace {

// Returns the number of accesses to the seam's atomic while `run` runs.
template <class F>
std::uint64_t accesses_of(F&& run) {
  const auto before = seam_accesses.load();
  run();
  return seam_accesses.load() - before;
}

TEST(SeamAtomic, IsUsedByEveryPrimitive) {
  mutex m;
  EXPECT_GE(accesses_of([&] { const std::lock_guard hold(m); }), 2U);
  fair_mutex fair;
  EXPECT_GE(accesses_of([&] { const std::lock_guard hold(fair); }), 2U);
  shared_mutex shared;
  EXPECT_GE(accesses_of([&] { const std::shared_lock hold(shared); }), 2U);
  spin_lock spin;
  EXPECT_GE(accesses_of([&] { const std::lock_guard hold(spin); }), 2U);
  semaphore permits(1);
  EXPECT_GE(accesses_of([&] { permits.acquire(); }), 2U);
  event happened;
  EXPECT_GE(accesses_of([&] { happened.set(); }), 2U);
  latch gate(1);
  EXPECT_GE(accesses_of([&] { gate.count_down(); }), 2U);
  barrier meeting(1);
  EXPECT_GE(accesses_of([&] { meeting.arrive_and_wait(); }), 2U);
  condition changed;
  EXPECT_GE(accesses_of([&] { changed.notify_one(); }), 2U);
  counter count;
  EXPECT_GE(accesses_of([&] { count.add(1); }), 1U);
  lazy<int> value([] { return 1; });
  EXPECT_GE(accesses_of([&] { (void)value.get(); }), 2U);
  snapshot<int> published(1);
  EXPECT_GE(accesses_of([&] { (void)*published.load(); }), 2U);
}

TEST(SeamAtomic, IsUsedByEveryQueueAndChannel) {
  const auto pass_one = [](auto& q, auto item) {
    return accesses_of([&] {
      EXPECT_TRUE(q.push(item));
      EXPECT_TRUE(q.pop());
    });
  };
  bounded_queue<int> fifo(1);
  EXPECT_GE(pass_one(fifo, 1), 4U);
  priority_queue<int> urgent(1);
  EXPECT_GE(pass_one(urgent, 1), 4U);
  delay_queue<int> later(1);
  EXPECT_GE(pass_one(later, delayed<int>{1}), 4U);
  spsc_ring<int> pipe(1);
  EXPECT_GE(pass_one(pipe, 1), 4U);
  channel<int> c(1);
  EXPECT_GE(accesses_of([&] {
              EXPECT_TRUE(c.send(1));
              EXPECT_TRUE(select(on_receive(c, [](const outcome<int>&) {})));
            }),
            4U);
}

TEST(SeamAtomic, WorksWithThreadsThatWaitForEachOther) {
  constexpr int items = 5'000;
  bounded_queue<int> q(4);
  long sum = 0;
  {
    std::jthread consumer([&] {
      while (auto item = q.pop()) sum += *item;
    });
    for (int i = 1; i <= items; ++i) ASSERT_TRUE(q.push(i));
    q.close();
  }
  EXPECT_EQ(sum, long{items} * (items + 1) / 2);
}

}  // namespace
}  // namespace sluice::seam_atomic_test
