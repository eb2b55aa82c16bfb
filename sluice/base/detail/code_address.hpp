#pragma once

// The text of a code address: its function, if the program has symbols, and its offset in the file.

#include <string>

namespace sluice::seam {

// Returns "transfer(account&)+0x1f (server+0x41c1f)", or "server+0x41c1f" if there is no symbol.
// The offset in the file is of the call before the return address, as addr2line needs it:
// addr2line -i -e server 0x41c1f.
std::string code_address_text(const void* return_address);

}  // namespace sluice::seam
