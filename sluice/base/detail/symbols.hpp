#pragma once

// Finds the function of the program that contains an address, in the symbol tables of the running
// program and its shared libraries.
//
// Reads the full symbol table of a file, so the program need not be linked with -rdynamic. Of a
// stripped file, only the dynamic symbols are known.
// Guarantees: any thread may call it; it allocates nothing. Its first search in a file maps the
// file into memory for the rest of the process.

#include <cstdint>
#include <string_view>

namespace sluice::seam {

struct code_symbol {
  std::string_view name{};            // mangled; empty: unknown. Valid while the file is loaded
  std::uintptr_t offset = 0;          // of the return address in the function
  std::string_view file{};            // without its folder; empty: the address is no code
  std::uintptr_t offset_in_file = 0;  // of the call, one byte before, as addr2line needs it
};

// A return address is the address after a call, so the function is that of the byte before it.
code_symbol find_symbol(const void* return_address) noexcept;

}  // namespace sluice::seam
