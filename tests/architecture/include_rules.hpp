// The rules for includes.
//
// - A module includes itself and the modules that its row of cmake/layers.txt allows; its tests
//   also those with `test:`. So sluice/ never includes jobs/.
// - A module's detail/ is included only from inside the module, and by at least one file. The
//   detail/ of base, sync, queue and channel may be included by the whole library, but not by its
//   users.
// - testing/ is included by tests only; the product never includes tests, benchmarks or examples.
// - A header of the repository is named by its path from the root.
// - A module includes another library only if its row names it.
// - Every right in cmake/layers.txt is used.
#pragma once

#include "tests/architecture/layer_table.hpp"
#include "tests/architecture/source_tree.hpp"

namespace sluice::architecture {

findings check_includes(const source_tree& tree, const layer_table& layers);
// sluice/queue.hpp includes every public header of sluice/queue/.
findings check_umbrellas(const source_tree& tree);
findings check_rights(const source_tree& tree, const layer_table& layers);

}  // namespace sluice::architecture
