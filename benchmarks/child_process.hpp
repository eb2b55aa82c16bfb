#pragma once

// Runs a peer that is not written in C++: a program that measures itself and prints one number.

#include <sys/types.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

// Starts `command` (a program, found on the PATH, and its arguments; no shell) with `files` as its
// standard output and error; the default is those of this program. Fails the bench if it cannot.
struct child_files {
  int out = STDOUT_FILENO;
  int err = STDERR_FILENO;
};
pid_t start_child(const std::vector<std::string>& command, child_files files);

// Runs `command`, as above, and returns the number that it prints on stdout. Fails the bench if it
// exits with an error, for example because of a wrong checksum; its stderr is passed through.
double run_child(const std::vector<std::string>& command);

// Returns the path of a peer that was built with this benchmark: in the folder `peers` beside it.
std::string built_peer(const std::string& file);

// Returns the command that starts a class of the Java peer: peers/java/NAME.java.
std::vector<std::string> java_peer(const std::string& main_class);

// The arguments of both peers, after the program itself.
struct peer_run {
  std::string workload;  // the name in the peer's source
  int producers = 1;
  int consumers = 1;
  int capacity = 1;
};

// Returns a measure that starts `program... workload P C capacity milliseconds` for each
// repetition. The program prints operations per second.
measure child_run(std::vector<std::string> program, peer_run run);

}  // namespace sluice::bench
