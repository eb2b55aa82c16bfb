#include "sluice/base/detail/symbols.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <span>

#include "sluice/base/atomic.hpp"
#include "sluice/base/seam.hpp"

namespace sluice::seam {
namespace {

using file_header = ElfW(Ehdr);
using section_header = ElfW(Shdr);
using symbol = ElfW(Sym);

// Maps a file into memory. Never unmapped: names of symbols point into it.
std::span<const std::byte> map_file(const char* path) noexcept {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  struct stat status {};
  void* at = MAP_FAILED;
  if (::fstat(file, &status) == 0 && status.st_size > 0) {
    at = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  }
  ::close(file);
  if (at == MAP_FAILED) return {};
  return {static_cast<const std::byte*>(at), static_cast<std::size_t>(status.st_size)};
}

// Returns a part of the file as an array; empty if it is not inside the file.
template <class T>
std::span<const T> part(std::span<const std::byte> file, std::size_t offset,
                        std::size_t bytes) noexcept {
  if (offset > file.size() || bytes > file.size() - offset) return {};
  return {reinterpret_cast<const T*>(file.data() + offset), bytes / sizeof(T)};
}

// The symbol table of one file.
struct symbol_table {
  std::span<const symbol> symbols{};
  std::span<const char> names{};

  static symbol_table of(std::span<const std::byte> file) noexcept {
    const auto head = part<file_header>(file, 0, sizeof(file_header));
    if (head.empty() || std::memcmp(head[0].e_ident, ELFMAG, SELFMAG) != 0) return {};
    const auto sections = part<section_header>(file, head[0].e_shoff,
                                               head[0].e_shnum * sizeof(section_header));
    for (const auto& s : sections) {
      if (s.sh_type != SHT_SYMTAB || s.sh_link >= sections.size()) continue;
      const auto& strings = sections[s.sh_link];
      return {part<symbol>(file, s.sh_offset, s.sh_size),
              part<char>(file, strings.sh_offset, strings.sh_size)};
    }
    return {};
  }

  // Returns null if no function of the table contains the address.
  const symbol* find(ElfW(Addr) address) const noexcept {
    for (const auto& s : symbols) {
      const bool is_function = (s.st_info & 0xf) == STT_FUNC && s.st_shndx != SHN_UNDEF;
      if (is_function && address - s.st_value < s.st_size && s.st_name < names.size()) return &s;
    }
    return nullptr;
  }
};

struct loaded_file {
  std::uintptr_t key = 0;  // load address + 1; 0: unused entry
  symbol_table table{};
};

// The program and its own shared libraries. Of further files, only the dynamic symbols are known.
constexpr std::size_t files_max = 16;
constinit std::array<loaded_file, files_max> files;
constinit atomic<std::uint32_t> files_lock{0};  // base cannot use sync/spin_lock

symbol_table table_of(const link_map& map) noexcept {
  // acquire and release: pair with each other.
  while (files_lock.exchange(1, acquire) != 0) seam::yield();
  symbol_table found;
  // A program that is not position independent has the load address 0.
  const std::uintptr_t key = map.l_addr + 1;
  for (auto& f : files) {
    if (f.key == 0) {
      const bool is_program = map.l_name == nullptr || *map.l_name == '\0';
      f.table = symbol_table::of(map_file(is_program ? "/proc/self/exe" : map.l_name));
      f.key = key;
    }
    if (f.key == key) {
      found = f.table;
      break;
    }
  }
  files_lock.store(0, release);
  return found;
}

}  // namespace

code_symbol find_symbol(const void* return_address) noexcept {
  const auto place = reinterpret_cast<std::uintptr_t>(return_address);
  const std::uintptr_t inside = place - 1;
  Dl_info known{};
  link_map* map = nullptr;
  if (::dladdr1(reinterpret_cast<const void*>(inside), &known, reinterpret_cast<void**>(&map),
                RTLD_DL_LINKMAP) == 0 ||
      known.dli_fname == nullptr || map == nullptr) {
    return {};
  }
  code_symbol found;
  found.file = known.dli_fname;
  const auto slash = found.file.rfind('/');
  if (slash != std::string_view::npos) found.file.remove_prefix(slash + 1);
  found.offset_in_file = inside - map->l_addr;
  const symbol_table table = table_of(*map);
  if (const symbol* const s = table.find(inside - map->l_addr)) {
    found.name = table.names.data() + s->st_name;
    found.offset = place - map->l_addr - s->st_value;
  } else if (known.dli_sname != nullptr) {
    found.name = known.dli_sname;
    found.offset = place - reinterpret_cast<std::uintptr_t>(known.dli_saddr);
  }
  return found;
}

}  // namespace sluice::seam
