#pragma once

// A stack of its own that a simulated thread runs on, and the switch from one to another. The
// thread_local variables of the program go with it: each fiber has its own copies, as a thread has.

#include <cstddef>
#include <memory>
#include <vector>

namespace sluice::sim::detail {

// The thread_local variables of the executable, as bytes. Libraries that the program is linked to
// statically are part of it; of those that are loaded only the state of exceptions is kept apart.
class thread_variables {
 public:
  thread_variables();
  void reset() noexcept;  // as at the start of a thread
  void put_away() noexcept;
  void bring_back() noexcept;
  // True: it is at the same address on every fiber, and another one on each of them.
  static bool contain(const void* at) noexcept;

 private:
  std::unique_ptr<std::byte[]> bytes_;
  void* caught_ = nullptr;
  unsigned uncaught_ = 0;
};

class fiber {
 public:
  using entry = void (*)(void*);

  fiber();  // the one that is running: it has a stack
  explicit fiber(std::size_t stack_bytes);
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;
  ~fiber();

  // Begins anew when it is next switched to; what ran on it is forgotten. `start` never returns.
  void begin(entry start, void* argument) noexcept;

  // Runs `to` instead of `from`, until somebody switches back.
  static void change(fiber& from, fiber& to) noexcept;

 private:
  void* top_ = nullptr;  // the saved stack pointer
  void* stack_ = nullptr;
  std::size_t bytes_ = 0;
  thread_variables variables_;
};

}  // namespace sluice::sim::detail
