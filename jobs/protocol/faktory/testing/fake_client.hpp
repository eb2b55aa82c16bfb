#pragma once

// A connection without a socket: bytes go in by hand, replies come out in their order, and what the
// engine answers is run when the test says so, on its own thread.

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
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
  using make_session = std::function<std::unique_ptr<protocol::session>(protocol::client&)>;

  static std::shared_ptr<fake_client> connect(manual_executor& loop, const make_session& make) {
    const auto made = std::shared_ptr<fake_client>(new fake_client(loop));
    made->session_ = make(*made);
    made->session_->begin();
    return made;
  }

  // The other end.
  void send(std::string_view bytes) {
    in_ += bytes;
    look();
  }
  void send_no_more() {
    session_->end_of_input();
    look();
  }
  void hang_up() {
    if (std::exchange(is_gone_, true)) return;
    gone_.request_stop();
    session_->gone();
  }
  void server_finishes() { session_->finish_up(); }
  // What has been written and not read, as it is.
  std::string take_written() { return std::exchange(written_, {}); }
  // The next reply, if it is there: a line as it is, of a bulk its bytes, "$-1" for none.
  std::optional<std::string> try_read() {
    const std::size_t end = written_.find("\r\n");
    if (end == std::string::npos) return std::nullopt;
    std::string reply = written_.substr(0, end);
    std::size_t used = end + 2;
    if (reply.starts_with('$') && reply != "$-1") {
      const std::size_t bytes = std::stoul(reply.substr(1));
      reply = written_.substr(used, bytes);
      used += bytes + 2;
    }
    written_.erase(0, used);
    return reply;
  }
  bool is_ended() const { return is_ended_ && replies_.empty(); }
  std::size_t calls() const { return calls_; }
  std::size_t unread_input() const { return in_.size(); }
  std::size_t needs() const { return session_->needs(); }
  time_point wakes_at() const { return wake_at_; }
  void wake(time_point now) {
    if (is_gone_ || wake_at_ > now) return;
    wake_at_ = time_point::max();
    session_->on_time();
    look();
  }
  void set_replies_max(std::size_t max) { replies_max_ = max; }

  // client
  std::uint64_t open() override {
    check(room() > 0, "fake_client", "no more replies than there is room for");
    replies_.emplace_back();
    return first_ + replies_.size() - 1;
  }
  void answer(std::uint64_t reply, std::string_view bytes) override {
    if (is_gone_) return;
    check(reply >= first_ && reply < first_ + replies_.size(), "fake_client", "an open reply");
    auto& it = replies_[static_cast<std::size_t>(reply - first_)];
    check(!it, "fake_client", "a reply that was not answered");
    it.emplace(bytes);
    while (!replies_.empty() && replies_.front()) {
      written_ += *replies_.front();
      replies_.pop_front();
      ++first_;
    }
  }
  void say(std::string_view bytes) override { answer(open(), bytes); }
  std::size_t room() const override {
    return replies_max_ - std::min(replies_max_, replies_.size());
  }
  std::size_t open_replies() const override { return replies_.size(); }
  void end() override { is_ended_ = true; }
  void resume() override {}
  void wake_at(time_point when) override { wake_at_ = when; }
  std::stop_token gone_token() override { return gone_.get_token(); }
  bool is_gone() const override { return is_gone_; }
  std::string address() const override { return "10.0.0.1"; }
  bool is_secure() const override { return false; }

 private:
  explicit fake_client(manual_executor& loop) : loop_(loop) {}

  executor& home() override { return loop_; }
  std::shared_ptr<client> keep() override { return shared_from_this(); }
  void call_begins() noexcept override { ++calls_; }
  void call_ended() noexcept override {
    --calls_;
    look();
  }

  // What a session takes may be answered while it does so.
  void look() {
    look_again_ = true;
    if (std::exchange(is_looking_, true)) return;
    while (std::exchange(look_again_, false)) {
      while (!is_gone_ && !is_ended_ && !in_.empty()) {
        const std::size_t used = session_->consume(in_);
        check(used <= in_.size(), "fake_client", "a session to take what there is");
        if (used == 0) break;
        in_.erase(0, used);
      }
    }
    is_looking_ = false;
  }

  manual_executor& loop_;
  std::unique_ptr<protocol::session> session_;
  std::string in_;
  std::string written_;
  std::deque<std::optional<std::string>> replies_;
  std::uint64_t first_ = 0;
  std::size_t replies_max_ = 1024;
  std::size_t calls_ = 0;
  time_point wake_at_ = time_point::max();
  std::stop_source gone_;
  bool is_looking_ = false;
  bool look_again_ = false;
  bool is_ended_ = false;
  bool is_gone_ = false;
};

}  // namespace sluice::jobs::testing
