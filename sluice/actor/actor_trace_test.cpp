#include "sluice/actor/actor_trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sluice/actor/actor_router.hpp"
#include "sluice/actor/actor_test_kit.hpp"
#include "sluice/actor/reentrant.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/work_stealing_pool.hpp"

namespace sluice::actor_trace_test {
namespace {

using namespace std::chrono_literals;

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

class stock : public actor<stock, take> {
 public:
  bool on(take m) { return m.item != "gold"; }
};

class mailer : public actor<mailer, mail> {
 public:
  void on(mail m) {
    if (m.text == "gold") throw std::runtime_error("no; \"gold\"");
  }
};

class shop : public actor<shop, order> {
 public:
  shop(ref<stock> s, ref<mailer> m) : stock_(std::move(s)), mailer_(std::move(m)) {}
  task<> on(order m) {
    auto asked = stock_.ask(take{m.item});
    (void)co_await reentrant(std::move(asked));
    (void)mailer_.send(mail{m.item});
  }

 private:
  ref<stock> stock_;
  ref<mailer> mailer_;
};

// A shop, its stock and its mailer, with a trace.
class actor_trace_test : public ::testing::Test {
 protected:
  static actor_system_options observed_by(actor_trace& t) {
    actor_system_options o;
    o.observer = &t;
    return o;
  }

  manual_clock time;
  actor_trace trace{{.capacity = 1000, .time = &time}};
  actor_test_kit kit{observed_by(trace)};
  ref<stock> its_stock = kit.spawn_with<stock>({.name = "stock"});
  ref<mailer> its_mailer = kit.spawn_with<mailer>({.name = "mailer"});
  ref<shop> front = kit.spawn_with<shop>({.name = "shop"}, its_stock, its_mailer);

  void buy(std::string item) {
    ASSERT_TRUE(front.send(order{std::move(item)}));
    kit.settle();
  }
};

TEST_F(actor_trace_test, PrintsARequestAsASequenceDiagram) {
  trace.start();
  buy("tea");
  EXPECT_EQ(trace.mermaid(), R"(sequenceDiagram
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
)");
}

TEST_F(actor_trace_test, MessagesOfAHandlerBelongToTheTraceOfItsMessage) {
  trace.start();
  ASSERT_TRUE(front.send(order{"tea"}));
  ASSERT_TRUE(front.send(order{"milk"}));  // the two are in the shop at the same time
  kit.settle();
  const std::string first = trace.mermaid({.trace = 1, .activations = false});
  EXPECT_EQ(first, trace.mermaid({.trace = 2, .activations = false}));
  EXPECT_NE(first.find("a0->>a3: order\n  a3->>a1: take\n  a3->>a2: mail\n"), std::string::npos)
      << first;
  for (const trace_event& e : trace.events()) EXPECT_LE(e.trace, 2U);
}

// Passes its message on to the first member of a group with capacity, and waits for that.
class dispatcher : public actor<dispatcher, order> {
 public:
  explicit dispatcher(const actor_router<mailer>& router) : router_(router) {}
  task<> on(order m) {
    mail letter{m.item};
    auto sending = router_.async_send(std::move(letter));
    const status outcome = co_await std::move(sending);
    EXPECT_TRUE(outcome);
  }

 private:
  const actor_router<mailer> router_;
};

TEST_F(actor_trace_test, AFullGroupKeepsTheTraceOfAWaitingMessage) {
  manual_executor aside;
  actor_options small;
  small.mailbox.capacity = 1;
  small.on = &aside;
  const actor_router<mailer> group(kit.system(), {.members = 3, .name = "group", .member = small});
  const auto sender = kit.spawn_with<dispatcher>({.name = "sender"}, group);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(group.send(mail{"before"}));
  kit.settle();
  trace.start();
  ASSERT_TRUE(sender.send(order{"tea"}));
  kit.settle();
  for (int i = 0; i < 3; ++i) {
    aside.run_all();
    kit.settle();
  }
  const std::vector<trace_event> all = trace.events();
  const auto is_last_begun = [](const trace_event& e) {
    return e.event == trace_event::kind::begun && e.message != 0;
  };
  const auto begun = std::find_if(all.rbegin(), all.rend(), is_last_begun);
  ASSERT_NE(begun, all.rend());
  EXPECT_NE(begun->type.find("mail"), std::string_view::npos);
  EXPECT_EQ(begun->trace, 1U) << "the trace of the order";
  const auto sent = std::ranges::find(all, begun->message, &trace_event::number);
  ASSERT_NE(sent, all.end());
  EXPECT_EQ(sent->event, trace_event::kind::sent);
  EXPECT_EQ(sent->receiver, begun->receiver) << "it was sent to the member that it waited for";
  EXPECT_EQ(sent->from, sender.id());
  kit.system().stop();
  while (kit.settle() + aside.run_all() > 0) {
  }
}

TEST_F(actor_trace_test, ShowsFailuresAndLostMessages) {
  trace.start();
  buy("gold");
  its_mailer.stop();
  kit.settle();
  buy("tea");
  const std::string text = trace.mermaid({.activations = false});
  EXPECT_NE(text.find("  Note over a2: failed: no#59; \"gold\"\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  a3-xa2: mail (the actor has ended)\n"), std::string::npos) << text;
}

TEST_F(actor_trace_test, PrintsRowsSlicesAndArrowsForATraceViewer) {
  trace.start();
  ASSERT_TRUE(its_mailer.send(mail{"tea"}));
  time.advance(1500ns);
  kit.settle();
  EXPECT_EQ(trace.chrome_json(),
            R"({"displayTimeUnit":"ns","otherData":{"lost_events":0},"traceEvents":[
{"ph":"M","name":"thread_name","pid":1,"tid":0,"args":{"name":"outside"}},
{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"mailer"}},
{"ph":"s","name":"mail","pid":1,"tid":0,"cat":"message","id":1,"ts":0.000},
{"ph":"f","name":"mail","pid":1,"tid":2,"cat":"message","id":1,"ts":1.500,"bp":"e"},
{"ph":"X","name":"mail","pid":1,"tid":2,"ts":1.500,"dur":0.000,)"
            R"("args":{"trace":1,"message":"mail","from":"outside"}}
]}
)");
}

TEST_F(actor_trace_test, EscapesNamesFromUsers) {
  const auto odd = kit.spawn_with<mailer>({.name = "a\"b\\c\n<d>;#"});
  trace.start();
  ASSERT_TRUE(odd.send(mail{"gold"}));
  kit.settle();
  const std::string json = trace.chrome_json();
  EXPECT_NE(json.find(R"({"name":"a\"b\\c\n<d>;#"})"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("why":"no; \"gold\"")"), std::string::npos) << json;
  const std::string text = trace.mermaid();
  EXPECT_NE(text.find(" as a\"b\\c #60;d#62;#59;#35;\n"), std::string::npos) << text;
}

TEST_F(actor_trace_test, RecordsOnlyWhileItIsOn) {
  buy("tea");
  EXPECT_TRUE(trace.events().empty());
  trace.start();
  buy("tea");
  const std::size_t of_one = trace.events().size();
  EXPECT_GT(of_one, 0U);
  trace.stop();
  buy("tea");
  EXPECT_EQ(trace.events().size(), of_one);
  trace.start();
  buy("tea");
  EXPECT_EQ(trace.events().size(), 2 * of_one);
  trace.stop();
  trace.clear();
  EXPECT_TRUE(trace.events().empty());
}

TEST_F(actor_trace_test, AMessageThatIsBegunAfterTheStartIsATraceOfItsOwn) {
  ASSERT_TRUE(its_mailer.send(mail{"tea"}));
  trace.start();
  kit.settle();
  const auto events = trace.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].event, trace_event::kind::begun);
  EXPECT_EQ(events[0].message, 0U);
  EXPECT_EQ(events[0].trace, 1U);
}

struct wind {};
struct ring {};
class alarm_bell : public actor<alarm_bell, wind, ring> {
 public:
  void on(wind) { send_after(1s, ring{}); }
  void on(ring) {}
};

TEST_F(actor_trace_test, AMessageFromATimerIsATraceOfItsOwn) {
  const auto bell = kit.spawn_with<alarm_bell>({.name = "bell"});
  trace.start();
  ASSERT_TRUE(bell.send(wind{}));
  kit.advance(1s);
  const auto events = trace.events();
  ASSERT_EQ(events.size(), 6U);
  EXPECT_EQ(events[0].trace, 1U);
  EXPECT_EQ(events[3].event, trace_event::kind::sent);
  EXPECT_EQ(events[3].from, bell.id());
  EXPECT_EQ(events[3].trace, 2U);
}

TEST(actor_trace_ring_test, KeepsTheLastEventsAndCountsTheOthers) {
  actor_trace trace({.capacity = 10});
  actor_system_options o;
  o.observer = &trace;
  actor_test_kit kit(std::move(o));
  const auto m = kit.spawn_with<mailer>({.name = "mailer"});
  trace.start();
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(m.send(mail{"tea"}));
    kit.settle();
  }
  const auto events = trace.events();
  ASSERT_EQ(events.size(), 10U);  // of 7 * 3
  EXPECT_EQ(events.front().number, 12U);
  EXPECT_EQ(events.back().number, 21U);
  EXPECT_EQ(trace.lost_events(), 11U);
  EXPECT_NE(trace.mermaid().find("%% 11 older events are lost"), std::string::npos);
  EXPECT_NE(trace.chrome_json().find("\"lost_events\":11"), std::string::npos);
}

TEST(actor_trace_ring_test, RecordsEveryEventOfManyThreadsOnce) {
  constexpr int messages_each = 500;
  actor_trace trace({.capacity = 100'000});
  work_stealing_pool pool({.threads = 2});
  actor_system_options o;
  o.observer = &trace;
  actor_system system(pool, std::move(o));
  const auto m = system.spawn<mailer>();
  const auto s = system.spawn<stock>();
  const auto front = system.spawn<shop>(s, m);
  trace.start();
  for (int i = 0; i < messages_each; ++i) ASSERT_TRUE(front.send(order{"tea"}));
  system.close();
  ASSERT_TRUE(system.join());
  const auto events = trace.events();
  const auto count = [&](trace_event::kind kind) {
    return std::ranges::count(events, kind, &trace_event::event);
  };
  EXPECT_EQ(trace.lost_events(), 0U);
  EXPECT_EQ(count(trace_event::kind::sent),
            count(trace_event::kind::begun) + count(trace_event::kind::lost));
  EXPECT_EQ(count(trace_event::kind::begun) + count(trace_event::kind::resumed),
            count(trace_event::kind::handled));
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].number, i + 1);
}

}  // namespace
}  // namespace sluice::actor_trace_test
