#pragma once

// Says in which function of the program an address of code is, as far as the program's symbols
// tell.

#include <string>

namespace sluice::seam {

// "transfer(account&)+0x1f (server+0x41c20)", or, without a symbol, "server+0x41c20". The latter is
// what addr2line takes: addr2line -i -e server 0x41c20.
std::string code_address_text(const void* return_address);

}  // namespace sluice::seam
