#pragma once

// Says in which function of the program an address of code is, as far as the program's symbols
// tell.

#include <string>

namespace sluice::seam {

// "transfer(account&)+0x1f (server+0x41c1f)", or, without a symbol, "server+0x41c1f". The latter is
// the call before the return address, and what addr2line takes: addr2line -i -e server 0x41c1f.
std::string code_address_text(const void* return_address);

}  // namespace sluice::seam
