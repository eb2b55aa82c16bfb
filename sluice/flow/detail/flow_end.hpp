#pragma once

// The ends that items flow through, whatever they belong to: a view of a channel (`receive_only`,
// `send_only`), or a pointer to a channel or a queue, which must outlive the flow.

#include <functional>
#include <span>
#include <type_traits>
#include <utility>

#include "sluice/base/callback.hpp"
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

// What an awaited take gives: outcome<T>.
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

// co_await gives a status; moved from only if that is ok or dropped.
template <class End, class T>
auto give_to(End& end, T& item) {
  if constexpr (requires { at_end(end).async_send(item); }) {
    return at_end(end).async_send(item);
  } else {
    return at_end(end).async_push(item);
  }
}

// Closes the ends when it goes, however that comes about: a consumer that waits at one that nobody
// closes would wait for ever.
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

// Why there is no further item.
inline flow_ended why_none(status why) noexcept {
  return why == status::closed ? flow_ended::source_ended : flow_ended::cancelled;
}

// Sees an item that was taken and could be given to nobody.
template <class End>
using undelivered = std::function<void(taken_t<End>&&)>;

template <class Callback, class T>
void report_undelivered(const char* source, const Callback& callback, T& item) noexcept {
  if (callback) call_back(source, {}, callback, std::move(item));
}

// Thrown by one of several coroutines that work together, when there is nobody left to give
// anything to: those that wait for an item are ended with it.
struct no_consumer {};

}  // namespace sluice::detail
