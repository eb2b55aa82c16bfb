#pragma once

// What a cell is made of, beside its lists.

#include <cstdint>
#include <string_view>
#include <utility>

#include "sluice/actor/detail/envelope.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/base/unique_function.hpp"
#include "sluice/base/work.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice::detail {

// Its place in the list of its parent's children.
class child_hook : public list_hook {
 protected:
  child_hook() = default;
  ~child_hook() = default;
};

// A function that is run in the actor's turn.
class control_call final : public work {
 public:
  explicit control_call(unique_function<void()> f) noexcept : f_(std::move(f)) {}
  void run() noexcept override {
    unique_function<void()> f = std::move(f_);
    delete this;
    f();
  }
  void discard() noexcept { delete this; }

 private:
  unique_function<void()> f_;
};

// A sender that waits for room.
class room_node final : public wait_node {
 public:
  envelope* letter = nullptr;
  status::code how = status::ok;  // once it is claimed: ok or closed
};

// The message that a handler is on, for the observer.
struct message_mark {
  std::string_view type{};
  std::uint64_t note = 0;
};

enum class stop_how : std::uint8_t { now, drain };

}  // namespace sluice::detail
