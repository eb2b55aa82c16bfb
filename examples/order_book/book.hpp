#pragma once

// Matches the limit orders of one symbol: the best price first, and among equal prices the earlier
// order. No actors here, and no threads.

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace order_book {

enum class side : std::uint8_t { buy, sell };
using order_id = std::uint64_t;
using price = std::int64_t;  // in cents
using quantity = std::int64_t;

struct order {
  order_id id = 0;
  side order_side = side::buy;
  price limit = 0;
  quantity open = 0;
};

// The price is that of the waiting order.
struct fill {
  order_id maker = 0;
  order_id taker = 0;
  price at = 0;
  quantity amount = 0;

  friend bool operator==(const fill&, const fill&) = default;
};

class book {
 public:
  // Trades as much as possible; the rest waits. The order's open amount must not be zero, and its
  // id must be unused.
  std::vector<fill> place(order o);
  // Returns the amount that was still open; none if there is no such waiting order.
  std::optional<order> cancel(order_id id);

  std::optional<price> best(side s) const;
  // Counted from the waiting orders.
  quantity open(side s) const;

 private:
  // Orders of one price in the order of arrival. The best price is first in both.
  using level = std::list<order>;
  using buys = std::map<price, level, std::greater<>>;
  using sells = std::map<price, level>;
  struct place_of {
    side order_side;
    price limit;
    level::iterator at;
  };

  template <class Levels>
  void match(order& o, Levels& others, std::vector<fill>& fills);
  template <class Levels>
  void rest(order o, Levels& levels);
  template <class Levels>
  void take_out(const place_of& where, Levels& from);

  buys buys_;
  sells sells_;
  std::unordered_map<order_id, place_of> waiting_;
};

}  // namespace order_book
