#pragma once

// The function of the program that contains an address, from the symbol tables of the running
// program and its shared libraries.
//
// Reads the whole symbol table of a file, in which functions of the program itself are listed also
// if it was not linked with -rdynamic; of a stripped file only the dynamic symbols are known.
// Guarantees: any thread may call it; nothing is allocated. The first look into a file maps it
// into memory for the rest of the process.

#include <cstdint>
#include <string_view>

namespace sluice::seam {

struct code_symbol {
  std::string_view name{};            // mangled; empty: unknown. Valid while the file is loaded
  std::uintptr_t offset = 0;          // of the return address in the function
  std::string_view file{};            // without its folder; empty: the address is no code
  std::uintptr_t offset_in_file = 0;  // of the call, one byte before: what addr2line takes
};

// A return address stands behind a call, so the function is that of the byte before it.
code_symbol find_symbol(const void* return_address) noexcept;

}  // namespace sluice::seam
