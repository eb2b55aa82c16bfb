#pragma once

// The state that the pieces of one parallel call share: whether to continue, and the first
// exception.

#include <concepts>
#include <cstddef>
#include <exception>
#include <iterator>
#include <mutex>
#include <stop_token>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/executor/fork.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::detail {

template <class I>
concept parallel_index = std::integral<I> || std::random_access_iterator<I>;

// Returns the number of elements from first to last; 0 if last is before first.
template <parallel_index I>
std::size_t parallel_count(I first, I last) {
  if (!(first < last)) return 0;
  if constexpr (std::integral<I>) {
    return static_cast<std::size_t>(last) - static_cast<std::size_t>(first);
  } else {
    return static_cast<std::size_t>(last - first);
  }
}

// Returns the number itself, or the element of the iterator.
template <parallel_index I>
decltype(auto) parallel_at(I first, std::size_t offset) {
  if constexpr (std::integral<I>) {
    return static_cast<I>(static_cast<std::size_t>(first) + offset);
  } else {
    return first[static_cast<std::iter_difference_t<I>>(offset)];
  }
}

class parallel_run {
 public:
  explicit parallel_run(work_stealing_pool& on, std::stop_token stop = {}) noexcept
      : pool(on), stop_(std::move(stop)) {}

  // Runs a piece, unless the call has ended early. Returns false if the piece was skipped or threw.
  template <class Piece>
  bool attempt(Piece&& piece) noexcept {
    // relaxed: only saves work; the exception is read after all pieces have been joined.
    if (ended_early_.load(relaxed)) return false;
    if (stop_.stop_requested()) {
      skipped_.store(true, relaxed);
      ended_early_.store(true, relaxed);
      return false;
    }
    try {
      std::forward<Piece>(piece)();
      return true;
    } catch (...) {
      const std::lock_guard hold(lock_);
      if (error_ == nullptr) error_ = std::current_exception();
      ended_early_.store(true, relaxed);
      return false;
    }
  }

  // Runs the whole call on a worker of the pool: on this thread if it is a worker.
  template <class Whole>
  void start(Whole&& whole) {
    if (pool.is_worker()) {
      whole();
    } else {
      fork(pool, [&] { whole(); }).join();
    }
  }

  // Called after all pieces have been joined. Rethrows the first exception; returns ok or stopped.
  status finish() {
    if (error_ != nullptr) std::rethrow_exception(std::move(error_));
    return skipped_.load(relaxed) ? status::stopped : status::ok;
  }

  work_stealing_pool& pool;

 private:
  const std::stop_token stop_;
  atomic<bool> ended_early_{false};
  atomic<bool> skipped_{false};
  spin_lock lock_;
  std::exception_ptr error_;  // protected by lock_, until all have been joined
};

// Halves [from, to) into pieces of at most `grain` elements and runs each as `piece(from, to)`.
template <class Piece>
void split(parallel_run& run, std::size_t grain, std::size_t from, std::size_t end,
           Piece& piece) noexcept {
  if (end - from <= grain) {
    run.attempt([&] { piece(from, end); });
    return;
  }
  const auto middle = from + (end - from) / 2;
  auto right = fork(run.pool, [&run, grain, middle, end, &piece] {
    split(run, grain, middle, end, piece);
  });
  split(run, grain, from, middle, piece);
  right.join();
}

// The same for pieces that return a T; combines neighbours in order. Returns nullopt if the call
// ended early.
template <class T, class Piece, class Combine>
std::optional<T> split_reduce(parallel_run& run, std::size_t grain, std::size_t from,
                              std::size_t end, Piece& piece, Combine& combine) noexcept {
  std::optional<T> result;
  if (end - from <= grain) {
    run.attempt([&] { result.emplace(piece(from, end)); });
    return result;
  }
  const auto middle = from + (end - from) / 2;
  auto right = fork(run.pool, [&run, grain, middle, end, &piece, &combine] {
    return split_reduce<T>(run, grain, middle, end, piece, combine);
  });
  auto before = split_reduce<T>(run, grain, from, middle, piece, combine);
  auto after = right.join();
  if (before.has_value() && after.has_value()) {
    run.attempt([&] { result.emplace(combine(std::move(*before), std::move(*after))); });
  }
  return result;
}

template <class First>
void invoke_all(parallel_run& run, First& first) noexcept {
  run.attempt(first);
}
template <class First, class... Rest>
void invoke_all(parallel_run& run, First& first, Rest&... rest) noexcept {
  auto others = fork(run.pool, [&] { invoke_all(run, rest...); });
  run.attempt(first);
  others.join();
}

}  // namespace sluice::detail
