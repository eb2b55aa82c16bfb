#pragma once

// The stack of a simulated thread, and the switch from one to another. Each fiber has its own
// copies of the program's thread_local variables, as a thread has.

#include <cstddef>
#include <memory>
#include <vector>

namespace sluice::sim::detail {

// A copy of the executable's thread_local variables, including those of libraries that are linked
// statically. Of shared libraries, only the state of exceptions is copied.
class thread_variables {
 public:
  thread_variables();
  void reset() noexcept;  // to the values at the start of a thread
  void save() noexcept;
  void restore() noexcept;
  // Returns true if the address is in a thread_local variable: the same address on every fiber,
  // with a different object on each.
  static bool contain(const void* at) noexcept;

 private:
  std::unique_ptr<std::byte[]> bytes_;
  void* caught_ = nullptr;
  unsigned uncaught_ = 0;
};

class fiber {
 public:
  using entry = void (*)(void*);

  fiber();  // for the calling thread, on its own stack
  explicit fiber(std::size_t stack_bytes);
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;
  ~fiber();

  // Starts `start` at the next switch to this fiber; the previous call on it is abandoned. `start`
  // must not return.
  void begin(entry start, void* argument) noexcept;

  // Suspends `current` and runs `next`. Returns when another fiber switches back.
  static void change(fiber& current, fiber& next) noexcept;

 private:
  void* top_ = nullptr;  // the saved stack pointer
  void* stack_ = nullptr;
  std::size_t bytes_ = 0;
  thread_variables variables_;
};

}  // namespace sluice::sim::detail
