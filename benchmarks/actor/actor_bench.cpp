// ./bench actor: what a message costs, what an actor costs, and eight of the Savina suite.
//
// Every contender has its own files beside this one; sizes are in workloads.hpp. The bars are what
// the project promises.
#include "benchmarks/actor/population.hpp"
#include "benchmarks/harness.hpp"

using namespace sluice::bench;

namespace {

void declare_our_own(suite& s) {
  s.declare({.name = "pingpong",
             .about = "two actors, one message under way; messages of both directions",
             .unit = "messages/s",
             .bars = {at_least(2, "caf"), at_least(1, "go")}});
  s.declare({.name = "ring",
             .about = "100 actors in a ring, one token",
             .unit = "hops/s",
             .bars = {at_least(2, "caf"), at_least(1, "go")}});
  s.declare({.name = "fanin",
             .about = "8 actors send a million messages of 8 bytes each to one",
             .unit = "messages/s",
             .bars = {at_least(2, "caf"), at_least(1, "go")}});
  s.declare({.name = "create",
             .about = "a million actors created, in a fresh process, all kept alive",
             .unit = "actors/s",
             .bars = {above(2e6)}});
  s.declare({.name = "bytes",
             .about = "resident memory for each of a million actors that have handled a message",
             .unit = "bytes",
             .direction = better::lower,
             .bars = {below(301)},
             .repetitions_max = 3});
  s.declare({.name = "idle_cpu_ms",
             .about = "CPU time of a process with a million idle actors in 1 s",
             .unit = "ms",
             .direction = better::lower,
             .bars = {below(1)},
             .repetitions_max = 3});
}

void declare_savina(suite& s) {
  s.declare({.name = "savina-ping-pong",
             .about = "two actors, a million pings, each answered",
             .unit = "messages/s",
             .bars = {at_least(2, "caf")}});
  s.declare({.name = "savina-thread-ring",
             .about = "100 actors in a ring, one token that is passed on two million times",
             .unit = "hops/s",
             .bars = {at_least(2, "caf")}});
  s.declare({.name = "savina-counting",
             .about = "one actor tells another four million times to add one, then asks",
             .unit = "messages/s",
             .bars = {at_least(2, "caf")}});
  s.declare({.name = "savina-fork-join-create",
             .about = "200,000 actors are created, compute once when told to, and end",
             .unit = "actors/s",
             .bars = {at_least(2, "caf")}});
  s.declare({.name = "savina-fork-join-throughput",
             .about = "60 actors get 30,000 messages each, in turn, and compute at each",
             .unit = "messages/s",
             .bars = {at_least(2, "caf")}});
  s.declare({.name = "savina-chameneos",
             .about = "100 creatures meet 300,000 times in one place, by twos",
             .unit = "meetings/s",
             .bars = {at_least(2, "caf")}});
  s.declare({.name = "savina-big",
             .about = "120 actors, each pings one of them at random 8,000 times",
             .unit = "pings/s",
             .bars = {at_least(2, "caf")}});
  s.declare({.name = "savina-bank-transaction",
             .about = "100,000 transfers between 1,000 accounts; who pays waits for who is paid",
             .unit = "transfers/s",
             .bars = {at_least(2, "caf")}});
}

}  // namespace

int main(int argc, char** argv) {
  run_if_child(argc, argv);
  suite s("actor");
  declare_our_own(s);
  declare_savina(s);
  return s.run(argc, argv);
}
