// `go`: a goroutine for every child, which sends its result over a channel (peers/go/forkjoin.go).
#include "benchmarks/forkjoin/fib.hpp"

namespace sluice::bench {
namespace {

const registration added{
    [](suite& s) { add_child_fib(s, "go", {built_peer("go_peer")}); }};

}  // namespace
}  // namespace sluice::bench
