#pragma once

// The executor of sync_wait: runs posts and submissions on the waiting thread, which sleeps while
// there are none.
//
// Any thread may post and submit; only the owner runs. Submissions are bounded: with
// `submissions_max` pending, `submit` returns full instead of waiting, because only the owner frees
// capacity, and the owner may be the submitter.

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

  // Waits for work within the limits and runs one piece. If it is not ok, nothing ran.
  status run_next(const wait_limits& limits);
  // Runs one piece of work without waiting. Returns false if no work is queued.
  bool try_run_next() { return run_taken(take()); }

 private:
  status accept(submission& f, const wait_limits* limits) override;

  // One wait of the owner for work.
  class op {
   public:
    explicit op(run_loop& loop) noexcept : loop_(loop) {}
    bool ready() const noexcept { return loop_.count_.load(relaxed) != 0; }
    bool attempt() noexcept { return (taken_ = loop_.take()) != nullptr; }
    enlisted enlist(waiter& waiting) noexcept;
    bool woken() noexcept { return attempt(); }
    void retract() noexcept;
    spin_budget& spin() noexcept { return loop_.spin_; }
    status result(status ended) noexcept { return ended; }
    work* taken() noexcept { return taken_; }
    wait_report::subject wait_subject() const noexcept {
      return {&loop_, "sluice::sync_wait", "run", wait_report::served_by::holders};
    }

   private:
    run_loop& loop_;
    wait_node node_;
    work* taken_ = nullptr;
  };

  work* take() noexcept;
  work* take_locked() noexcept;  // must hold guard_
  bool run_taken(work* item) noexcept;

  spin_lock guard_;
  spin_budget spin_;
  atomic<std::size_t> count_{0};      // of ready_; changed under guard_, read without it as a guess
  intrusive_list<work> ready_;        // protected by guard_
  wait_list owner_;                   // protected by guard_: the sleeping owner
  atomic<std::size_t> submitted_{0};  // submissions that have not begun
};

}  // namespace sluice::detail
