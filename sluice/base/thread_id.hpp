#pragma once

// Which thread of the process this is, as the operating system counts, and what a thread is called:
// so that a report can name threads other than the one that makes it.

#include <cstdint>
#include <string>

namespace sluice::seam {

// The number by which debuggers, `top -H` and /proc know the calling thread.
std::uint32_t kernel_thread_id() noexcept;

// The name of that thread of this process. Empty when there is no such thread any more.
std::string thread_name(std::uint32_t kernel_id);

}  // namespace sluice::seam
