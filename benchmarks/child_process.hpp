#pragma once

// Runs a peer that is not written in C++: a program that measures itself and prints one number.

#include <sys/types.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

// Starts `command` (a program, found on the PATH, and its arguments; no shell) with these as its
// standard output and error, or those of this program. Fails the bench when it cannot.
struct child_files {
  int out = STDOUT_FILENO;
  int err = STDERR_FILENO;
};
pid_t start_child(const std::vector<std::string>& command, child_files files);

// Runs `command`, as above, and returns the one number that it prints on stdout. Fails the bench
// when it exits with an error, as a peer does whose checksum is wrong; its stderr is passed
// through.
double run_child(const std::vector<std::string>& command);

// The path of a peer that was built with this benchmark: in the folder `peers` beside it.
std::string built_peer(const std::string& file);

// How to start a class of the Java peer: peers/java/NAME.java.
std::vector<std::string> java_peer(const std::string& main_class);

// The arguments that both peers understand, after the program itself.
struct peer_run {
  std::string workload;  // as the peer's source says
  int producers = 1;
  int consumers = 1;
  int capacity = 1;
};

// A measure that starts `program` anew each time: `program... workload P C capacity milliseconds`.
// It prints operations per second.
measure child_run(std::vector<std::string> program, peer_run what);

}  // namespace sluice::bench
