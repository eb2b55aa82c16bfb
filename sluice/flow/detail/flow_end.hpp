#pragma once

// The ends that items flow through: a view of a channel (`receive_only`, `send_only`), or a pointer
// to a channel or a queue, which must outlive the flow.

#include <functional>
#include <span>
#include <type_traits>
#include <utility>

#include "sluice/base/detail/callback.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/flow/flow_ended.hpp"

namespace sluice::detail {

template <class End>
auto& at_end(End& end) noexcept {
  if constexpr (std::is_pointer_v<End>) {
    return *end;
  } else {
    return end;
  }
}

// co_await returns outcome<T>.
template <class End>
auto take_from(End& end) {
  if constexpr (requires { at_end(end).async_receive(); }) {
    return at_end(end).async_receive();
  } else {
    return at_end(end).async_pop();
  }
}
template <class End>
using taken_t = std::remove_cvref_t<decltype(*take_from(std::declval<End&>()).await_resume())>;

// co_await returns a status. Moves from the item only on ok and dropped.
template <class End, class T>
auto push_to(End& end, T& item) {
  if constexpr (requires { at_end(end).async_send(item); }) {
    return at_end(end).async_send(item);
  } else {
    return at_end(end).async_push(item);
  }
}

// Closes the ends in its destructor, so that their consumers do not wait for ever.
template <class Sink>
class closing {
 public:
  explicit closing(std::span<Sink> ends) noexcept : ends_(ends) {}
  closing(const closing&) = delete;
  closing& operator=(const closing&) = delete;
  ~closing() {
    for (auto& each : ends_) at_end(each).close();
  }

 private:
  const std::span<Sink> ends_;
};

// The reason for the end of the items.
inline flow_ended end_reason(status why) noexcept {
  return why == status::closed ? flow_ended::source_ended : flow_ended::cancelled;
}

// Called with an item that was taken and that no consumer accepted.
template <class End>
using undelivered = std::function<void(taken_t<End>&&)>;

template <class Callback, class T>
void report_undelivered(const char* source, const Callback& callback, T& item) noexcept {
  if (callback) call_back(source, {}, callback, std::move(item));
}

// Thrown by one of several cooperating coroutines when no consumer is left; it also ends the
// coroutines that wait for an item.
struct no_consumer {};

}  // namespace sluice::detail
