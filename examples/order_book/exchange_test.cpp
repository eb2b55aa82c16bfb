#include "examples/order_book/exchange.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/actor/actor_test_kit.hpp"
#include "sluice/executor/manual_executor.hpp"

namespace order_book::exchange_test {
namespace {

class exchange_test : public ::testing::Test {
 protected:
  void TearDown() override {
    kit_.system().stop();
    while (kit_.settle() + elsewhere_.run_all() > 0) {
    }
  }

  template <class Request>
  typename Request::reply ask(Request m) {
    auto answer = door_.ask(std::move(m));
    kit_.settle();
    return answer.get();
  }

  sluice::guarded<ticker::shown> screen_;
  sluice::manual_executor elsewhere_;
  sluice::actor_test_kit kit_;
  sluice::ref<gateway> door_ = kit_.spawn<gateway>(std::vector<std::string>{"SLU", "ICE"});
};

TEST_F(exchange_test, OrdersMeetInTheMarketOfTheirSymbolOnly) {
  EXPECT_EQ(ask(place_order{"SLU", side::sell, 100, 10}).filled, 0);
  EXPECT_EQ(ask(place_order{"ICE", side::buy, 100, 10}).filled, 0);
  EXPECT_EQ(ask(place_order{"SLU", side::buy, 101, 7}).filled, 7);
  const market_sums sums = ask(get_sums{"SLU"});
  EXPECT_EQ(sums.traded, 7);
  EXPECT_EQ(sums.sold.open, 3);
  EXPECT_TRUE(sums.add_up());
}

TEST_F(exchange_test, AnUnknownSymbolIsReported) {
  EXPECT_FALSE(ask(place_order{"NONE", side::buy, 1, 1}).is_known);
  EXPECT_EQ(ask(cancel_order{"NONE", 1}), 0);
}

TEST_F(exchange_test, AnAmountOfZeroIsRejectedWithoutEffect) {
  (void)ask(place_order{"SLU", side::sell, 100, 10});
  for (const quantity wrong : {quantity{0}, quantity{-5}, amount_max + 1}) {
    const placed answer = ask(place_order{"SLU", side::buy, 100, wrong});
    EXPECT_TRUE(answer.is_known);
    EXPECT_FALSE(answer.is_valid) << wrong;
    EXPECT_EQ(answer.id, 0U);
    EXPECT_EQ(answer.filled, 0);
  }
  const market_sums sums = ask(get_sums{"SLU"});
  EXPECT_EQ(sums.bought.placed, 0);
  EXPECT_EQ(sums.sold.open, 10);
  EXPECT_TRUE(sums.add_up());
  EXPECT_TRUE(ask(place_order{"SLU", side::buy, 100, 10}).is_valid);
}

TEST_F(exchange_test, CancelledOrdersAreCounted) {
  const placed answer = ask(place_order{"SLU", side::buy, 100, 10});
  EXPECT_EQ(ask(place_order{"SLU", side::sell, 100, 4}).filled, 4);
  EXPECT_EQ(ask(cancel_order{"SLU", answer.id}), 6);
  EXPECT_EQ(ask(cancel_order{"SLU", answer.id}), 0);
  const market_sums sums = ask(get_sums{"SLU"});
  EXPECT_EQ(sums.bought.cancelled, 6);
  EXPECT_EQ(sums.bought.open, 0);
  EXPECT_TRUE(sums.add_up());
}

TEST_F(exchange_test, ASlowTickerSeesTheNewestQuote) {
  sluice::actor_options slow = ticker::options();
  slow.on = &elsewhere_;
  const auto shows = kit_.spawn_with<ticker>(slow, std::ref(screen_));
  ASSERT_TRUE(door_.send(subscribe{"SLU", shows}));
  for (price p = 1; p <= 50; ++p) (void)ask(place_order{"SLU", side::buy, p, 1});
  elsewhere_.run_all();
  const auto shown = screen_.with([](const ticker::shown& s) { return s; });
  EXPECT_EQ(shown.count, 1U);
  EXPECT_EQ(shown.last.number, 50U);
  EXPECT_EQ(shown.last.bid, 50);
}

TEST_F(exchange_test, AMarketForgetsATerminatedTicker) {
  const auto shows = kit_.spawn_with<ticker>(ticker::options(), std::ref(screen_));
  ASSERT_TRUE(door_.send(subscribe{"SLU", shows}));
  shows.stop();
  kit_.settle();
  for (price p = 1; p <= 5; ++p) (void)ask(place_order{"SLU", side::buy, p, 1});
  EXPECT_EQ(kit_.system().stats().dead_letters, 1U) << "one quote, from which the market learns it";
}

}  // namespace
}  // namespace order_book::exchange_test
