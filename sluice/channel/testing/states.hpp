#pragma once

// All states of a channel's end, and a channel in a given state: the table rows for the calls in
// channel_test and select_test.

#include <array>
#include <memory>
#include <string>

#include "sluice/channel/channel.hpp"

namespace sluice::testing {

enum class channel_state {
  null,            // a null view
  meeting,         // capacity 0, no waiters
  empty,           // an empty buffer
  roomy,           // a half full buffer
  full,            // a full buffer
  closed_meeting,  // capacity 0, closed
  closed_empty,    // closed and drained
  closed_holding,  // closed, with an item inside
};

inline constexpr std::array every_state{
    channel_state::null,         channel_state::meeting,        channel_state::empty,
    channel_state::roomy,        channel_state::full,           channel_state::closed_meeting,
    channel_state::closed_empty, channel_state::closed_holding,
};

inline std::string to_string(channel_state s) {
  switch (s) {
    case channel_state::null:
      return "null";
    case channel_state::meeting:
      return "meeting";
    case channel_state::empty:
      return "empty";
    case channel_state::roomy:
      return "roomy";
    case channel_state::full:
      return "full";
    case channel_state::closed_meeting:
      return "closed_meeting";
    case channel_state::closed_empty:
      return "closed_empty";
    case channel_state::closed_holding:
      return "closed_holding";
  }
  return "unknown";
}

// The expected result of a call that never waits. A call that may wait returns the same, except
// that it waits instead of returning full or empty.
inline status send_answer(channel_state s) {
  switch (s) {
    case channel_state::null:
    case channel_state::meeting:
    case channel_state::full:
      return status::full;
    case channel_state::empty:
    case channel_state::roomy:
      return status::ok;
    default:
      return status::closed;
  }
}
inline status receive_answer(channel_state s) {
  switch (s) {
    case channel_state::null:
    case channel_state::meeting:
    case channel_state::empty:
      return status::empty;
    case channel_state::roomy:
    case channel_state::full:
    case channel_state::closed_holding:
      return status::ok;
    default:
      return status::closed;
  }
}

// A channel of ints in a given state. The first item inside, if any, is 1.
class channel_in {
 public:
  explicit channel_in(channel_state s) {
    using enum channel_state;
    if (s == null) return;
    const bool meets = s == meeting || s == closed_meeting;
    channel_ = std::make_unique<channel<int>>(channel<int>::options{
        .capacity = meets ? std::size_t{0} : std::size_t{2}, .name = to_string(s)});
    if (s == roomy || s == full || s == closed_holding) put(1);
    if (s == full) put(2);
    if (s == closed_meeting || s == closed_empty || s == closed_holding) channel_->close();
    in = channel_->sender();
    out = channel_->receiver();
  }

  // The number of waiters; 0 for a null end.
  std::size_t waiting() const {
    return channel_ ? channel_->waiting_to_send() + channel_->waiting_to_receive() : 0;
  }
  std::size_t size() const { return channel_ ? channel_->size() : 0; }

  send_only<int> in;
  receive_only<int> out;

 private:
  void put(int item) {
    check(static_cast<bool>(channel_->try_send(item)), "test", "free capacity in a new channel");
  }

  std::unique_ptr<channel<int>> channel_;
};

}  // namespace sluice::testing
