#pragma once

// The sending end of a channel, for code that must only send.
//
// A small copyable view; the channel must outlive it. A default-constructed one is null and never
// ready: a null end disables a case of a select. Two ends of the same channel compare equal.
// Guarantees and costs: channel.hpp.
//
//     void produce(sluice::send_only<frame> out);   // cannot receive: that does not compile

#include "sluice/channel/detail/channel_calls.hpp"

namespace sluice {

template <class T>
class send_only : public detail::channel_sends<send_only<T>, T> {
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
