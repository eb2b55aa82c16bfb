// What a compiler does not mind and a reader, or another build of the same sources, does.
//
// - Form: at most 100 columns, no tab, no trailing whitespace, a newline at the end.
// - Size: a file past twice its usual size is two ideas.
// - Leftovers: no marks for work to be done later.
// - The seam: only sluice/base/ touches atomics, clocks, locks, threads and the kernel's futex
//   directly. Everything else of sluice/ and jobs/ goes through it, so that a build with another
//   base/ can take the scheduler's place. jobs/ may talk to the kernel about processes and signals,
//   and one file of it reads the wall clock.
// - Sleep: a test waits for what it needs, never for time to pass.
#pragma once

#include "tests/architecture/source_tree.hpp"

namespace sluice::architecture {

findings check_form(const source_tree& tree);
findings check_size(const source_tree& tree);
findings check_leftovers(const source_tree& tree);
findings check_seam(const source_tree& tree);
findings check_sleep(const source_tree& tree);

}  // namespace sluice::architecture
