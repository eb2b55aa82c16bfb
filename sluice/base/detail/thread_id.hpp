#pragma once

// Ids and names of the process's threads in the operating system, for reports about other threads.

#include <cstdint>
#include <string>

namespace sluice::seam {

// Returns the calling thread's id in debuggers, `top -H` and /proc.
std::uint32_t kernel_thread_id() noexcept;

// Returns the name of a thread of this process, or an empty string if the thread has ended.
std::string thread_name(std::uint32_t kernel_id);

}  // namespace sluice::seam
