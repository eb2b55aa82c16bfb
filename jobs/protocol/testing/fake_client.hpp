#pragma once

// A client of a session without a socket: the test sends input by hand and takes the replies.
// Results of engine calls arrive when the test runs its executor; `on_time` is called by `wake`.
//
// Keeps the contracts of client and session like a connection.
//
//     auto c = fake_client::connect(loop, [](auto& peer) { return std::make_unique<echo>(peer); });
//     c->send("hello\r\n");
//     loop.run_all();
//     EXPECT_EQ(c->take(), "hello\r\n");

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

  static std::shared_ptr<fake_client> connect(manual_executor& home, const make_session& make,
                                              std::size_t replies_max = 1024) {
    const std::shared_ptr<fake_client> made(new fake_client(home, replies_max));
    made->session_ = make(*made);
    made->session_->begin();
    return made;
  }
  ~fake_client() { close(); }

  // Actions of the client.
  void send(std::string_view bytes) {
    if (is_last_) return;
    in_ += bytes;
    must_consume_ = true;
    pump();
  }
  void half_close() {
    saw_end_ = must_consume_ = true;
    pump();
  }
  void close() {
    if (std::exchange(is_gone_, true)) return;
    gone_.request_stop();
    session_->gone();
  }
  // Actions of the server.
  void finish_up() {
    session_->finish_up();
    is_last_ = true;
    pump();
  }
  // Removes and returns up to `most` bytes of the replies.
  std::string take(std::size_t most = std::string::npos) {
    std::string taken = out_.substr(0, most);
    out_.erase(0, taken.size());
    return taken;
  }
  // Removes and returns the next RESP reply, if complete: a line, the bytes of a bulk, or "$-1" for
  // null.
  std::optional<std::string> try_read() {
    const std::size_t end = out_.find("\r\n");
    if (end == std::string::npos) return std::nullopt;
    std::string line = take(end + 2).substr(0, end);
    if (!line.starts_with('$') || line == "$-1") return line;
    const std::size_t bytes = std::stoul(line.substr(1));
    return take(bytes + 2).substr(0, bytes);
  }
  std::size_t received() const { return out_.size(); }
  bool is_ended() const { return is_last_ && replies_.empty(); }
  std::size_t unread() const { return in_.size(); }
  std::size_t calls() const { return calls_; }
  std::size_t needs() const { return session_->needs(); }
  protocol::session& session() { return *session_; }
  void set_replies_max(std::size_t max) { replies_max_ = max; }
  // Returns the time that the session set with wake_at; time_point::max(): none.
  time_point wakes_at() const { return wakes_at_; }
  // Calls on_time if its time is not after `now`. Returns whether it did.
  bool wake(time_point now = time_point::max()) {
    if (is_gone_ || wakes_at_ == time_point::max() || wakes_at_ > now) return false;
    wakes_at_ = time_point::max();
    session_->on_time();
    pump();
    return true;
  }

  // client
  std::uint64_t open() override {
    check(replies_left() > 0, "fake_client", "at most replies_left() replies");
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
    must_consume_ = true;
  }
  void respond(std::string_view bytes) override { answer(open(), bytes); }
  std::size_t replies_left() const override {
    return replies_max_ - std::min(replies_max_, replies_.size());
  }
  std::size_t open_replies() const override { return replies_.size(); }
  void end() override { is_last_ = true; }
  void resume() override { must_consume_ = true; }
  void wake_at(time_point when) override { wakes_at_ = when; }
  std::stop_token gone_token() override { return gone_.get_token(); }
  bool is_gone() const override { return is_gone_; }
  std::string address() const override { return "192.0.2.1:4000"; }
  bool is_secure() const override { return false; }

 private:
  fake_client(manual_executor& home, std::size_t replies_max)
      : home_(home), replies_max_(replies_max) {}

  struct reply {
    std::string bytes;
    bool is_ready = false;
  };

  executor& home() override { return home_; }
  std::shared_ptr<protocol::client> keep() override { return shared_from_this(); }
  void call_begins() noexcept override { ++calls_; }
  void call_ended() noexcept override {
    --calls_;
    must_consume_ = true;
    pump();
  }

  void pump() {
    // A call that completes at once ends inside of `consume`.
    if (std::exchange(is_pumping_, true)) return;
    while (!is_gone_ && !is_last_ && std::exchange(must_consume_, false)) {
      std::size_t used = 0;
      while (!in_.empty() && in_.size() >= session_->needs() && !is_last_) {
        used = session_->consume(in_);
        check(used <= in_.size(), "fake_client", "at most the given bytes to be consumed");
        in_.erase(0, used);
        if (used == 0) break;
      }
      if (!saw_end_ || is_last_) continue;
      if (!std::exchange(reported_end_, true)) session_->end_of_input();
      if (replies_.empty() && !must_consume_) is_last_ = true;
    }
    is_pumping_ = false;
  }

  manual_executor& home_;
  std::size_t replies_max_;
  std::unique_ptr<protocol::session> session_;
  std::stop_source gone_;
  std::string in_, out_;
  std::deque<reply> replies_;
  std::uint64_t first_ = 0;
  std::size_t calls_ = 0;
  time_point wakes_at_ = time_point::max();
  bool must_consume_ = false, saw_end_ = false, reported_end_ = false, is_last_ = false;
  bool is_gone_ = false, is_pumping_ = false;
};

}  // namespace sluice::jobs::testing
