// What may be included from where.
//
// - A module includes itself and what its row of cmake/layers.txt allows; its tests also what the
//   row allows them with `test:`. So sluice/ never includes jobs/.
// - A module's detail/ is included from inside that module only, and somebody does include it.
// - testing/ is included by tests only; the product never includes tests, benchmarks or examples.
// - A header of ours is named by its path from the root of the repository.
// - A module includes no library from outside, unless its row says so.
#pragma once

#include "tests/architecture/layer_table.hpp"
#include "tests/architecture/source_tree.hpp"

namespace sluice::architecture {

findings check_includes(const source_tree& tree, const layer_table& layers);

}  // namespace sluice::architecture
