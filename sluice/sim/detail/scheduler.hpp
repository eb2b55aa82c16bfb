#pragma once

// Runs one schedule of a program: its threads on fibers, one at a time, in virtual time. At every
// point at which another thread could affect the result, a strategy chooses the next thread.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <unordered_map>
#include <vector>

#include "sluice/sim/detail/arena.hpp"
#include "sluice/sim/detail/fiber.hpp"
#include "sluice/sim/detail/memory_model.hpp"
#include "sluice/sim/detail/source_lines.hpp"
#include "sluice/sim/detail/strategy.hpp"
#include "sluice/sim/explore.hpp"

namespace sluice::sim::detail {

struct simulated_thread {
  enum class state : std::uint8_t { runnable, blocked, finished };

  std::uint32_t number = 0;
  state status = state::finished;
  bool is_background = false;  // the schedule may end before this thread
  bool joined = false;
  bool timed_out = false;
  std::uint32_t untracked = 0;       // > 0: its allocations outlive the schedule
  std::int64_t until_ns = 0;         // while blocked: its deadline, or never
  const void* blocked_at = nullptr;  // while blocked: the object
  const char* blocked_for = "";
  operation next{};
  std::source_location where;
  call_stack calls;  // used if `where` is unknown, while steps are recorded
  void* (*start)(void*) = nullptr;
  void* argument = nullptr;
  void* result = nullptr;
  std::array<char, 16> name{};
  struct at_end {
    void (*call)(void*);
    void* object;
  };
  std::vector<at_end> at_ends;  // destructors of its thread_local variables
  std::unique_ptr<fiber> stack;
};

inline constexpr std::int64_t never_ns = INT64_MAX;

// One line of a recorded schedule.
struct step_line {
  std::uint32_t step;
  std::uint32_t thread;
  std::string text;
  std::source_location where;
  call_stack calls;  // used in place of `where` for a function of the C library
};

// The last steps of a schedule; earlier ones are only counted.
struct written_steps {
  static constexpr std::size_t lines_max = 160;
  void add(step_line line);
  std::vector<step_line> lines;  // at most twice the number that is shown
  std::size_t before = 0;
};

class scheduler {
 public:
  explicit scheduler(const options& asked);
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;
  ~scheduler();

  struct ended {
    bool pruned = false;  // abandoned: an equivalent schedule was run before
    bool failed = false;
    failure_kind kind{};
    std::string message;
    std::uint32_t steps = 0;
    std::uint32_t threads = 0;
    call_stack loop;  // of an endless loop
  };
  ended run(const std::function<void()>& body, strategy& chooser, bool write_down);
  written_steps take_steps() { return std::move(steps_written_); }
  const std::string& thread_name(std::uint32_t number);

  // The functions below are called by the explored code, on its fiber.

  // A switch point before the operation `next` of the caller.
  void point(const operation& next, const std::source_location& where);
  // A switch point of a thread that spins: prefers the other threads.
  void spin(const char* text);
  void forward(std::int64_t ns);
  // Blocks until woken at `address` (returns true) or until the deadline (returns false).
  bool block(const void* address, const char* text, std::int64_t until_ns);
  // Wakes up to `most` threads blocked at `address`, in FIFO order. Returns their number.
  std::uint32_t wake(const void* address, std::uint32_t most);
  void wake_thread(simulated_thread& t);
  std::int64_t now_ns() const noexcept { return now_ns_; }

  simulated_thread& start(void* (*routine)(void*), void* argument, bool is_background);
  void* join(simulated_thread& other);
  simulated_thread& self() noexcept { return *current_; }
  simulated_thread& nth(std::uint32_t n) noexcept { return *threads_[n]; }

  [[noreturn]] void fail(failure_kind kind, const std::string& message);
  [[noreturn]] void fault(failure_kind kind, const char* message) noexcept;
  // Called by a signal handler that interrupts a loop without a step.
  [[noreturn]] void fail_in_loop(const call_stack& loop) noexcept;
  // Returns a number that changes with each step, also between schedules.
  std::uint64_t progress() const noexcept { return runs_ << 32U | step_; }

  // The knowledge that a lock or a token passes from one thread to another.
  struct hand_over {
    knowledge given;
    bool any = false;
  };
  void give(hand_over& through);
  void take(hand_over& through);
  void learn_everything();
  // Called after a write: spinning threads may observe a change.
  void wrote() noexcept { spinning_ &= bit(*current_); }

  memory_model& memory() noexcept { return memory_; }
  arena& heap() noexcept { return heap_; }
  std::uint32_t steps() const noexcept { return step_; }
  bool weak_memory() const noexcept { return options_.memory == memory_order_model::weak; }
  std::uint32_t choose_value(std::uint32_t count, char type);
  bool writes_down() const noexcept { return write_down_; }
  void note(std::string text, const std::source_location& where);
  // Records a step in a function of the C library, with the line of its caller.
  void note_call(std::string text);
  std::string name_of(const void* at);

  // A mutex, condition or flag of the C library, by its address.
  struct object {
    std::uint32_t owner = none;
    std::uint32_t depth = 0;
    std::uint32_t readers = 0;
    hand_over memory;
  };
  static constexpr std::uint32_t none = UINT32_MAX;
  object& object_at(const void* at);
  void forget_object(const void* at) { objects_.erase(at); }

  // Returns the object for this key, created once per schedule and destroyed after it.
  void* run_local(const void* key, void* (*make)(), void (*destroy)(void*));

 private:
  static void enter(void* thread);
  simulated_thread& free_thread();
  void reschedule(bool self_can_run);
  simulated_thread& pick(bool self_can_run);
  void switch_to(simulated_thread& next);
  bool advance_time();
  void end_run();
  void find_leaks();
  std::string thread_states();
  std::string place_of(const simulated_thread& t) const;
  void unblock(simulated_thread& t, bool timed_out);
  std::uint32_t bit(const simulated_thread& t) const noexcept { return 1U << t.number; }

  const options options_;
  memory_model memory_;
  arena heap_;
  fiber outside_;
  std::vector<std::unique_ptr<simulated_thread>> threads_;  // kept from schedule to schedule
  std::uint32_t thread_count_ = 0;
  simulated_thread* current_ = nullptr;
  strategy* strategy_ = nullptr;
  std::function<void()> const* body_ = nullptr;

  std::uint32_t enabled_ = 0;   // runnable threads, as bits
  std::uint32_t spinning_ = 0;  // those of them that spin without a write since
  std::uint64_t runs_ = 0;
  std::uint32_t step_ = 0;
  std::int64_t now_ns_ = 0;
  std::vector<simulated_thread*> blocked_;  // in the order of blocking
  bool all_ended_ = false;                  // except background threads
  ended result_;
  bool write_down_ = false;
  written_steps steps_written_;
  std::unordered_map<const void*, object> objects_;
  std::unordered_map<const void*, std::uint32_t> names_;
  struct local {
    const void* key;
    void* at;
    void (*destroy)(void*);
  };
  std::vector<local> locals_;
  std::string shown_name_;
};

// The running scheduler; null outside of a schedule.
extern constinit scheduler* active;

// During its life, the caller's work is the simulator's own: it allocates from the real heap.
class own_work {
 public:
  own_work() noexcept;
  own_work(const own_work&) = delete;
  own_work& operator=(const own_work&) = delete;
  ~own_work();

 private:
  const bool was_;
};

}  // namespace sluice::sim::detail
