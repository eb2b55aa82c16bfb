#pragma once

// Applies one operation to many elements, or runs a few functions, in parallel on a
// work_stealing_pool: a loop, a sum, an invocation of several functions.
//
// Guarantees, for all of them: any thread may call, also a worker of the pool, nested to any depth;
// the call returns when none of its work runs any more. Every element is visited exactly once
// unless the call ends early. An exception ends it early: the first one is rethrown to the caller,
// and pieces that have not begun are skipped. So does a stop: the forms that take a stop_token
// return `stopped` if a piece was skipped because of it; pieces that have begun are finished.
// An empty range, or one whose last is before its first, is no work.
// The range is halved until a piece has at most `grain` elements, which then run sequentially on
// one thread. By default, a loop has about eight pieces per thread, and a reduction 512 pieces,
// regardless of the number of threads.
// `parallel_reduce` combines neighbours in their order, so `combine` need only be associative; the
// same elements and grain give the same combinations on every machine, also of floating point
// numbers. `init` is used once, on the left.
// `parallel_invoke` may run its functions sequentially, in any order.
// Cost: one fork and join per piece, no allocation (./bench forkjoin).
//
//     parallel_for(pool, 0, rows, [&](int row) { render(row); });
//     parallel_for(pool, images, [](image& i) { shrink(i); }, {.grain = 1});
//     const double sum = parallel_reduce(pool, values, 0.0, [](double v) { return v * v; },
//                                        std::plus<>());
//     parallel_invoke(pool, [&] { sort(left); }, [&] { sort(right); });

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <ranges>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "sluice/executor/detail/parallel_run.hpp"

namespace sluice {

struct parallel_options {
  std::size_t grain = 0;  // the most elements in one piece; 0: the default
};

// body(i) for numbers, body(*i) for iterators.
template <detail::parallel_index I, class Body>
status parallel_for(work_stealing_pool& pool, I first, I last, Body&& body, std::stop_token stop,
                    parallel_options o = {}) {
  if (stop.stop_requested()) return status::stopped;
  const auto count = detail::parallel_count(first, last);
  if (count == 0) return status::ok;
  const auto grain =
      o.grain != 0 ? o.grain : std::max<std::size_t>(1, count / (8 * pool.threads()));
  detail::parallel_run run(pool, std::move(stop));
  auto piece = [&](std::size_t from, std::size_t end) {
    for (; from < end; ++from) std::invoke(body, detail::parallel_at(first, from));
  };
  run.start([&] { detail::split(run, grain, 0, count, piece); });
  return run.finish();
}
template <detail::parallel_index I, class Body>
void parallel_for(work_stealing_pool& pool, I first, I last, Body&& body,
                  parallel_options o = {}) {
  (void)parallel_for(pool, first, last, body, std::stop_token(), o);
}

// Returns combine(...combine(combine(init, map(first)), map(first + 1))..., map(last - 1)), in some
// grouping of neighbours. T is moved and need not be copyable.
template <detail::parallel_index I, class T, class Map, class Combine>
outcome<T> parallel_reduce(work_stealing_pool& pool, I first, I last, T init, Map&& map,
                           Combine&& combine, std::stop_token stop, parallel_options o = {}) {
  if (stop.stop_requested()) return status::stopped;
  const auto count = detail::parallel_count(first, last);
  if (count == 0) return init;
  const auto grain = o.grain != 0 ? o.grain : std::max<std::size_t>(1, count / 512);
  detail::parallel_run run(pool, std::move(stop));
  auto piece = [&](std::size_t from, std::size_t end) {
    T sum = std::invoke(map, detail::parallel_at(first, from));
    while (++from < end) {
      sum = std::invoke(combine, std::move(sum),
                        std::invoke(map, detail::parallel_at(first, from)));
    }
    return sum;
  };
  std::optional<T> all;
  run.start([&] { all = detail::split_reduce<T>(run, grain, 0, count, piece, combine); });
  if (const auto ended = run.finish(); !ended) return ended;
  return std::invoke(combine, std::move(init), std::move(*all));
}
template <detail::parallel_index I, class T, class Map, class Combine>
T parallel_reduce(work_stealing_pool& pool, I first, I last, T init, Map&& map, Combine&& combine,
                  parallel_options o = {}) {
  return *parallel_reduce(pool, first, last, std::move(init), map, combine, std::stop_token(), o);
}

// ---- over a whole range

template <std::ranges::random_access_range Range, class Body>
void parallel_for(work_stealing_pool& pool, Range&& range, Body&& body, parallel_options o = {}) {
  const auto first = std::ranges::begin(range);
  parallel_for(pool, first, first + std::ranges::distance(range), body, o);
}
template <std::ranges::random_access_range Range, class Body>
status parallel_for(work_stealing_pool& pool, Range&& range, Body&& body, std::stop_token stop,
                    parallel_options o = {}) {
  const auto first = std::ranges::begin(range);
  return parallel_for(pool, first, first + std::ranges::distance(range), body, std::move(stop), o);
}
template <std::ranges::random_access_range Range, class T, class Map, class Combine>
T parallel_reduce(work_stealing_pool& pool, Range&& range, T init, Map&& map, Combine&& combine,
                  parallel_options o = {}) {
  const auto first = std::ranges::begin(range);
  return parallel_reduce(pool, first, first + std::ranges::distance(range), std::move(init), map,
                         combine, o);
}
template <std::ranges::random_access_range Range, class T, class Map, class Combine>
outcome<T> parallel_reduce(work_stealing_pool& pool, Range&& range, T init, Map&& map,
                           Combine&& combine, std::stop_token stop, parallel_options o = {}) {
  const auto first = std::ranges::begin(range);
  return parallel_reduce(pool, first, first + std::ranges::distance(range), std::move(init), map,
                         combine, std::move(stop), o);
}

// ---- several functions

template <class... F>
  requires(sizeof...(F) > 0 && (std::is_invocable_v<F&> && ...))
void parallel_invoke(work_stealing_pool& pool, F&&... functions) {
  detail::parallel_run run(pool);
  run.start([&] { detail::invoke_all(run, functions...); });
  (void)run.finish();
}

}  // namespace sluice
