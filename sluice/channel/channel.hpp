#pragma once

// Share by communicating: one side sends, the other receives, and `select` waits for whichever of
// many channels is ready first.
//
// Use it when parties meet (capacity 0: a send returns once a receiver has the item), or when one
// party must wait on several sources at once. Prefer `bounded_queue` for plain hand-over of work.
//
// Guarantees: any thread or coroutine may use either end. First in, first out. With capacity 0
// `send` and `receive` meet: the receiver has the item when `send` returns ok, and waiters on both
// sides are served in order of arrival. With a buffer it is as a bounded_queue (exchange.hpp).
// `close` ends intake: later sends and those that wait hear `closed` and keep their item;
// receivers get what is buffered, then `closed`; closing again does nothing and says false. (In Go
// sending on a closed channel and closing twice panic.)
// Cancel safety: a wait that timed out or was stopped neither gave nor took.
// Cost: as a bounded_queue; a rendezvous between two running threads needs no system call.
// Limits: T's move must not throw. Destroying it while anyone waits is a broken contract.
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

#include "sluice/channel/channel_calls.hpp"
#include "sluice/channel/receive_only.hpp"
#include "sluice/channel/send_only.hpp"

namespace sluice {

template <class T>
class channel : public send_calls<channel<T>, T>, public receive_calls<channel<T>, T> {
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
