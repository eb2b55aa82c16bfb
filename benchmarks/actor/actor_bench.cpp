// ./bench actor: the cost of messages and actors, and eight workloads of the Savina suite.
//
// Every contender has its own files in this folder; sizes are in workloads.hpp. The bars are the
// project's targets.
#include "benchmarks/actor/population.hpp"
#include "benchmarks/harness.hpp"

using namespace sluice::bench;

namespace {

void declare_our_own(suite& s) {
  s.declare({.name = "pingpong",
             .summary = "two actors, one message in flight; messages of both directions",
             .unit = "messages/s",
             .bars = {at_least(2, "caf"), at_least(1, "go")}});
  s.declare({.name = "ring",
             .summary = "100 actors in a ring, one token",
             .unit = "hops/s",
             .bars = {at_least(2, "caf"), at_least(1, "go")}});
  s.declare({.name = "fanin",
             .summary = "8 actors send a million messages of 8 bytes each to one actor",
             .unit = "messages/s",
             .bars = {at_least(2, "caf"), at_least(1, "go")}});
  s.declare({.name = "create",
             .summary = "a million actors created, in a fresh process, all kept alive",
             .unit = "actors/s",
             .bars = {above(2e6)}});
  s.declare({.name = "bytes",
             .summary = "resident memory for each of a million actors that have handled a message",
             .unit = "bytes",
             .direction = better::lower,
             .bars = {below(301)},
             .repetitions_max = 3});
  s.declare({.name = "idle_cpu_ms",
             .summary = "CPU time of a process with a million idle actors in 1 s",
             .unit = "ms",
             .direction = better::lower,
             .bars = {below(1)},
             .repetitions_max = 3});
}

void declare_savina(suite& s) {
  s.declare({.name = "savina-ping-pong",
             .summary = "two actors, a million pings, each answered",
             .unit = "messages/s",
             .bars = {at_least(2, "caf")}});
  s.declare({.name = "savina-thread-ring",
             .summary = "100 actors in a ring, one token that makes two million hops",
             .unit = "hops/s",
             .bars = {at_least(2, "caf")}});
  s.declare({.name = "savina-counting",
             .summary = "one actor sends another four million increments, then requests the count",
             .unit = "messages/s",
             .bars = {at_least(2, "caf")}});
  s.declare({.name = "savina-fork-join-create",
             .summary = "200,000 actors are created, compute once for a message, and end",
             .unit = "actors/s",
             .bars = {at_least(2, "caf")}});
  s.declare({.name = "savina-fork-join-throughput",
             .summary = "60 actors get 30,000 messages each, in turn, and compute for each",
             .unit = "messages/s",
             .bars = {at_least(2, "caf")}});
  s.declare({.name = "savina-chameneos",
             .summary = "100 creatures meet in pairs, 300,000 times, at one actor",
             .unit = "meetings/s",
             .bars = {at_least(2, "caf")}});
  s.declare({.name = "savina-big",
             .summary = "120 actors, each pings one of them at random 8,000 times",
             .unit = "pings/s",
             .bars = {at_least(2, "caf")}});
  s.declare({.name = "savina-bank-transaction",
             .summary = "100,000 transfers between 1,000 accounts; the payer waits for the payee",
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
