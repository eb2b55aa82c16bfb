#pragma once

// A channel as in Go: one side sends, the other receives, and `select` waits for the first of
// several channels that is ready.
//
// Use it for a rendezvous (capacity 0: a send returns once a receiver has the item), or if one
// party must wait on several sources at once. Prefer `bounded_queue` to only move work between
// threads.
//
// Guarantees: any thread or coroutine may use either end. First in, first out. With capacity 0, the
// receiver has the item when `send` returns ok, and waiters on both sides are served in order of
// arrival. With a buffer, it has the guarantees of a bounded_queue (detail/queue_core.hpp). After
// `close`, waiting and later sends return `closed` and keep their item; receivers get the buffered
// items, then `closed`. Closing again does nothing and returns false. (In Go, sending on a closed
// channel and closing twice panic.)
// Cancel safety: a wait that timed out or was stopped moved no item.
// Cost: as a bounded_queue; a rendezvous between two running threads needs no system call.
// Limits: T's move must not throw. Destroying it while a call waits inside is a broken contract.
//
//     sluice::channel<int> squares;  // rendezvous
//     std::jthread maker([&] {
//       for (int i = 0; i < 10 && squares.send(i * i); ++i) {}
//       squares.close();
//     });
//     for (int s : squares) print(s);

#include <cstddef>
#include <string>
#include <utility>

#include "sluice/channel/detail/channel_calls.hpp"
#include "sluice/channel/receive_only.hpp"
#include "sluice/channel/send_only.hpp"

namespace sluice {

template <class T>
class channel : public detail::channel_sends<channel<T>, T>,
                public detail::channel_receives<channel<T>, T> {
 public:
  using value_type = T;
  using options = queue_options<T>;

  explicit channel(std::size_t capacity = 0) : channel(options{.capacity = capacity}) {}
  explicit channel(options o) : core_(std::move(o), o.capacity, o.weight_max) {}
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;

  send_only<T> sender() noexcept { return send_only<T>(&core_); }
  receive_only<T> receiver() noexcept { return receive_only<T>(&core_); }
  operator send_only<T>() noexcept { return sender(); }
  operator receive_only<T>() noexcept { return receiver(); }

  bool is_closed() const noexcept { return core_.is_closed(); }
  std::size_t size() const noexcept { return core_.size(); }
  std::size_t capacity() const noexcept { return core_.capacity(); }
  queue_stats stats() const { return core_.stats(); }
  const std::string& name() const noexcept { return core_.name(); }
  std::size_t waiting_to_send() const noexcept { return core_.waiting_to_push(); }
  std::size_t waiting_to_receive() const noexcept { return core_.waiting_to_pop(); }

  detail::channel_core<T>* core() const noexcept { return &core_; }

 private:
  mutable detail::channel_core<T> core_;
};

}  // namespace sluice
