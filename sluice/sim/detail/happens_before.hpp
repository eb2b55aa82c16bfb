#pragma once

// What libstdc++ says about its reference counts: who lets go of a share hands on what it did to
// the one who destroys. Included before everything else in a simulated build, because the macros
// are looked for by its first header.

namespace sluice::sim::detail {

void gives_through(const void* at) noexcept;
void takes_through(const void* at) noexcept;

}  // namespace sluice::sim::detail

#define _GLIBCXX_SYNCHRONIZATION_HAPPENS_BEFORE(at) ::sluice::sim::detail::gives_through(at)
#define _GLIBCXX_SYNCHRONIZATION_HAPPENS_AFTER(at) ::sluice::sim::detail::takes_through(at)
