#pragma once

// The actors of an exchange: a market for each symbol, a gateway in front of them, and tickers that
// show the quotes of a market.
//
// Traders only use the gateway. It forwards a request to the market, which replies to the trader
// directly: the gateway keeps nothing and never waits. Markets share no state, so they run side by
// side; within a market, orders are matched one at a time, in the order of arrival.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "examples/order_book/book.hpp"
#include "sluice/actor/actor.hpp"
#include "sluice/sync/guarded.hpp"

namespace order_book {

// ---- requests of traders

constexpr quantity amount_max = 1'000'000'000;

// If one of the first two is false, nothing was changed.
struct placed {
  bool is_known = true;  // false: there is no such symbol
  bool is_valid = true;  // false: an amount that is not from 1 to amount_max
  order_id id = 0;
  quantity filled = 0;  // at once; the rest waits
};
struct place_order {
  using reply = placed;
  std::string symbol;
  side order_side = side::buy;
  price limit = 0;
  quantity amount = 0;
};

struct cancel_order {
  using reply = quantity;  // the amount that was open
  std::string symbol;
  order_id id = 0;
};

// Totals of all orders placed on one side of a market.
struct sums {
  quantity placed = 0;
  quantity cancelled = 0;
  quantity open = 0;  // counted from the waiting orders
};
struct market_sums {
  sums bought;
  sums sold;
  quantity traded = 0;

  // Returns whether the totals balance: every unit is open, cancelled or traded, and every unit
  // sold was bought.
  bool add_up() const {
    return bought.placed - bought.cancelled - bought.open == traded &&
           sold.placed - sold.cancelled - sold.open == traded;
  }
};
struct get_sums {
  using reply = market_sums;
  std::string symbol;
};

// ---- market data

struct quote {
  std::uint64_t number = 0;  // of the changes of this market
  std::optional<price> bid{};
  std::optional<price> ask{};
};
struct subscribe {
  std::string symbol;
  sluice::recipient<quote> who;
};

class market : public sluice::actor<market, place_order, cancel_order, get_sums, subscribe> {
 public:
  placed on(const place_order& m);
  quantity on(const cancel_order& m);
  market_sums on(const get_sums&) const;
  void on(subscribe m);

 private:
  void publish();
  sums& of(side s) { return s == side::buy ? sums_.bought : sums_.sold; }

  book book_;
  order_id last_id_ = 0;
  market_sums sums_;
  std::uint64_t changes_ = 0;
  std::vector<sluice::recipient<quote>> subscribers_;
};

class gateway : public sluice::actor<gateway, place_order, cancel_order, get_sums, subscribe> {
 public:
  explicit gateway(const std::vector<std::string>& symbols);

  void on(place_order m, sluice::responder<placed> asker);
  void on(cancel_order m, sluice::responder<quantity> asker);
  void on(get_sums m, sluice::responder<market_sums> asker);
  void on(subscribe m);

 private:
  template <class Request>
  void hand_on(Request m, sluice::responder<typename Request::reply> asker,
               typename Request::reply if_unknown);

  std::map<std::string, sluice::ref<market>> markets_;
};

// Shows the newest quote. Even a slow ticker is never behind: quotes that arrive while it is busy
// replace one another in its mailbox. (A request would be replaced too, so do not ask this actor.)
class ticker : public sluice::actor<ticker, quote> {
 public:
  struct shown {
    quote last{};
    std::uint64_t count = 0;
  };

  explicit ticker(sluice::guarded<shown>& screen) : screen_(screen) {}
  static sluice::actor_options options() {
    sluice::actor_options o;
    o.name = "ticker";
    o.mailbox = {.capacity = 1, .overflow = sluice::overflow::latest};
    return o;
  }

  void on(quote q) {
    screen_.with([&](shown& s) { s = {q, s.count + 1}; });
  }

 private:
  sluice::guarded<shown>& screen_;
};

}  // namespace order_book
