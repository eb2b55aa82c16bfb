#include "sluice/future/detail/task_promise.hpp"

#include <cstddef>
#include <cstdint>
#include <source_location>

namespace sluice::detail {
namespace {

// A small part of the smallest usual stack of a thread, and many times the stack from an executor's
// loop to a coroutine.
constexpr std::uintptr_t deep_bytes = 64 * 1024;

constinit thread_local std::uintptr_t shallowest = 0;

constinit const std::stop_token no_token;

}  // namespace

bool stack_is_deep() noexcept {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (here > shallowest) [[unlikely]] shallowest = here;  // stacks grow downwards
  return shallowest - here > deep_bytes;
}

const std::stop_token& no_stop_token() noexcept { return no_token; }

void task_is_miscompiled(const call_site& at) noexcept {
  contract_broken("sluice::task", nullptr,
                  "a coroutine that the compiler has translated correctly. g++ 12 does not if its "
                  "first co_await is in the condition of an if, while, for or switch and no "
                  "variable is declared before. Name the result first: "
                  "const auto s = co_await x(); if (s) ...",
                  at, std::source_location::current());
}

std::coroutine_handle<> task_link::post_next(std::coroutine_handle<> next,
                                             work_sink* target) noexcept {
  next_ = next;
  post_to(target, *this);
  return std::noop_coroutine();
}

}  // namespace sluice::detail
