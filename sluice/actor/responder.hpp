#pragma once

// The right to reply to one ask, for an actor that cannot reply at once, or has another actor
// reply.
//
// A handler gets it as its second parameter, `void on(total, responder<int> to)`, and may store it,
// move it into a coroutine or a message, or pass the request on with `forward` (actor.hpp).
//
// Guarantees: movable; any thread may reply, once. Destroyed without a reply, it fails the ask with
// actor_error::unanswered. A reply after the asker has given up has no effect; if the ask had
// limits, it is reported as a late reply (actor_system_options::on_late_reply).
//
//     void on(total, responder<int> asker) { waiting_.push_back(std::move(asker)); }
//     void on(done) { for (auto& asker : waiting_) asker.reply(sum_); }

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "sluice/actor/actor_error.hpp"
#include "sluice/actor/detail/late_note.hpp"
#include "sluice/future/promise.hpp"

namespace sluice {

namespace detail {
class reported_ask;
}

template <class R>
class responder {
 public:
  responder() noexcept = default;  // replies have no effect
  explicit responder(promise<R> asker, std::shared_ptr<detail::reported_ask> report = {},
                     detail::late_note_ptr late = {})
      : promise_(std::move(asker)), report_(std::move(report)), late_(std::move(late)) {}
  responder(responder&& other) noexcept
      : promise_(std::move(other.promise_)),
        report_(std::move(other.report_)),
        late_(std::move(other.late_)) {
    other.promise_.reset();
  }
  responder& operator=(responder&& other) noexcept {
    if (this != &other) {
      drop();
      promise_ = std::move(other.promise_);
      other.promise_.reset();
      report_ = std::move(other.report_);
      late_ = std::move(other.late_);
    }
    return *this;
  }
  ~responder() { drop(); }

  template <class... Args>
  void reply(Args&&... args) {
    if (!promise_) return;
    if (late_ != nullptr) detail::note_reply(*late_, promise_->is_cancelled());
    promise<R> asker = take();
    (void)asker.try_set_value(std::forward<Args>(args)...);
  }
  void fail(std::exception_ptr why) {
    if (!promise_) return;
    promise<R> asker = take();
    (void)asker.try_set_exception(std::move(why));
  }

  // Returns false after a reply, if moved from, or if there is no asker.
  bool is_open() const noexcept { return promise_.has_value(); }
  // Returns false also if the asker has given up: at its deadline, or by cancelling.
  bool is_wanted() const noexcept { return promise_ && !promise_->is_cancelled(); }

  // For the library: reports the party that must reply, for sluice::inspect.
  void asked_of(wait_report::party replier) const noexcept {
    if (promise_) promise_->made_by(replier);
  }
  detail::cancel_ref watched() const noexcept {
    return promise_ ? promise_->watched() : detail::cancel_ref();
  }
  // For the library: the observer's record of the asker's wait; null without an observer.
  const std::shared_ptr<detail::reported_ask>& report() const noexcept { return report_; }

 private:
  promise<R> take() noexcept {
    promise<R> asker = *std::move(promise_);
    promise_.reset();
    return asker;
  }
  void drop() noexcept {
    if (promise_) fail(std::make_exception_ptr(actor_error(actor_error::unanswered, "", "")));
  }

  std::optional<promise<R>> promise_;
  std::shared_ptr<detail::reported_ask> report_;
  detail::late_note_ptr late_;
};

}  // namespace sluice
