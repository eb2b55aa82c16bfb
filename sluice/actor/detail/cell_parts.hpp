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

// A pointer to what counts its refs.
template <class Counted>
class counted_ptr {
 public:
  counted_ptr() noexcept = default;
  explicit counted_ptr(Counted* c) noexcept : to_(c) {
    if (c != nullptr) c->add_ref();
  }
  static counted_ptr adopt(Counted* c) noexcept {
    counted_ptr p;
    p.to_ = c;
    return p;
  }
  counted_ptr(const counted_ptr& other) noexcept : counted_ptr(other.to_) {}
  counted_ptr(counted_ptr&& other) noexcept : to_(std::exchange(other.to_, nullptr)) {}
  counted_ptr& operator=(counted_ptr other) noexcept {
    std::swap(to_, other.to_);
    return *this;
  }
  ~counted_ptr() {
    if (to_ != nullptr) to_->release();
  }

  Counted* get() const noexcept { return to_; }
  Counted* operator->() const noexcept { return to_; }
  Counted& operator*() const noexcept { return *to_; }
  explicit operator bool() const noexcept { return to_ != nullptr; }
  friend bool operator==(const counted_ptr&, const counted_ptr&) = default;

 private:
  Counted* to_ = nullptr;
};

enum class stop_how : std::uint8_t { now, drain };

}  // namespace sluice::detail
