#pragma once

// Limit orders of one symbol, and who trades with whom: the best price first, and among equal
// prices whoever came first. No actors here, and no threads.

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
  side what = side::buy;
  price limit = 0;
  quantity open = 0;
};

// The one who waited names the price.
struct fill {
  order_id maker = 0;
  order_id taker = 0;
  price at = 0;
  quantity amount = 0;

  friend bool operator==(const fill&, const fill&) = default;
};

class book {
 public:
  // Trades what can be traded; what is left waits. The order must have something open, and an id
  // that no other one has had.
  std::vector<fill> place(order o);
  // As much of it as was still open; nothing: it is not there, or no more.
  std::optional<order> cancel(order_id id);

  std::optional<price> best(side s) const;
  // Counted from the orders that wait.
  quantity open(side s) const;

 private:
  // Orders of one price in the order of their coming. The best price is first in both.
  using level = std::list<order>;
  using buys = std::map<price, level, std::greater<>>;
  using sells = std::map<price, level>;
  struct place_of {
    side what;
    price limit;
    level::iterator at;
  };

  template <class Levels>
  void match(order& o, Levels& others, std::vector<fill>& fills);
  template <class Levels>
  void rest(order o, Levels& mine);
  template <class Levels>
  void take_out(const place_of& where, Levels& from);

  buys buys_;
  sells sells_;
  std::unordered_map<order_id, place_of> waiting_;
};

}  // namespace order_book
