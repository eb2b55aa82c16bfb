#pragma once

// The right, and the duty, to answer one request: carried by whatever finishes it.

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "jobs/engine/engine.hpp"
#include "jobs/http/detail/response.hpp"
#include "sluice/base/unique_function.hpp"
#include "sluice/executor/executor.hpp"
#include "sluice/future/future.hpp"

namespace sluice::jobs::http {

// Whoever makes an answer that comes in parts. All of it on the thread of `home`.
class part_source {
 public:
  virtual void go_on() = 0;  // there is room for more, after there was none

 protected:
  ~part_source() = default;
};

// Whoever a request came from. All of it on the thread of `home`.
class answerer {
 public:
  virtual void answer(std::uint64_t number, response&& r) = 0;
  // An answer in parts: its head, its parts, its end. After a part that fills what may be unsent
  // (false) no more is put until `source` is told to go on. A client that has gone takes all of it.
  virtual void begin_parts(std::uint64_t number, response&& head,
                           std::shared_ptr<part_source> source) = 0;
  virtual bool put_part(std::uint64_t number, std::string_view bytes) = 0;
  virtual void end_parts(std::uint64_t number) = 0;
  // Counts the bytes of a request that its handler keeps until the engine has them, from the
  // handler's call on. Ends with the answer.
  virtual void keep(std::uint64_t number, std::size_t bytes) = 0;
  // Calls `then` when the budget has memory for one more job of any size, which counts until
  // `end_load` or the answer. Drops `then` if the connection closes.
  virtual void begin_load(std::uint64_t number, unique_function<void()> then) = 0;
  virtual void end_load(std::uint64_t number) = 0;
  // Something that a request waited for has come: its body may be read on.
  virtual void resume() = 0;
  virtual executor& home() noexcept = 0;
  virtual void call_begins() noexcept = 0;  // a call of the engine that will come back to `home`
  virtual void call_ended() noexcept = 0;
  // Asked to stop when the client has gone.
  virtual std::stop_token gone() = 0;
  virtual bool is_gone() const noexcept = 0;
  virtual std::string& scratch() noexcept = 0;  // empty; for a body, until it is answered

 protected:
  ~answerer() = default;
};

class ticket {
 public:
  ticket() = default;
  ticket(std::shared_ptr<answerer> who, std::uint64_t number) noexcept
      : who_(std::move(who)), number_(number) {}

  answerer& who() const noexcept { return *who_; }

  void answer(response r) const { who_->answer(number_, std::move(r)); }
  void answer(int status) const { answer({.status = status}); }
  void answer_json(int status, std::string_view body, std::string_view headers = {}) const {
    answer({.status = status, .type = json_type, .body = body, .headers = headers});
  }
  void refuse(const error& why, int status = 0, std::string_view headers = {},
              bool is_last = false) const {
    if (why.code == error_code::unauthenticated && headers.empty()) {
      headers = "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n";
    }
    const problem_parts p = make_problem(why, status, headers);
    answer({.status = p.status,
            .type = problem_type,
            .body = p.body,
            .headers = p.headers,
            .is_last = is_last});
  }
  void begin_parts(response head, std::shared_ptr<part_source> source) const {
    who_->begin_parts(number_, std::move(head), std::move(source));
  }
  bool put_part(std::string_view bytes) const { return who_->put_part(number_, bytes); }
  void end_parts() const { who_->end_parts(number_); }
  void keep(std::size_t bytes) const { who_->keep(number_, bytes); }
  void end_load() const { who_->end_load(number_); }
  // Calls `then(const ticket&)`; see answerer::begin_load.
  template <class Then>
  void begin_load(Then then) const {
    who_->begin_load(number_, [to = *this, then = std::move(then)]() mutable { then(to); });
  }
  // The rest of the request will not be read.
  void refuse_and_end(const error& why) const { refuse(why, 0, {}, true); }

 private:
  std::shared_ptr<answerer> who_;
  std::uint64_t number_ = 0;
};

// Calls `then(const ticket&, value)` on the thread of the request's connection when the engine is
// done.
template <class T, class Then>
void when_done(ticket to, future<T> answer, Then then) {
  executor& home = to.who().home();
  to.who().call_begins();
  const auto dropped = std::move(answer).via(home).handle(
      [to = std::move(to), then = std::move(then)](settled<T> ended) mutable {
        // Moved out of the continuation, which may be destroyed on another thread.
        const ticket mine = std::move(to);
        Then next = std::move(then);
        const struct last {
          answerer& who;
          ~last() { who.call_ended(); }
        } at_the_end{mine.who()};
        if (ended.has_value()) {
          next(mine, std::move(ended).value());
        } else {
          mine.refuse({error_code::io_error, "the server could not finish this request"}, 500);
        }
      });
}

// As `when_done` of the future that `call()` makes, for values that may contain whole jobs and are
// only looked at: begins when the budget has memory for them (answerer::begin_load).
template <class Call, class Then>
void when_loaded(const ticket& asked, Call call, Then then) {
  asked.begin_load([call = std::move(call), then = std::move(then)](const ticket& to) mutable {
    when_done(to, call(), [then = std::move(then)](const ticket& back, const auto& found) mutable {
      back.end_load();
      then(back, found);
    });
  });
}

}  // namespace sluice::jobs::http
