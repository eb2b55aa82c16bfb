#include "sluice/inspect/format.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace sluice::testing::format_test {
namespace {

using namespace std::chrono_literals;
using inspect::wait_info;

// Two waits: a waits for b's lock, b for capacity in a queue.
std::vector<wait_info> two_waits() {
  const auto a = inspect::party_info{wait_report::party::actor(1), "a \"quoted\""};
  const auto b = inspect::party_info{wait_report::party::actor(2), "b"};
  wait_info first{.number = 1, .party = a, .time = 1500us};
  first.on.push_back({.type = "mutex", .name = "ledger", .wants = "lock"});
  first.on[0].servers.push_back({.party = b, .role = "holds", .held = 2s});
  wait_info second{.number = 2, .party = b, .time = 12s, .has_deadline = true};
  second.on.push_back({.type = "bounded_queue", .name = "emails", .wants = "push", .capacity = 8});
  second.on[0].servers.push_back({.party = a, .role = "pops"});
  return {first, second};
}

TEST(format_test, TextHasARowForEachWait) {
  EXPECT_EQ(inspect::to_text(two_waits()),
            "party                 waits to                                for     limits    at"
            "  could be ended by\n"
            "actor 1 (a \"quoted\")  lock mutex ledger                       1.5 ms            -"
            "   actor 2 (b) holds for 2.0 s\n"
            "actor 2 (b)           push bounded_queue emails (capacity 8)  12.0 s  deadline  -"
            "   actor 1 (a \"quoted\") pops\n");
}

TEST(format_test, TextShowsWhereALockWasAcquired) {
  auto waits = two_waits();
  const call_site here;
  waits[0].on[0].servers[0].at = here;
  const auto text = inspect::to_text(waits);
  EXPECT_NE(text.find("holds for 2.0 s at " + inspect::to_string(here) + '\n'), std::string::npos)
      << text;
}

TEST(format_test, AllLimitsAreNamed) {
  wait_info w{.number = 1, .time = 1s, .ends_by_itself = true};
  w.on.push_back({.type = "future", .wants = "get"});
  EXPECT_NE(inspect::to_text({w}).find("1.0 s  ends by itself  -"), std::string::npos);
  EXPECT_NE(inspect::to_json({w}).find(R"("has_deadline":false,"can_be_stopped":false,)"
                                       R"("ends_by_itself":true)"),
            std::string::npos);
  w.has_deadline = w.can_be_stopped = true;
  EXPECT_NE(inspect::to_text({w}).find("deadline, stop, ends by itself"), std::string::npos);
}

TEST(format_test, JsonHasAMemberForEachField) {
  const std::string expected =
      R"j([{"number":1,"who":{"kind":"actor","number":1,"system":0,"name":"a \"quoted\""},)j"
      R"j("waited_ns":1500000,"has_deadline":false,"can_be_stopped":false,)j"
      R"j("ends_by_itself":false,)j"
      R"j("on":[{"type":"mutex","name":"ledger","address":"(nil)","wants":"lock",)j"
      R"j("could_be_ended_by":[{"who":{"kind":"actor","number":2,"system":0,"name":"b"},)j"
      R"j("how":"holds",)j"
      R"j("held_ns":2000000000}]}]},)j"
      "\n"
      R"j({"number":2,"who":{"kind":"actor","number":2,"system":0,"name":"b"},)j"
      R"j("waited_ns":12000000000,)j"
      R"j("has_deadline":true,"can_be_stopped":false,"ends_by_itself":false,)j"
      R"j("on":[{"type":"bounded_queue",)j"
      R"j("name":"emails","address":"(nil)","wants":"push","capacity":8,)j"
      R"j("could_be_ended_by":[{"who":{"kind":"actor","number":1,"system":0,)j"
      R"j("name":"a \"quoted\""},)j"
      R"j("how":"pops"}]}]}])j"
      "\n";
  EXPECT_EQ(inspect::to_json(two_waits()), expected);
}

// Most JSON readers use a double, which is exact up to 2^53.
TEST(format_test, ActorNumberAndSystemNumberAreSeparateMembers) {
  const auto last = (std::uint64_t{1} << 44) - 1;
  wait_info w{.number = 1, .party = {wait_report::party::actor(7, 60'000), "far"}, .time = 1s};
  w.also_blocked.push_back({wait_report::party::actor(last, 65'535), "last"});
  const auto json = inspect::to_json({w});
  EXPECT_NE(json.find(R"({"kind":"actor","number":7,"system":60000,"name":"far"})"),
            std::string::npos)
      << json;
  EXPECT_NE(json.find(R"("number":17592186044415,"system":65535,"name":"last")"), std::string::npos)
      << json;
  EXPECT_NE(inspect::to_text({w}).find("actor 7 (far)"), std::string::npos);
}

TEST(format_test, DotHasAnEdgeForEachWaitAndEachServer) {
  EXPECT_EQ(inspect::to_dot(two_waits()),
            "digraph waits {\n"
            "  rankdir=LR;\n"
            "  p0 [label=\"actor 1 (a 'quoted')\", shape=box];\n"
            "  o1 [label=\"mutex ledger\", shape=box, style=rounded];\n"
            "  p2 [label=\"actor 2 (b)\", shape=box];\n"
            "  o3 [label=\"bounded_queue emails\", shape=box, style=rounded];\n"
            "  o1 -> p2 [label=\"holds\"];\n"
            "  o3 -> p0 [label=\"pops\"];\n"
            "  p0 -> o1 [label=\"lock 1.5 ms\"];\n"
            "  p2 -> o3 [label=\"push 12.0 s\"];\n"
            "}\n");
}

TEST(format_test, MermaidIsTheSameGraph) {
  EXPECT_EQ(inspect::to_mermaid(two_waits()),
            "flowchart LR\n"
            "  p0[\"actor 1 (a 'quoted')\"]\n"
            "  o1(\"mutex ledger\")\n"
            "  p2[\"actor 2 (b)\"]\n"
            "  o3(\"bounded_queue emails\")\n"
            "  o1 -->|\"holds\"| p2\n"
            "  o3 -->|\"pops\"| p0\n"
            "  p0 -->|\"lock 1.5 ms\"| o1\n"
            "  p2 -->|\"push 12.0 s\"| o3\n");
}

// Two mutexes with the name m: a holds one and waits for the other, which b holds. As one node they
// would form a cycle.
TEST(format_test, ObjectsWithTheSameNameAreDifferentNodes) {
  const int first = 0;
  const int second = 0;
  const auto a = inspect::party_info{wait_report::party::actor(1), "a"};
  const auto b = inspect::party_info{wait_report::party::actor(2), "b"};
  wait_info of_a{.number = 1, .party = a, .time = 1s};
  of_a.on.push_back({.address = &first, .type = "mutex", .name = "m", .wants = "lock"});
  of_a.on[0].servers.push_back({.party = b, .role = "holds"});
  wait_info of_c{.number = 2, .party = {wait_report::party::actor(3), "a"}, .time = 1s};
  of_c.on.push_back({.address = &second, .type = "mutex", .name = "m", .wants = "lock"});
  of_c.on[0].servers.push_back({.party = a, .role = "holds"});
  EXPECT_EQ(inspect::to_mermaid({of_a, of_c}),
            "flowchart LR\n"
            "  p0[\"actor 1 (a)\"]\n"
            "  o1(\"mutex m\")\n"
            "  p2[\"actor 2 (b)\"]\n"
            "  p3[\"actor 3 (a)\"]\n"
            "  o4(\"mutex m\")\n"
            "  o1 -->|\"holds\"| p2\n"
            "  o4 -->|\"holds\"| p0\n"
            "  p0 -->|\"lock 1.0 s\"| o1\n"
            "  p3 -->|\"lock 1.0 s\"| o4\n");
}

TEST(format_test, ActorsWithTheSameNameAreDifferentNodes) {
  const auto a = inspect::party_info{wait_report::party::actor(1), "worker"};
  const auto b = inspect::party_info{wait_report::party::actor(2), "worker"};
  wait_info of_a{.number = 1, .party = a, .time = 1s};
  of_a.on.push_back({.type = "actor", .name = "worker", .wants = "get a reply from"});
  of_a.on[0].servers.push_back({.party = b, .role = "is asked"});
  wait_info of_c{.number = 2, .party = {wait_report::party::actor(3), "desk"}, .time = 1s};
  of_c.on.push_back({.type = "actor", .name = "worker", .wants = "get a reply from"});
  of_c.on[0].servers.push_back({.party = a, .role = "is asked"});
  const auto text = inspect::to_mermaid({of_a, of_c});
  EXPECT_NE(text.find("o1(\"actor worker\")"), std::string::npos) << text;
  EXPECT_NE(text.find("o4(\"actor worker\")"), std::string::npos) << text;
}

TEST(format_test, AnEmptyListHasNoRowsAndNoNodes) {
  EXPECT_EQ(inspect::to_json(std::vector<wait_info>()), "[]\n");
  EXPECT_EQ(inspect::to_dot(std::vector<wait_info>()), "digraph waits {\n  rankdir=LR;\n}\n");
}

TEST(format_test, TimesHaveAUnitThatFits) {
  EXPECT_EQ(inspect::to_text(350ns), "350 ns");
  EXPECT_EQ(inspect::to_text(1500ns), "1.5 us");
  EXPECT_EQ(inspect::to_text(2ms), "2.0 ms");
  EXPECT_EQ(inspect::to_text(90s), "90.0 s");
}

}  // namespace
}  // namespace sluice::testing::format_test
