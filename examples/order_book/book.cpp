#include "examples/order_book/book.hpp"

#include <algorithm>
#include <iterator>

namespace order_book {
namespace {

// Returns whether `o` accepts a price of the other side.
bool takes(const order& o, price offered) {
  return o.order_side == side::buy ? offered <= o.limit : offered >= o.limit;
}

template <class Levels>
quantity sum_of(const Levels& levels) {
  quantity sum = 0;
  for (const auto& [at, orders] : levels) {
    for (const order& o : orders) sum += o.open;
  }
  return sum;
}

}  // namespace

template <class Levels>
void book::match(order& o, Levels& others, std::vector<fill>& fills) {
  while (o.open > 0 && !others.empty() && takes(o, others.begin()->first)) {
    level& best = others.begin()->second;
    order& first = best.front();
    const quantity amount = std::min(o.open, first.open);
    fills.push_back({first.id, o.id, first.limit, amount});
    o.open -= amount;
    first.open -= amount;
    if (first.open > 0) continue;
    waiting_.erase(first.id);
    best.pop_front();
    if (best.empty()) others.erase(others.begin());
  }
}

template <class Levels>
void book::rest(order o, Levels& levels) {
  level& same_price = levels[o.limit];
  same_price.push_back(o);
  waiting_.emplace(o.id, place_of{o.order_side, o.limit, std::prev(same_price.end())});
}

std::vector<fill> book::place(order o) {
  std::vector<fill> fills;
  if (o.order_side == side::buy) {
    match(o, sells_, fills);
    if (o.open > 0) rest(o, buys_);
  } else {
    match(o, buys_, fills);
    if (o.open > 0) rest(o, sells_);
  }
  return fills;
}

template <class Levels>
void book::take_out(const place_of& where, Levels& from) {
  const auto found = from.find(where.limit);
  found->second.erase(where.at);
  if (found->second.empty()) from.erase(found);
}

std::optional<order> book::cancel(order_id id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return std::nullopt;
  const place_of where = found->second;
  const order was = *where.at;
  waiting_.erase(found);
  if (where.order_side == side::buy) {
    take_out(where, buys_);
  } else {
    take_out(where, sells_);
  }
  return was;
}

std::optional<price> book::best(side s) const {
  if (s == side::buy) return buys_.empty() ? std::nullopt : std::optional(buys_.begin()->first);
  return sells_.empty() ? std::nullopt : std::optional(sells_.begin()->first);
}

quantity book::open(side s) const {
  return s == side::buy ? sum_of(buys_) : sum_of(sells_);
}

}  // namespace order_book
