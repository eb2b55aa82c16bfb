#pragma once

// The happens-before annotations of libstdc++'s reference counts: an owner that releases its share
// publishes its writes to the owner that destroys. Included before everything else in a simulated
// build, because libstdc++'s first header reads the macros.

namespace sluice::sim::detail {

void release_through(const void* at) noexcept;
void acquire_through(const void* at) noexcept;

}  // namespace sluice::sim::detail

#define _GLIBCXX_SYNCHRONIZATION_HAPPENS_BEFORE(at) ::sluice::sim::detail::release_through(at)
#define _GLIBCXX_SYNCHRONIZATION_HAPPENS_AFTER(at) ::sluice::sim::detail::acquire_through(at)
