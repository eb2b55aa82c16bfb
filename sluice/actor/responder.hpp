#pragma once

// The right to answer one ask: what an actor keeps when it cannot answer at once, or hands to the
// one who can.
//
// A handler gets it as its second parameter, `void on(total, responder<int> to)`, and may store it,
// move it into a coroutine or a message, or pass the request on with `forward` (actor.hpp).
//
// Guarantees: movable; any thread may answer, once. Destroyed unanswered, it tells the asker
// actor_error::unanswered. Answering somebody who has given up is heard by nobody but the system:
// if the ask had limits, the reply is a late one (actor_system_options::on_late_reply).
//
//     void on(total, responder<int> to) { waiting_.push_back(std::move(to)); }
//     void on(done) { for (auto& to : waiting_) to.reply(sum_); }

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "sluice/actor/actor_error.hpp"
#include "sluice/actor/detail/late_note.hpp"
#include "sluice/future/promise.hpp"

namespace sluice {

namespace detail {
class told_ask;
}

template <class R>
class responder {
 public:
  responder() noexcept = default;  // answers nobody
  explicit responder(promise<R> to, std::shared_ptr<detail::told_ask> told = {},
                     detail::late_note_ptr late = {})
      : to_(std::move(to)), told_(std::move(told)), late_(std::move(late)) {}
  responder(responder&& other) noexcept
      : to_(std::move(other.to_)), told_(std::move(other.told_)), late_(std::move(other.late_)) {
    other.to_.reset();
  }
  responder& operator=(responder&& other) noexcept {
    if (this != &other) {
      let_go();
      to_ = std::move(other.to_);
      other.to_.reset();
      told_ = std::move(other.told_);
      late_ = std::move(other.late_);
    }
    return *this;
  }
  ~responder() { let_go(); }

  template <class... Args>
  void reply(Args&&... args) {
    if (!to_) return;
    if (late_ != nullptr) detail::note_answer(*late_, to_->is_cancelled());
    promise<R> to = take();
    (void)to.try_set_value(std::forward<Args>(args)...);
  }
  void fail(std::exception_ptr why) {
    if (!to_) return;
    promise<R> to = take();
    (void)to.try_set_exception(std::move(why));
  }

  // False: answered, moved from, or nobody asked.
  bool is_open() const noexcept { return to_.has_value(); }
  // False also when the asker has given up: its deadline came, or it cancelled.
  bool is_wanted() const noexcept { return to_ && !to_->is_cancelled(); }

  // For the library: tells whoever watches (sluice::inspect) who is to answer.
  void asked_of(watch::party who) const noexcept {
    if (to_) to_->made_by(who);
  }
  detail::cancel_ref watched() const noexcept {
    return to_ ? to_->watched() : detail::cancel_ref();
  }
  // For the library: the observer's view of the asker's wait; null: nobody looks.
  const std::shared_ptr<detail::told_ask>& told() const noexcept { return told_; }

 private:
  promise<R> take() noexcept {
    promise<R> to = *std::move(to_);
    to_.reset();
    return to;
  }
  void let_go() noexcept {
    if (to_) fail(std::make_exception_ptr(actor_error(actor_error::unanswered, "", "")));
  }

  std::optional<promise<R>> to_;
  std::shared_ptr<detail::told_ask> told_;
  detail::late_note_ptr late_;
};

}  // namespace sluice
