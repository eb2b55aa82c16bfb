#include "examples/order_book/exchange.hpp"

#include <utility>

namespace order_book {

// ---- market

placed market::on(const place_order& m) {
  if (m.amount < 1 || m.amount > amount_max) return {.is_valid = false};
  const order_id id = ++last_id_;
  of(m.order_side).placed += m.amount;
  quantity filled = 0;
  for (const fill& f : book_.place({id, m.order_side, m.limit, m.amount})) filled += f.amount;
  sums_.traded += filled;
  publish();
  return {.id = id, .filled = filled};
}

quantity market::on(const cancel_order& m) {
  const std::optional<order> was = book_.cancel(m.id);
  if (!was) return 0;
  of(was->order_side).cancelled += was->open;
  publish();
  return was->open;
}

market_sums market::on(const get_sums&) const {
  market_sums all = sums_;
  all.bought.open = book_.open(side::buy);
  all.sold.open = book_.open(side::sell);
  return all;
}

void market::on(subscribe m) {
  subscribers_.push_back(std::move(m.who));
}

// A slow subscriber gets only the newest quote; a subscriber that has ended gets none.
void market::publish() {
  const quote now{++changes_, book_.best(side::buy), book_.best(side::sell)};
  std::erase_if(subscribers_,
                [&](const auto& who) { return who.try_send(now) == sluice::status::closed; });
}

// ---- gateway

gateway::gateway(const std::vector<std::string>& symbols) {
  for (const std::string& symbol : symbols) {
    markets_.emplace(symbol, spawn_with<market>({.name = symbol}));
  }
}

template <class Request>
void gateway::hand_on(Request m, sluice::responder<typename Request::reply> asker,
                      typename Request::reply if_unknown) {
  const auto found = markets_.find(m.symbol);
  if (found == markets_.end()) return asker.reply(std::move(if_unknown));
  (void)forward(found->second, std::move(m), std::move(asker));  // reports failures to the asker
}

void gateway::on(place_order m, sluice::responder<placed> asker) {
  hand_on(std::move(m), std::move(asker), {.is_known = false});
}
void gateway::on(cancel_order m, sluice::responder<quantity> asker) {
  hand_on(std::move(m), std::move(asker), 0);
}
void gateway::on(get_sums m, sluice::responder<market_sums> asker) {
  hand_on(std::move(m), std::move(asker), {});
}
void gateway::on(subscribe m) {
  const auto found = markets_.find(m.symbol);
  if (found != markets_.end()) (void)found->second.send(std::move(m));
}

}  // namespace order_book
