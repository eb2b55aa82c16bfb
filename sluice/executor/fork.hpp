#pragma once

// Fork and join: another worker of a pool may run a function while this one continues; `join`
// returns the result.
//
//     long fib(int n) {
//       if (n < 2) return n;
//       auto left = fork([n] { return fib(n - 1); });   // on the pool whose worker this is
//       const long right = fib(n - 2);
//       return left.join() + right;
//     }
//
//     work_stealing_pool pool;
//     const long result = fork(pool, [] { return fib(30); }).join();
//
// Guarantees: the function runs exactly once, on a worker of the pool, possibly on this thread
// inside `join`. `join` returns its result or rethrows its exception. While it waits for a child
// that another worker has stolen, it runs other work of the pool; without work it sleeps.
// A child that is destroyed unjoined is joined first; its exception is then reported as for a
// submission. The child is a local variable, cannot be moved, and is joined once, by the thread
// that forked it; anything else is a broken contract.
// A thread outside the pool may fork as well: its child is posted to the pool, which has no bound,
// and its join sleeps (if the thread is a worker of another pool, that pool may start a spare).
// After the pool has ended, or if the worker's deque is full, the function runs immediately.
// Do not hold a lock over a join: the work run inside may lock it on this very thread.
// Cost: no allocation. About 15 ns for a fork and a join if no other worker has stolen the child
// (./bench forkjoin). Joining in reverse order of forking is the fast way.

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/executor/work_stealing_pool.hpp"

namespace sluice {

namespace detail {

class fork_base : public work {
 public:
  fork_base(const fork_base&) = delete;
  fork_base& operator=(const fork_base&) = delete;

  // acquire: pairs with the exchange in finish.
  bool is_done() const noexcept { return state_.load(acquire) == done; }

  // For wait reports: a join waits for the thread that runs the child, or for the pool.
  wait_report::subject wait_subject() const noexcept;

 protected:
  explicit fork_base(work_stealing_pool& pool) noexcept : pool_(pool) {}
  ~fork_base() = default;

  // Called last in the derived constructor: from then on the child may run.
  void start() noexcept {
    steal_worker* const here = current_steal_worker();
    if (here != nullptr && &here->pool == &pool_) [[likely]] {
      home_ = here;
      if (!pool_.fork_here(*here, *this)) [[unlikely]] run_at_once();
    } else {
      start_outside();
    }
  }

  // Returns true if no worker has taken the child: the caller must run it. Otherwise waits until it
  // has run and returns false.
  bool claim_or_wait(const call_site& at) {
    check(!joined_, "sluice::fork", "a child to be joined once", at);
    joined_ = true;
    if (home_ == nullptr) [[unlikely]] return wait_outside(at);
    check(home_ == current_steal_worker(), "sluice::fork",
          "a child to be joined by the thread that forked it", at);
    if (is_done()) [[unlikely]] return false;
    work* const youngest = home_->deque.pop();
    if (youngest == this) [[likely]] return true;
    pool_.help(*home_, *this, youngest, at);
    return false;
  }

  // For wait reports: while it exists, the calling thread runs the child.
  class running_here {
   public:
    explicit running_here(const fork_base& child) noexcept : child_(child) {
      if (wait_report::is_on()) [[unlikely]] begin();
    }
    running_here(const running_here&) = delete;
    running_here& operator=(const running_here&) = delete;
    ~running_here() {
      if (runner_) [[unlikely]] wait_report::gave(&child_, runner_);
    }

   private:
    void begin() noexcept;
    const fork_base& child_;
    wait_report::party runner_{};
  };

  void finish() noexcept;
  void report(std::exception_ptr error) noexcept;
  bool is_joined() const noexcept { return joined_; }

 private:
  friend class sluice::work_stealing_pool;
  class wait_op;

  // Values of state_; any other value is the address of the wait_node of a thread outside the pool
  // that waits in join.
  static constexpr std::uintptr_t pending = 0;
  static constexpr std::uintptr_t done = 1;
  static constexpr std::uintptr_t awaited = 2;  // the worker that forked it sleeps in join

  void start_outside() noexcept;
  void run_at_once() noexcept { run(); }
  bool wait_outside(const call_site& at);
  bool announce_wait() noexcept;  // returns false if the child is done

  work_stealing_pool& pool_;
  steal_worker* home_ = nullptr;  // null: forked by a thread outside the pool
  atomic<std::uintptr_t> state_{pending};
  std::uint32_t forker_ = 0;  // the number of that thread
  bool joined_ = false;
};

// Storage for a result, which may be void or a reference.
template <class R>
class fork_result {
 public:
  template <class F>
  void fill(F& f) {
    if constexpr (std::is_void_v<R>) {
      std::invoke(f);
    } else if constexpr (std::is_reference_v<R>) {
      R&& made = std::invoke(f);
      held_ = std::addressof(made);
    } else {
      held_.emplace(std::invoke(f));
    }
  }
  R take() {
    if constexpr (std::is_reference_v<R>) {
      return static_cast<R&&>(*held_);
    } else if constexpr (!std::is_void_v<R>) {
      return std::move(*held_);
    }
  }

 private:
  struct nothing {};
  using kept = std::conditional_t<std::is_void_v<R>, nothing,
                                  std::conditional_t<std::is_reference_v<R>,
                                                     std::remove_reference_t<R>*,
                                                     std::optional<std::remove_cv_t<R>>>>;
  [[no_unique_address]] kept held_{};
};

}  // namespace detail

template <class F>
class [[nodiscard("join it")]] forked final : private detail::fork_base {
 public:
  using result_type = std::invoke_result_t<F&>;

  template <class G>
  forked(work_stealing_pool& pool, G&& f) : fork_base(pool), f_(std::forward<G>(f)) {
    start();
  }
  ~forked() {
    if (!is_joined()) join_quietly();
  }

  result_type join(call_site at = {}) {
    if (claim_or_wait(at)) [[likely]] return std::invoke(f_);
    if (error_ != nullptr) [[unlikely]] std::rethrow_exception(std::move(error_));
    return result_.take();
  }

  using fork_base::is_done;

 private:
  void run() noexcept override {
    {
      const running_here reported(*this);
      try {
        result_.fill(f_);
      } catch (...) {
        error_ = std::current_exception();
      }
    }
    finish();
  }
  void join_quietly() noexcept {
    try {
      if (claim_or_wait({})) result_.fill(f_);
      if (error_ != nullptr) report(std::move(error_));
    } catch (...) {
      report(std::current_exception());
    }
  }

  F f_;
  std::exception_ptr error_;
  detail::fork_result<result_type> result_;
};

template <class F>
  requires std::is_invocable_v<std::decay_t<F>&>
forked<std::decay_t<F>> fork(work_stealing_pool& pool, F&& f) {
  return forked<std::decay_t<F>>(pool, std::forward<F>(f));
}

// Forks on the pool of the calling worker; a broken contract on any other thread.
template <class F>
  requires std::is_invocable_v<std::decay_t<F>&>
forked<std::decay_t<F>> fork(F&& f, call_site at = {}) {
  const detail::steal_worker* const here = detail::current_steal_worker();
  check(here != nullptr, "sluice::fork", "a worker of a work_stealing_pool, or a pool to be named",
        at);
  return forked<std::decay_t<F>>(here->pool, std::forward<F>(f));
}

}  // namespace sluice
