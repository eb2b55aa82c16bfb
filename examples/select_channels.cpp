// A clerk serves several counters at once: select waits for the first channel that is ready, and
// takes from that channel only.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "sluice/channel/channel.hpp"
#include "sluice/channel/select.hpp"

using namespace std::chrono_literals;

namespace {

using sluice::on_receive;
using sluice::on_send;
using sluice::outcome;
using sluice::status;

constexpr int orders_made = 1'000;
constexpr int returns_made = 300;

struct tally {
  int orders = 0;
  int returns = 0;
  int receipts = 0;
};

void make(sluice::send_only<int> out, int count) {
  for (int i = 1; i <= count; ++i) {
    if (!out.send(i)) return;
  }
  out.close();
}

// Takes orders and returns as they come, until both channels are closed. A closed channel would
// be ready for ever, so its end is made null: a null end is never chosen.
tally serve(sluice::receive_only<int> orders, sluice::receive_only<int> returns,
            sluice::send_only<std::string> receipts) {
  tally t;
  std::vector<std::string> unsent;
  while (orders || returns || !unsent.empty()) {
    std::string next = unsent.empty() ? "" : unsent.back();
    const auto out = unsent.empty() ? sluice::send_only<std::string>() : receipts;
    auto order = on_receive(orders, [&](outcome<int> number) {
      if (number) {
        unsent.push_back("order " + std::to_string(*number));
        ++t.orders;
      } else {
        orders = {};
      }
    });
    auto item_back = on_receive(returns, [&](outcome<int> number) {
      if (number) {
        ++t.returns;
      } else {
        returns = {};
      }
    });
    auto receipt = on_send(out, next, [&](status) {
      unsent.pop_back();
      ++t.receipts;
    });
    if (!sluice::select(order, item_back, receipt)) break;
  }
  receipts.close();
  return t;
}

int count_items(sluice::receive_only<std::string> in) {
  int count = 0;
  for (const std::string& item : in) count += item.empty() ? 0 : 1;
  return count;
}

// The forms without a wait, and with a limited wait.
bool a_quiet_counter_does_not_hold_us_up() {
  sluice::channel<int> quiet;
  const auto at_once = sluice::try_select(on_receive(quiet, [](outcome<int>) {}));
  const auto later = sluice::select(1ms, on_receive(quiet, [](outcome<int>) {}));
  return at_once.status == status::empty && later.status == status::timed_out;
}

}  // namespace

int main() {
  sluice::channel<int> orders;  // rendezvous: a send ends when the order has been taken
  sluice::channel<int> returns(16);
  sluice::channel<std::string> receipts(4);
  int printed = 0;
  tally served;
  {
    const std::jthread customers([&] { make(orders, orders_made); });
    const std::jthread unhappy_customers([&] { make(returns, returns_made); });
    const std::jthread printer([&] { printed = count_items(receipts); });
    served = serve(orders, returns, receipts);
  }
  std::printf("%d orders, %d returns, %d receipts sent, %d printed\n", served.orders,
              served.returns, served.receipts, printed);
  const bool all = served.orders == orders_made && served.returns == returns_made &&
                   served.receipts == orders_made && printed == orders_made;
  return all && a_quiet_counter_does_not_hold_us_up() ? 0 : 1;
}
