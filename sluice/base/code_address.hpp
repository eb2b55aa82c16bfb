#pragma once

// Says in which function of the program an address of code is, as far as the program's symbols
// tell.

#include <string>

namespace sluice::seam {

// "transfer(account&)+0x1f", or, where there is no symbol, "server+0x41c20": what addr2line takes.
std::string code_address_text(const void* address);

}  // namespace sluice::seam
