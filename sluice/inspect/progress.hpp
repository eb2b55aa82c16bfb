#pragma once

// How far something has come: what a watchdog asks of the queues and executors that it looks after.
//
// `progress_of` knows queues, channels and rings (what was popped, and what is inside) and the
// executors that count what they run: thread_pool, work_stealing_pool, strand, and any type of
// yours that has the same `stats()`. For all else pass a function to `watchdog::watch`.
//
// Limits: an item of a delay_queue that is not due is no work that waits, and its `size` counts
// it: such a queue is not known, unless it has a `due()` that counts those whose time has come. A
// strand does not say whether one of its functions runs: it counts as busy while others wait behind
// that one. Of a work_stealing_pool pieces count when they begin, of the others when they have
// ended.
//
//     static_assert(inspect::tells_progress<thread_pool>);
//     const auto far = inspect::progress_of(pool);

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace sluice {

template <class T>
class delay_queue;

namespace inspect {

struct progress {
  std::uint64_t done = 0;   // grows with each thing finished
  std::size_t waiting = 0;  // 0: it has nothing to do, and so cannot stall
};

namespace detail {

template <class T>
std::true_type keeps_until_due(const delay_queue<T>*);
std::false_type keeps_until_due(const void*);
template <class T>
constexpr bool is_delaying = decltype(keeps_until_due(static_cast<const T*>(nullptr)))::value;

template <class T>
concept counts_due = requires(const T& q) {
  { q.due() } -> std::convertible_to<std::size_t>;
};

template <class T>
concept queue_like = requires(const T& q) {
  { q.stats().popped } -> std::convertible_to<std::uint64_t>;
  { q.size() } -> std::convertible_to<std::size_t>;
  q.name();
}
&&(counts_due<T> || !is_delaying<T>);

// thread_pool
template <class T>
concept pool_like = requires(const T& p) {
  { p.stats().completed } -> std::convertible_to<std::uint64_t>;
  { p.stats().queued } -> std::convertible_to<std::size_t>;
  { p.stats().active } -> std::convertible_to<std::size_t>;
  p.name();
};

// work_stealing_pool
template <class T>
concept stealing_like = requires(const T& p) {
  { p.stats().executed } -> std::convertible_to<std::uint64_t>;
  { p.stats().forked } -> std::convertible_to<std::uint64_t>;
  { p.stats().queued } -> std::convertible_to<std::size_t>;
  { p.stats().running } -> std::convertible_to<std::size_t>;
  { p.stats().blocked } -> std::convertible_to<std::size_t>;
  p.name();
};

// strand
template <class T>
concept strand_like = requires(const T& s) {
  { s.stats().completed } -> std::convertible_to<std::uint64_t>;
  { s.stats().posts } -> std::convertible_to<std::uint64_t>;
  { s.stats().turns } -> std::convertible_to<std::uint64_t>;
  { s.stats().queued } -> std::convertible_to<std::size_t>;
  s.name();
};

}  // namespace detail

template <class T>
concept tells_progress = detail::queue_like<T> || detail::pool_like<T> ||
    detail::stealing_like<T> || detail::strand_like<T>;

template <tells_progress T>
progress progress_of(const T& what) {
  const auto s = what.stats();
  if constexpr (detail::queue_like<T>) {
    if constexpr (detail::counts_due<T>) {
      return {s.popped, what.due()};
    } else {
      return {s.popped, what.size()};
    }
  } else if constexpr (detail::pool_like<T>) {
    std::uint64_t done = s.completed;
    // Of a pool that resumes coroutines these are all that it does.
    if constexpr (requires { s.posts; }) done += s.posts;
    return {done, s.queued + s.active};
  } else if constexpr (detail::stealing_like<T>) {
    // A child that nobody took is run by who forked it, and is not among the executed.
    return {s.executed + s.forked, s.queued + s.running + s.blocked};
  } else {
    return {s.completed + s.posts, s.queued};
  }
}

// What it is called in a report.
template <tells_progress T>
std::string progress_name(const T& what) {
  const char* const kind = detail::queue_like<T>    ? "queue "
                           : detail::strand_like<T> ? "strand "
                                                    : "pool ";
  return kind + std::string(what.name());
}

}  // namespace inspect
}  // namespace sluice
