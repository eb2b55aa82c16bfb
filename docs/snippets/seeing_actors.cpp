// The snippets of docs/guides/seeing-actors.md.
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "sluice/actor/actor_counters.hpp"
#include "sluice/actor/actor_probe.hpp"
#include "sluice/actor/actor_test_kit.hpp"
#include "sluice/actor/actor_trace.hpp"
#include "sluice/actor/observer_list.hpp"
#include "sluice/actor/reentrant.hpp"
#include "sluice/actor/stall_detector.hpp"
#include "sluice/executor/work_stealing_pool.hpp"

using namespace std::chrono_literals;

namespace {

struct order {
  std::string item;
};
struct take {
  using reply = bool;
  std::string item;
};
struct mail {
  std::string text;
};

class stock : public sluice::actor<stock, take> {
 public:
  bool on(take m) { return m.item != "gold"; }
};

class mailer : public sluice::actor<mailer, mail> {
 public:
  void on(mail m) { last_ = std::move(m.text); }

 private:
  std::string last_;
};

class shop : public sluice::actor<shop, order> {
 public:
  shop(sluice::recipient<take> from, sluice::recipient<mail> mailer)
      : stock_(std::move(from)), mailer_(std::move(mailer)) {}

  sluice::task<> on(order m) {
    auto asked = stock_.ask(take{m.item});
    const bool has_it = co_await sluice::reentrant(std::move(asked));
    (void)mailer_.send(mail{has_it ? "sold: " + m.item : "sorry"});
  }

 private:
  sluice::recipient<take> stock_;
  sluice::recipient<mail> mailer_;
};

// The picture in the guide.
constexpr const char* picture = R"(sequenceDiagram
  participant a0 as outside
  participant a3 as shop
  participant a1 as stock
  participant a2 as mailer
  a0->>a3: order
  activate a3
  a3->>a1: take
  deactivate a3
  activate a1
  deactivate a1
  activate a3
  a3->>a2: mail
  deactivate a3
  activate a2
  deactivate a2
)";

bool a_request_is_followed() {
  sluice::actor_trace trace;
  sluice::actor_system_options seen;
  seen.observer = &trace;
  sluice::actor_test_kit kit(std::move(seen));
  const auto its_stock = kit.spawn_with<stock>({.name = "stock"});
  const auto its_mailer = kit.spawn_with<mailer>({.name = "mailer"});
  const auto front = kit.spawn_with<shop>({.name = "shop"}, its_stock, its_mailer);
  trace.start();
  (void)front.send(order{"tea"});
  kit.settle();
  trace.stop();
  return trace.mermaid() == picture;
}

bool all_of_them_at_once() {
  std::vector<std::string> log;
  sluice::work_stealing_pool pool;

  sluice::actor_trace trace;
  sluice::actor_counters counters;
  sluice::stall_detector detector({.slow_after = 5s,
                                   .on_slow = [&](const auto& s) { log.push_back(s.text()); },
                                   .on_cycle = [&](const auto& c) { log.push_back(c.text()); }});
  sluice::observer_list all({&trace, &counters, &detector});

  sluice::actor_system_options options;
  options.observer = &all;
  sluice::actor_system system(pool, std::move(options));

  const auto m = system.spawn_with<mailer>({.name = "mailer"});
  for (int i = 0; i < 100; ++i) (void)m.send(mail{"tea"});
  m.close();
  (void)m.ended().get();

  const auto busiest = counters.read(system).top(10, sluice::actor_order::handler_time);
  std::printf("%s", busiest.table().c_str());
  return busiest.ended.messages == 100 && detector.find_cycles().empty() && log.empty();
}

bool a_probe_in_the_place_of_others() {
  sluice::actor_test_kit kit;
  sluice::actor_probe<take> its_stock(kit, "stock");
  sluice::actor_probe<mail> its_mailer(kit, "mailer");
  const auto front = kit.spawn<shop>(its_stock.ref(), its_mailer.ref());

  (void)front.send(order{"tea"});
  const bool asked_for_tea = its_stock.expect<take>().item == "tea";
  its_mailer.expect_no_message();
  its_stock.reply<take>(true);
  return asked_for_tea && its_mailer.expect<mail>().text == "sold: tea";
}

}  // namespace

int main() {
  const bool all_well =
      a_request_is_followed() && all_of_them_at_once() && a_probe_in_the_place_of_others();
  if (!all_well) std::printf("a snippet of seeing-actors.md failed\n");
  return all_well ? 0 : 1;
}
