#include "sluice/sim/detail/fiber.hpp"

#include <cxxabi.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "sluice/base/check.hpp"

#if !defined(__x86_64__)
#error "sluice::sim switches stacks on x86-64 only"
#endif

// Saves the callee-saved registers, switches stacks, and restores the registers saved there.
extern "C" void sluice_sim_change_stack(void** save_here, void* go_there);
extern "C" void sluice_sim_enter_stack();
asm(R"(
.text
.globl sluice_sim_change_stack
.type sluice_sim_change_stack,@function
sluice_sim_change_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size sluice_sim_change_stack,.-sluice_sim_change_stack
.globl sluice_sim_enter_stack
.type sluice_sim_enter_stack,@function
sluice_sim_enter_stack:
  movq %r13, %rdi
  callq *%r12
  ud2
.size sluice_sim_enter_stack,.-sluice_sim_enter_stack
)");

namespace sluice::sim::detail {
namespace {

// The address of this thread's copy of the executable's thread_local variables, and their initial
// values.
struct variables_image {
  std::byte* live = nullptr;
  const std::byte* first = nullptr;
  std::size_t first_bytes = 0;
  std::size_t bytes = 0;
};

int find_image(dl_phdr_info* info, std::size_t, void* into) {
  auto& image = *static_cast<variables_image*>(into);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_TLS) continue;
    image.live = static_cast<std::byte*>(info->dlpi_tls_data);
    image.first = reinterpret_cast<const std::byte*>(info->dlpi_addr + part.p_vaddr);
    image.first_bytes = part.p_filesz;
    image.bytes = part.p_memsz;
  }
  return 1;  // stops the iteration: the executable is the first entry
}

const variables_image& image() noexcept {
  static const variables_image found = [] {
    variables_image made;
    ::dl_iterate_phdr(&find_image, &made);
    return made;
  }();
  return found;
}

// The beginning of libstdc++'s exception state, laid out by the C++ ABI.
struct exception_state {
  void* caught;
  unsigned uncaught;
};
exception_state& this_exception_state() noexcept {
  return *reinterpret_cast<exception_state*>(abi::__cxa_get_globals());
}

}  // namespace

thread_variables::thread_variables() : bytes_(new std::byte[image().bytes + 1]) {}

void thread_variables::reset() noexcept {
  const auto& from = image();
  if (from.bytes > 0) {
    std::memcpy(bytes_.get(), from.first, from.first_bytes);
    std::memset(bytes_.get() + from.first_bytes, 0, from.bytes - from.first_bytes);
  }
  caught_ = nullptr;
  uncaught_ = 0;
}

void thread_variables::save() noexcept {
  if (image().bytes > 0) std::memcpy(bytes_.get(), image().live, image().bytes);
  const auto& state = this_exception_state();
  caught_ = state.caught;
  uncaught_ = state.uncaught;
}

void thread_variables::restore() noexcept {
  if (image().bytes > 0) std::memcpy(image().live, bytes_.get(), image().bytes);
  auto& state = this_exception_state();
  state.caught = caught_;
  state.uncaught = uncaught_;
}

bool thread_variables::contain(const void* at) noexcept {
  const auto& of_thread = image();
  const auto* const byte = static_cast<const std::byte*>(at);
  return byte >= of_thread.live && byte < of_thread.live + of_thread.bytes;
}

fiber::fiber() = default;

fiber::fiber(std::size_t stack_bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  bytes_ = (stack_bytes + page - 1) / page * page + page;
  stack_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(stack_ != MAP_FAILED, "sluice::sim", "memory for the stack of a thread");
  // A guard page: only a stack overflow touches it.
  check(::mprotect(stack_, page, PROT_NONE) == 0, "sluice::sim", "a guard page");
}

fiber::~fiber() {
  if (stack_ != nullptr) ::munmap(stack_, bytes_);
}

void fiber::begin(entry start, void* argument) noexcept {
  variables_.reset();
  // The frame that sluice_sim_change_stack restores: six registers and the return address.
  auto* at = reinterpret_cast<std::uintptr_t*>(static_cast<std::byte*>(stack_) + bytes_) - 2;
  *--at = reinterpret_cast<std::uintptr_t>(&sluice_sim_enter_stack);
  *--at = 0;                                           // rbp
  *--at = 0;                                           // rbx
  *--at = reinterpret_cast<std::uintptr_t>(start);     // r12
  *--at = reinterpret_cast<std::uintptr_t>(argument);  // r13
  *--at = 0;                                           // r14
  *--at = 0;                                           // r15
  top_ = at;
}

void fiber::change(fiber& current, fiber& next) noexcept {
  current.variables_.save();
  next.variables_.restore();
  sluice_sim_change_stack(&current.top_, next.top_);
}

}  // namespace sluice::sim::detail
