#pragma once

// The other end of a session, without a socket: what it says is taken by hand, and what is said to
// it is kept in order. Calls of the engine come back when `run` is called, on that thread.
//
// It keeps the contract of client and of session as a connection does.

#include <deque>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "jobs/protocol/session.hpp"
#include "sluice/base/check.hpp"
#include "sluice/executor/manual_executor.hpp"

namespace sluice::jobs::testing {

class fake_client final : public protocol::client,
                          public std::enable_shared_from_this<fake_client> {
 public:
  explicit fake_client(manual_executor& home, std::size_t replies_max = 1024)
      : home_(home), replies_max_(replies_max) {}
  ~fake_client() { close(); }

  template <class Session, class... Args>
  void begin(Args&&... args) {
    session_ = std::make_unique<Session>(*this, std::forward<Args>(args)...);
    session_->begin();
  }

  // What the client does.
  void send(std::string_view bytes) {
    if (is_last_) return;
    in_ += bytes;
    look_again_ = true;
    pump();
  }
  void half_close() {
    saw_end_ = look_again_ = true;
    pump();
  }
  void close() {
    if (session_ == nullptr || std::exchange(is_gone_, true)) return;
    gone_.request_stop();
    session_->gone();
  }
  // What the server does.
  void finish_up() {
    session_->finish_up();
    is_last_ = true;
    pump();
  }
  // What came, up to so many bytes.
  std::string take(std::size_t most = std::string::npos) {
    std::string taken = out_.substr(0, most);
    out_.erase(0, taken.size());
    return taken;
  }
  std::size_t received() const { return out_.size(); }
  bool is_ended() const { return is_last_ && replies_.empty(); }
  std::size_t unread() const { return in_.size(); }
  std::size_t calls() const { return calls_; }
  // The time that the session asked for has come; false: it did not ask.
  bool wake() {
    if (!std::exchange(wakes_, false)) return false;
    session_->on_time();
    pump();
    return true;
  }

  // client
  std::uint64_t open() override {
    check(room() > 0, "fake_client", "no more replies than there is room for");
    replies_.emplace_back();
    return first_ + replies_.size() - 1;
  }
  void answer(std::uint64_t number, std::string_view bytes) override {
    if (is_gone_) return;
    check(number >= first_ && number < first_ + replies_.size(), "fake_client", "an open reply");
    reply& r = replies_[static_cast<std::size_t>(number - first_)];
    check(!r.is_ready, "fake_client", "a reply that has no answer");
    r = {std::string(bytes), true};
    for (; !replies_.empty() && replies_.front().is_ready; ++first_) {
      out_ += replies_.front().bytes;
      replies_.pop_front();
    }
    look_again_ = true;
  }
  void say(std::string_view bytes) override { answer(open(), bytes); }
  std::size_t room() const override { return replies_max_ - replies_.size(); }
  std::size_t open_replies() const override { return replies_.size(); }
  void end() override { is_last_ = true; }
  void resume() override { look_again_ = true; }
  void wake_at(time_point when) override { wakes_ = when != time_point::max(); }
  std::stop_token gone_token() override { return gone_.get_token(); }
  bool is_gone() const override { return is_gone_; }
  std::string address() const override { return "192.0.2.1:4000"; }
  bool is_secure() const override { return false; }

 private:
  struct reply {
    std::string bytes;
    bool is_ready = false;
  };

  executor& home() override { return home_; }
  std::shared_ptr<protocol::client> keep() override { return shared_from_this(); }
  void call_begins() noexcept override { ++calls_; }
  void call_ended() noexcept override {
    --calls_;
    look_again_ = true;
    pump();
  }

  void pump() {
    // A call that is done at once ends inside of `consume`.
    if (std::exchange(is_pumping_, true)) return;
    while (!is_gone_ && !is_last_ && std::exchange(look_again_, false)) {
      std::size_t used = 0;
      while (!in_.empty() && in_.size() >= session_->needs() && !is_last_) {
        used = session_->consume(in_);
        check(used <= in_.size(), "fake_client", "no more to be taken than there is");
        in_.erase(0, used);
        if (used == 0) break;
      }
      if (!saw_end_ || is_last_) continue;
      if (!std::exchange(told_end_, true)) session_->end_of_input();
      if (replies_.empty() && !look_again_) is_last_ = true;
    }
    is_pumping_ = false;
  }

  manual_executor& home_;
  const std::size_t replies_max_;
  std::unique_ptr<protocol::session> session_;
  std::stop_source gone_;
  std::string in_, out_;
  std::deque<reply> replies_;
  std::uint64_t first_ = 0;
  std::size_t calls_ = 0;
  bool look_again_ = false, saw_end_ = false, told_end_ = false, is_last_ = false;
  bool is_gone_ = false, wakes_ = false, is_pumping_ = false;
};

}  // namespace sluice::jobs::testing
