#include "sluice/actor/actor_probe.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "sluice/executor/work_stealing_pool.hpp"

namespace sluice::actor_probe_test {
namespace {

using namespace std::chrono_literals;

struct ping {
  int n;
  friend std::ostream& operator<<(std::ostream& out, const ping& p) { return out << "#" << p.n; }
};
struct pong {};
struct price {
  using reply = int;
  std::string of;
};
struct ring_after {
  std::chrono::nanoseconds wait;
  recipient<pong> target;
};
struct rung {};

class bell : public actor<bell, ring_after, rung> {
 public:
  void on(ring_after m) {
    receiver_ = m.target;
    send_after(m.wait, rung{});
  }
  void on(rung) { (void)receiver_.send(pong{}); }

 private:
  recipient<pong> receiver_;
};

struct spin {};
class spinner : public actor<spinner, spin> {
 public:
  void on(spin) { (void)self().send(spin{}); }
};
class faller : public actor<faller, ping> {
 public:
  void on(ping) { throw std::runtime_error("it fell"); }
};

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const actor_test_error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(actor_probe_test, ExpectsMessagesInOrder) {
  actor_test_kit kit;
  actor_probe<ping, pong> p(kit);
  ASSERT_TRUE(p.ref().send(ping{1}));
  ASSERT_TRUE(p.ref().send(pong{}));
  ASSERT_TRUE(p.ref().send(ping{2}));
  const auto [first, second, third] = p.expect_in_order<ping, pong, ping>();
  EXPECT_EQ(first.n, 1);
  EXPECT_EQ(third.n, 2);
  p.expect_no_message();
}

TEST(actor_probe_test, NamesTheMessageThatArrivedInsteadAndTheOnesBehindIt) {
  actor_test_kit kit;
  actor_probe<ping, pong> p(kit, "till");
  EXPECT_EQ(error_of([&] { p.expect<pong>(); }), "probe till expected pong, and nothing came");
  EXPECT_EQ(error_of([&] { p.expect<pong>(3ms); }),
            "probe till expected pong within 3 ms, and nothing came");
  ASSERT_TRUE(p.ref().send(ping{7}));
  ASSERT_TRUE(p.ref().send(pong{}));
  EXPECT_EQ(error_of([&] { p.expect<pong>(); }),
            "probe till expected pong, and ping #7 came; behind it: pong");
  EXPECT_EQ(error_of([&] { p.expect_no_message(2us); }),
            "probe till expected no message for 2 us, and ping #7 came; behind it: pong");
  EXPECT_EQ(p.expect<ping>().n, 7);  // it is still there
}

TEST(actor_probe_test, VirtualTimePassesOnlyAsFarAsItMust) {
  actor_test_kit kit;
  actor_probe<pong> p(kit);
  const auto b = kit.spawn<bell>();
  const time_point start = kit.time().now();
  ASSERT_TRUE(b.send(ring_after{250ms, p.ref()}));
  p.expect_no_message(249ms);
  p.expect<pong>(10s);
  EXPECT_EQ(kit.time().now() - start, 250ms);
}

TEST(actor_probe_test, RepliesToExpectedRequests) {
  actor_test_kit kit;
  actor_probe<price> shop(kit);
  EXPECT_NE(error_of([&] { shop.reply<price>(1); }).find("expect it first"), std::string::npos);
  auto tea = shop.ref().ask(price{"tea"});
  auto milk = shop.ref().ask(price{"milk"});
  EXPECT_EQ(shop.expect<price>().of, "tea");
  EXPECT_EQ(shop.expect<price>().of, "milk");
  shop.reply<price>(3);
  EXPECT_EQ(tea.get(), 3);
  shop.fail<price>(std::make_exception_ptr(std::runtime_error("sold out")));
  EXPECT_THROW((void)milk.get(), std::runtime_error);
}

TEST(actor_probe_test, WorksWithRealThreads) {
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool);
  actor_probe<pong> p(system);
  const auto b = system.spawn<bell>();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(b.send(ring_after{0ns, p.ref()}));
    p.expect<pong>();
  }
  p.expect_no_message();
  EXPECT_NE(error_of([&] { p.expect<pong>(1ms); }).find("within 1 ms, and nothing came"),
            std::string::npos);
}

TEST(actor_test_kit_test, ThrowsIfActorsDoNotSettle) {
  actor_test_kit kit;
  const auto s = kit.spawn_with<spinner>({.per_turn = 1});
  ASSERT_TRUE(s.send(spin{}));
  EXPECT_NE(error_of([&] { kit.settle(); }).find("do not settle"), std::string::npos);
  s.stop();
}

TEST(actor_test_kit_test, RecordsTheFailuresOfActors) {
  actor_test_kit kit;
  const auto f = kit.spawn_with<faller>({.name = "clumsy"});
  ASSERT_TRUE(f.send(ping{1}));
  EXPECT_GT(kit.settle(), 0U);
  EXPECT_EQ(kit.failures(), std::vector<std::string>{"clumsy: it fell"});
  EXPECT_EQ(kit.system().stats().restarts, 1U);
}

struct tick {};
class sampler : public actor<sampler, tick> {
 public:
  sampler(clock& on, std::vector<std::int64_t>& seen) : on_(on), seen_(seen), start_(on.now()) {
    send_every(10ms, tick{});
  }
  void on(tick) { seen_.push_back((on_.now() - start_) / 1ms); }

 private:
  clock& on_;
  std::vector<std::int64_t>& seen_;
  const time_point start_;
};

TEST(actor_test_kit_test, EveryHandlerSeesTheTimeAtWhichItWasDue) {
  std::vector<std::int64_t> seen;
  actor_test_kit kit;
  const auto s = kit.spawn<sampler>(std::ref(static_cast<clock&>(kit.time())), std::ref(seen));
  kit.advance(35ms);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{10, 20, 30}));
}

}  // namespace
}  // namespace sluice::actor_probe_test
