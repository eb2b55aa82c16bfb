#pragma once

// The small types that a cell is built from.

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

// The hook in the parent's list of children.
class child_hook : public list_hook {
 protected:
  child_hook() = default;
  ~child_hook() = default;
};

// A function to run in the actor's turn.
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

// A sender that waits for capacity.
class sender_node final : public wait_node {
 public:
  envelope* letter = nullptr;
  status::code result = status::ok;  // once claimed: ok or closed
};

// The message that is being handled, for the observer.
struct message_mark {
  std::string_view type{};
  std::uint64_t note = 0;
};

// A pointer to an object that counts its references.
template <class Counted>
class counted_ptr {
 public:
  counted_ptr() noexcept = default;
  explicit counted_ptr(Counted* c) noexcept : object_(c) {
    if (c != nullptr) c->add_ref();
  }
  static counted_ptr adopt(Counted* c) noexcept {
    counted_ptr p;
    p.object_ = c;
    return p;
  }
  counted_ptr(const counted_ptr& other) noexcept : counted_ptr(other.object_) {}
  counted_ptr(counted_ptr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  counted_ptr& operator=(counted_ptr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~counted_ptr() {
    if (object_ != nullptr) object_->release();
  }

  Counted* get() const noexcept { return object_; }
  Counted* operator->() const noexcept { return object_; }
  Counted& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  friend bool operator==(const counted_ptr&, const counted_ptr&) = default;

 private:
  Counted* object_ = nullptr;
};

enum class stop_mode : std::uint8_t { now, drain };

}  // namespace sluice::detail
