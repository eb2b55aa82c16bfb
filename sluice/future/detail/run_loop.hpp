#pragma once

// The executor of a thread that waits for a task: runs what is posted, on that thread, and sleeps
// while there is nothing.
//
// Any thread posts and submits; the owner alone runs. Submissions are bounded: when so many have
// not begun, the next is refused (`full`), because the thread that submits may well be the only
// one that could make room.

#include <cstddef>
#include <mutex>

#include "sluice/executor/executor.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice::detail {

class run_loop final : public executor {
 public:
  static constexpr std::size_t submissions_max = 1024;

  run_loop() = default;
  ~run_loop();

  void post(work& item) noexcept override;
  std::string_view name() const noexcept override { return "sync_wait"; }

  // Runs one thing, waiting for it within the limits. Not ok: there was nothing to run.
  status run_next(const wait_limits& limits);
  // Runs one thing if there is any.
  bool try_run_next() { return run_taken(take()); }

 private:
  status accept(submission& f, const wait_limits* limits) override;

  // One wait of the owner for something to run.
  class op {
   public:
    explicit op(run_loop& loop) noexcept : loop_(loop) {}
    bool ready() const noexcept { return loop_.count_.load(relaxed) != 0; }
    bool attempt() noexcept { return (taken_ = loop_.take()) != nullptr; }
    enlisted enlist(waiter& who) noexcept;
    bool woken() noexcept { return attempt(); }
    void retract() noexcept;
    spin_budget& spin() noexcept { return loop_.spin_; }
    status result(status ended) noexcept { return ended; }
    work* taken() noexcept { return taken_; }
    watch::subject about() const noexcept {
      return {&loop_, "sluice::sync_wait", "run", watch::served_by::holders};
    }

   private:
    run_loop& loop_;
    wait_node node_;
    work* taken_ = nullptr;
  };

  work* take() noexcept;
  work* take_locked() noexcept;  // guard_ held
  bool run_taken(work* item) noexcept;

  spin_lock guard_;
  spin_budget spin_;
  atomic<std::size_t> count_{0};      // of ready_; changed under guard_, read without it as a guess
  intrusive_list<work> ready_;        // protected by guard_
  wait_list owner_;                   // protected by guard_: the owner, asleep
  atomic<std::size_t> submitted_{0};  // submissions that have not begun
};

}  // namespace sluice::detail
