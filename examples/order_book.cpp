// An exchange: traders on their own threads ask a gateway, which forwards their orders to the
// market of each symbol. At the end every unit is accounted for.
//
//     order_book [seed]
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "examples/order_book/exchange.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/base/random.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/sync/guarded.hpp"

using namespace std::chrono_literals;
using namespace order_book;

namespace {

constexpr int traders = 4;
constexpr int steps = 2'000;  // of each trader
const std::vector<std::string> symbols{"SLU", "ICE", "GATE"};

// The counts of a trader, from its replies, for each symbol.
using ledger = std::map<std::string, market_sums>;

struct own_order {
  std::string symbol;
  order_id id = 0;
  side order_side = side::buy;
};

sums& side_of(market_sums& all, side order_side) {
  return order_side == side::buy ? all.bought : all.sold;
}

ledger trade(const sluice::ref<gateway>& door, std::uint64_t seed) {
  sluice::random dice(seed);
  ledger totals;
  std::vector<own_order> orders;
  for (int i = 0; i < steps; ++i) {
    if (!orders.empty() && dice.below(4) == 0) {
      const own_order& o = orders[dice.below(static_cast<std::uint32_t>(orders.size()))];
      side_of(totals[o.symbol], o.order_side).cancelled +=
          door.ask(cancel_order{o.symbol, o.id}).get();
      continue;
    }
    const std::string& symbol = symbols[dice.below(static_cast<std::uint32_t>(symbols.size()))];
    const side order_side = dice.below(2) == 0 ? side::buy : side::sell;
    const quantity amount = 1 + dice.below(100);
    const placed answer =
        door.ask(place_order{symbol, order_side, 9'900 + dice.below(200), amount}).get();
    side_of(totals[symbol], order_side).placed += amount;
    totals[symbol].traded += answer.filled;
    orders.push_back({symbol, answer.id, order_side});
  }
  return totals;
}

// Returns whether the market's counts equal the replies to the traders.
bool have_equal_counts(const market_sums& market, const market_sums& replies) {
  return market.bought.placed == replies.bought.placed &&
         market.sold.placed == replies.sold.placed &&
         market.bought.cancelled == replies.bought.cancelled &&
         market.sold.cancelled == replies.sold.cancelled && market.traded == replies.traded;
}

bool a_day(std::uint64_t seed) {
  std::map<std::string, sluice::guarded<ticker::shown>> screens;
  sluice::work_stealing_pool pool({.threads = 2});
  sluice::actor_system system(pool);
  const auto door = system.spawn<gateway>(symbols);
  for (const std::string& symbol : symbols) {
    const auto shows = system.spawn_with<ticker>(ticker::options(), std::ref(screens[symbol]));
    if (!door.send(subscribe{symbol, shows})) return false;
  }

  std::vector<ledger> ledgers(traders);
  {
    std::vector<std::jthread> people;
    for (std::size_t i = 0; i < traders; ++i) {
      people.emplace_back([&, i] { ledgers[i] = trade(door, seed + i); });
    }
  }

  bool ok = !door.ask(place_order{"NONE", side::buy, 1, 1}).get().is_known;
  for (const std::string& symbol : symbols) {
    market_sums replies;
    for (ledger& each : ledgers) {
      const market_sums& part = each[symbol];
      replies.bought.placed += part.bought.placed;
      replies.bought.cancelled += part.bought.cancelled;
      replies.sold.placed += part.sold.placed;
      replies.sold.cancelled += part.sold.cancelled;
      replies.traded += part.traded;
    }
    const market_sums sums = door.ask(get_sums{symbol}).get();
    ok = ok && sums.traded > 0 && sums.add_up() && have_equal_counts(sums, replies);
    std::printf("%-4s placed %lld to buy, %lld to sell; traded %lld: %s\n", symbol.c_str(),
                static_cast<long long>(sums.bought.placed),
                static_cast<long long>(sums.sold.placed), static_cast<long long>(sums.traded),
                sums.add_up() && have_equal_counts(sums, replies) ? "adds up" : "DOES NOT ADD UP");
  }
  if (!system.shutdown(30s)) return false;  // tickers included
  for (const std::string& symbol : symbols) {
    const ticker::shown s = screens[symbol].with([](const ticker::shown& v) { return v; });
    const bool is_crossed = s.last.bid && s.last.ask && *s.last.bid >= *s.last.ask;
    std::printf("%-4s %llu quotes, %llu of them shown\n", symbol.c_str(),
                static_cast<unsigned long long>(s.last.number),
                static_cast<unsigned long long>(s.count));
    ok = ok && !is_crossed && s.count > 0 && s.count <= s.last.number;
  }
  return ok;
}

}  // namespace

int main(int count, char** arguments) {
  const std::uint64_t seed = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 2026;
  std::printf("seed %llu, %d traders\n", static_cast<unsigned long long>(seed), traders);
  const bool ok = a_day(seed);
  std::puts(ok ? "every piece is accounted for" : "something is wrong");
  return ok ? 0 : 1;
}
