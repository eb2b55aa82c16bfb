#pragma once

// What the pieces of one parallel call share: whether to go on, and the first thing that was
// thrown.

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

// How many there are from first to last; none when last is before first.
template <parallel_index I>
std::size_t parallel_count(I first, I last) {
  if (!(first < last)) return 0;
  if constexpr (std::integral<I>) {
    return static_cast<std::size_t>(last) - static_cast<std::size_t>(first);
  } else {
    return static_cast<std::size_t>(last - first);
  }
}

// The number itself, or what the iterator points at.
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

  // Runs a piece, unless the call is over. False: it did not come to its end.
  template <class Piece>
  bool attempt(Piece&& piece) noexcept {
    // relaxed: only saves work; what was thrown is read after all have been joined.
    if (over_.load(relaxed)) return false;
    if (stop_.stop_requested()) {
      skipped_.store(true, relaxed);
      over_.store(true, relaxed);
      return false;
    }
    try {
      std::forward<Piece>(piece)();
      return true;
    } catch (...) {
      const std::lock_guard hold(lock_);
      if (error_ == nullptr) error_ = std::current_exception();
      over_.store(true, relaxed);
      return false;
    }
  }

  // Runs the whole on a worker of the pool: here, if this is one.
  template <class Whole>
  void start(Whole&& whole) {
    if (pool.is_worker()) {
      whole();
    } else {
      fork(pool, [&] { whole(); }).join();
    }
  }

  // When all pieces have been joined: throws what one of them threw, or says how it went.
  status finish() {
    if (error_ != nullptr) std::rethrow_exception(std::move(error_));
    return skipped_.load(relaxed) ? status::stopped : status::ok;
  }

  work_stealing_pool& pool;

 private:
  const std::stop_token stop_;
  atomic<bool> over_{false};
  atomic<bool> skipped_{false};
  spin_lock lock_;
  std::exception_ptr error_;  // protected by lock_, until all have been joined
};

// Pieces [from, to) of at most `grain`, each as `piece(from, to)`.
template <class Piece>
void split(parallel_run& run, std::size_t grain, std::size_t from, std::size_t to,
           Piece& piece) noexcept {
  if (to - from <= grain) {
    run.attempt([&] { piece(from, to); });
    return;
  }
  const auto middle = from + (to - from) / 2;
  auto right = fork(run.pool, [&run, grain, middle, to, &piece] {
    split(run, grain, middle, to, piece);
  });
  split(run, grain, from, middle, piece);
  right.join();
}

// The same, and each piece gives a T; neighbours are combined, in their order. None: it is over.
template <class T, class Piece, class Combine>
std::optional<T> split_reduce(parallel_run& run, std::size_t grain, std::size_t from,
                              std::size_t to, Piece& piece, Combine& combine) noexcept {
  std::optional<T> result;
  if (to - from <= grain) {
    run.attempt([&] { result.emplace(piece(from, to)); });
    return result;
  }
  const auto middle = from + (to - from) / 2;
  auto right = fork(run.pool, [&run, grain, middle, to, &piece, &combine] {
    return split_reduce<T>(run, grain, middle, to, piece, combine);
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
