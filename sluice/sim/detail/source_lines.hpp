#pragma once

// Turns addresses of code into lines of source, by `addr2line` where it is installed. For reports:
// it starts a process.

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace sluice::sim::detail {

// The calls under way on this thread, innermost first. Each address lies inside its call.
struct call_stack {
  static constexpr std::size_t depth_max = 24;
  std::array<const void*, depth_max> addresses{};
  std::size_t depth = 0;

  std::span<const void* const> calls() const noexcept { return {addresses.data(), depth}; }
};

// Loads what `calls_from_here` needs, so that it allocates nothing, also in a signal handler.
void prepare_call_stacks() noexcept;
// `interrupted`: the stack begins at this address, below the frames of a signal handler.
call_stack calls_from_here(const void* interrupted = nullptr) noexcept;

// Looks up all their lines at once: each time, a process is started.
void find_lines(std::span<const call_stack* const> stacks);

// "purse_test.cpp:17": the innermost line that is neither the simulator's nor in a header of the
// standard library. Empty if there is none.
std::string caller_line(const call_stack& calls);
// "spend(purse&) (purse_test.cpp:17)" for each of those lines, innermost first, `most` at most.
// A call without a line is shown by its function or address.
std::vector<std::string> caller_lines(const call_stack& calls, std::size_t most);

}  // namespace sluice::sim::detail
