#include "sluice/actor/actor.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/reentrant.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/timers.hpp"

namespace sluice::actor_test {
namespace {

struct add {
  int n;
};
struct total {
  using reply = int;
};
struct fall {};

class counter : public actor<counter, add, total, fall> {
 public:
  void on(add m) { sum_ += m.n; }
  int on(total) { return sum_; }
  void on(fall) { throw std::runtime_error("it fell"); }

 private:
  int sum_ = 0;
};

actor_system_options quiet() {
  actor_system_options o;
  o.on_failure = [](const actor_failure&) {};
  return o;
}

TEST(actor_test, HandlesItsMessagesInOrderAndReplies) {
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool);
  const ref<counter> c = system.spawn<counter>();
  for (int i = 1; i <= 1000; ++i) ASSERT_TRUE(c.send(add{i}));
  EXPECT_EQ(c.ask(total{}).get(), 500'500);
}

TEST(actor_test, AFailureRestartsItAndItsRefsStay) {
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool, quiet());
  const ref<counter> c = system.spawn<counter>();
  ASSERT_TRUE(c.send(add{5}));
  ASSERT_TRUE(c.send(fall{}));
  ASSERT_TRUE(c.send(add{1}));
  EXPECT_EQ(c.ask(total{}).get(), 1);
  EXPECT_EQ(system.stats().restarts, 1U);
}

TEST(actor_test, ARefOutlivesItsActor) {
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool);
  const ref<counter> c = system.spawn<counter>();
  c.stop();
  EXPECT_EQ(c.ended().get().why, end_reason::stopped);
  EXPECT_EQ(c.send(add{1}), status::closed);
  EXPECT_EQ(system.stats().dead_letters, 1U);
  try {
    (void)c.ask(total{}).get();
    FAIL();
  } catch (const actor_error& e) {
    EXPECT_EQ(e.why(), actor_error::terminated);
  }
}

TEST(actor_test, IsSmall) {
  EXPECT_LE(sizeof(detail::spawned_cell<counter, detail::from_arguments<counter>>), 272U);
}

}  // namespace
}  // namespace sluice::actor_test
