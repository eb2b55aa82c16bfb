// The snippets of docs/concepts/actors.md, "Many of one kind".
#include <chrono>
#include <cstdio>
#include <string>

#include "sluice/actor/actor_pool.hpp"
#include "sluice/actor/actor_registry.hpp"
#include "sluice/actor/actor_router.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/event_bus.hpp"
#include "sluice/executor/work_stealing_pool.hpp"

namespace {

using namespace std::chrono_literals;

struct deposit {
  std::string account;
  long amount;
  const std::string& key() const { return account; }  // for routing::by_key
};
struct total {
  using reply = long;
};
struct order_placed {
  int number;
};

class teller : public sluice::actor<teller, deposit, total, order_placed> {
 public:
  void on(deposit m) { sum_ += m.amount; }
  long on(total) { return sum_; }
  void on(order_placed) {}

 private:
  long sum_ = 0;
};

bool one_address_for_many(sluice::actor_system& system) {
  const sluice::actor_router<teller> bank(
      system, {.rule = sluice::routing::by_key, .members = 4, .name = "bank"});
  if (!bank.send(deposit{"ann", 10}) || !bank.send(deposit{"ann", 5})) return false;
  // Both went to the same member, one after the other.
  return bank.owner_of(std::string("ann")).ask(total{}).get() == 15;
}

bool all_of_them(sluice::actor_system& system) {
  const sluice::actor_router<teller> bank(system, {.members = 3});
  const std::size_t accepted = bank.broadcast(deposit{"all", 1});
  const long first = bank.ask_first(total{}, sluice::deadline::after(10s)).get();
  return accepted == 3 && first == 1;
}

bool as_many_as_needed(sluice::actor_system& system) {
  const sluice::actor_pool<teller> desk(
      system, {.members_min = 1, .members_max = 16, .grow_at = 4, .idle_for = 30s});
  for (int i = 0; i < 100; ++i) {
    if (!desk.send(deposit{"ann", 1})) return false;
  }
  const sluice::actor_group_stats now = desk.stats();
  std::printf("%zu members, %llu more than at first\n", now.members,
              static_cast<unsigned long long>(now.grown));
  return now.handed == 100;
}

bool subscribers(sluice::actor_system& system) {
  const auto clerk = system.spawn<teller>();
  sluice::event_bus bus({.on_drop = [](const sluice::missed_event& m) {
    std::printf("%s was missed\n", std::string(m.topic).c_str());
  }});
  const auto subscription = bus.subscribe<order_placed>("orders.*", clerk);
  const std::size_t accepted = bus.publish("orders.eu", order_placed{17});
  return accepted == 1 && bus.unsubscribe(subscription);
}

bool by_name(sluice::actor_system& system) {
  sluice::actor_registry names;
  const auto clerk = system.spawn<teller>();
  if (names.register_as("clerk", clerk) != sluice::registration::done) return false;
  const auto found = names.wait_for<teller>("clerk", {sluice::deadline::after(5s)});
  return found && *found == clerk;
}

}  // namespace

int main() {
  sluice::work_stealing_pool pool({.threads = 2});
  sluice::actor_system system(pool);
  const bool ok = one_address_for_many(system) && all_of_them(system) &&
                  as_many_as_needed(system) && subscribers(system) && by_name(system);
  return ok ? 0 : 1;
}
