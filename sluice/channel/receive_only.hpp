#pragma once

// The receiving end of a channel: what to give to code that must only receive.
//
// A small copyable view; the channel must outlive it. Default-constructed it is null and never
// ready: handy in a select, where a case is switched off by making its end null. Compares equal
// when both look at the same channel. It cannot close: only senders know when there is no more.
//
//     void consume(sluice::receive_only<frame> in) { for (auto& f : in) show(f); }

#include "sluice/channel/channel_calls.hpp"

namespace sluice {

template <class T>
class receive_only : public receive_calls<receive_only<T>, T> {
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
