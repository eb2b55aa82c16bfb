#pragma once

// The sending end of a channel: what to give to code that must only send.
//
// A small copyable view; the channel must outlive it. Default-constructed it is null and never
// ready: handy in a select, where a case is switched off by making its end null. Compares equal
// when both look at the same channel. Guarantees and costs are the channel's.
//
//     void produce(sluice::send_only<frame> out);   // cannot receive: that does not compile

#include "sluice/channel/channel_calls.hpp"

namespace sluice {

template <class T>
class send_only : public send_calls<send_only<T>, T> {
 public:
  using value_type = T;

  send_only() = default;
  explicit send_only(detail::channel_core<T>* core) noexcept : core_(core) {}

  explicit operator bool() const noexcept { return core_ != nullptr; }
  friend bool operator==(send_only a, send_only b) noexcept { return a.core_ == b.core_; }

  detail::channel_core<T>* core() const noexcept { return core_; }

 private:
  detail::channel_core<T>* core_ = nullptr;
};

}  // namespace sluice
