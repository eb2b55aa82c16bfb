#pragma once

// The receiving end of a channel, for code that must only receive.
//
// A small copyable view; the channel must outlive it. A default-constructed one is null and never
// ready: a null end disables a case of a select. Two ends of the same channel compare equal. It has
// no `close`: only a sender knows which item is the last.
//
//     void consume(sluice::receive_only<frame> in) { for (auto& f : in) show(f); }

#include "sluice/channel/detail/channel_calls.hpp"

namespace sluice {

template <class T>
class receive_only : public detail::channel_receives<receive_only<T>, T> {
 public:
  using value_type = T;

  receive_only() = default;
  explicit receive_only(detail::channel_core<T>* core) noexcept : core_(core) {}

  explicit operator bool() const noexcept { return core_ != nullptr; }
  friend bool operator==(receive_only a, receive_only b) noexcept { return a.core_ == b.core_; }

  detail::channel_core<T>* core() const noexcept { return core_; }

 private:
  detail::channel_core<T>* core_ = nullptr;
};

}  // namespace sluice
