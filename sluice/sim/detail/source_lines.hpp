#pragma once

// Resolves code addresses to source lines with `addr2line`, if it is installed. Starts a process,
// so it is for reports only.

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace sluice::sim::detail {

// The active calls of a thread, innermost first. Each address lies inside its call instruction.
struct call_stack {
  static constexpr std::size_t depth_max = 24;
  std::array<const void*, depth_max> addresses{};
  std::size_t depth = 0;

  std::span<const void* const> calls() const noexcept { return {addresses.data(), depth}; }
};

// Loads the unwinder, so that `calls_from_here` allocates nothing, also in a signal handler.
void prepare_call_stacks() noexcept;
// `interrupted`: starts the stack at this address, without the frames of a signal handler.
call_stack calls_from_here(const void* interrupted = nullptr) noexcept;

// Resolves the lines of all stacks, with one process per binary.
void find_lines(std::span<const call_stack* const> stacks);

// Returns "purse_test.cpp:17": the innermost line that is neither in the simulator nor in a header
// of the standard library, or "" without such a line.
std::string caller_line(const call_stack& calls);
// Returns "spend(purse&) (purse_test.cpp:17)" for each of those lines, innermost first, at most
// `most`. A call without a line is shown as its function or address.
std::vector<std::string> caller_lines(const call_stack& calls, std::size_t most);

}  // namespace sluice::sim::detail
