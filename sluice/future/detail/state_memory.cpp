#include "sluice/future/detail/state_memory.hpp"

namespace sluice::detail {

constinit thread_local kept_blocks this_thread_keeps{};

namespace {

// Its destructor runs at the end of the thread. Blocks that are given back after that, by other
// thread_local objects, are freed at once.
struct free_at_thread_end {
  ~free_at_thread_end() {
    this_thread_keeps.stage = 2;
    for (auto& kept : this_thread_keeps.of_size) {
      while (kept.first != nullptr) {
        auto* const next = kept.first->next;
        ::operator delete(kept.first);
        kept.first = next;
      }
      kept.count = 0;
    }
  }
  void touch() const noexcept {}
};

}  // namespace

bool begin_to_keep() noexcept {
  if (this_thread_keeps.stage != 0) return false;
  thread_local const free_at_thread_end at_end;
  at_end.touch();
  this_thread_keeps.stage = 1;
  return true;
}

}  // namespace sluice::detail
