#pragma once

// Measures the progress of queues and executors, for the stall detection of a watchdog.
//
// `progress_of` supports queues, channels and rings (items popped, items inside) and the executors
// that count their work: thread_pool, work_stealing_pool, strand, and any type with the same
// `stats()`. For other types pass a function to `watchdog::watch`.
//
// Limits: an item of a delay_queue that is not due is not waiting work, but counts in `size`: such
// a queue is supported only if it has a `due()` that counts its due items. A strand does not report
// whether one of its functions runs: it is busy while others are queued behind. A piece of work of
// a work_stealing_pool counts when it begins, of the other executors when it has finished.
//
//     static_assert(inspect::reports_progress<thread_pool>);
//     const auto progress = inspect::progress_of(pool);

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
  std::uint64_t done = 0;   // grows with each finished item
  std::size_t waiting = 0;  // 0: idle, and so not stalled
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
concept reports_progress = detail::queue_like<T> || detail::pool_like<T> ||
    detail::stealing_like<T> || detail::strand_like<T>;

template <reports_progress T>
progress progress_of(const T& object) {
  const auto s = object.stats();
  if constexpr (detail::queue_like<T>) {
    if constexpr (detail::counts_due<T>) {
      return {s.popped, object.due()};
    } else {
      return {s.popped, object.size()};
    }
  } else if constexpr (detail::pool_like<T>) {
    std::uint64_t done = s.completed;
    // A pool that only resumes coroutines counts nothing else.
    if constexpr (requires { s.posts; }) done += s.posts;
    return {done, s.queued + s.active};
  } else if constexpr (detail::stealing_like<T>) {
    // A forked child that no other thread took is run by its parent, and not counted in `executed`.
    return {s.executed + s.forked, s.queued + s.running + s.blocked};
  } else {
    return {s.completed + s.posts, s.queued};
  }
}

// Returns the name of the object in reports.
template <reports_progress T>
std::string progress_name(const T& object) {
  const char* const kind = detail::queue_like<T>    ? "queue "
                           : detail::strand_like<T> ? "strand "
                                                    : "pool ";
  return kind + std::string(object.name());
}

}  // namespace inspect
}  // namespace sluice
