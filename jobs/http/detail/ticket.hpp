#pragma once

// The handle of one request's reply slot: must be used to answer exactly once. Passed along to the
// function that completes the request.

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

// Produces a reply in parts. All functions run on the thread of `home`.
class part_source {
 public:
  // Called when capacity is free again after put_part returned false.
  virtual void put_more() = 0;

 protected:
  ~part_source() = default;
};

// The connection that a request arrived on. All functions run on the thread of `home`.
class answerer {
 public:
  virtual void answer(std::uint64_t number, response&& r) = 0;
  // A reply in parts: head, parts, end. put_part returns false if the unsent bytes reached their
  // limit: the next part must wait for put_more of `source`. Parts for a client that has gone are
  // accepted and dropped.
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
  // Resumes reading the body of a request.
  virtual void resume() = 0;
  virtual executor& home() noexcept = 0;
  virtual void call_begins() noexcept = 0;  // an engine call whose result is posted to `home`
  virtual void call_ended() noexcept = 0;
  // Stop is requested when the client has gone.
  virtual std::stop_token gone() = 0;
  virtual bool is_gone() const noexcept = 0;
  virtual std::string& scratch() noexcept = 0;  // an empty buffer for a body, valid until `answer`

 protected:
  ~answerer() = default;
};

class ticket {
 public:
  ticket() = default;
  ticket(std::shared_ptr<answerer> client, std::uint64_t number) noexcept
      : client_(std::move(client)), number_(number) {}

  answerer& client() const noexcept { return *client_; }

  void answer(response r) const { client_->answer(number_, std::move(r)); }
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
    client_->begin_parts(number_, std::move(head), std::move(source));
  }
  bool put_part(std::string_view bytes) const { return client_->put_part(number_, bytes); }
  void end_parts() const { client_->end_parts(number_); }
  void keep(std::size_t bytes) const { client_->keep(number_, bytes); }
  void end_load() const { client_->end_load(number_); }
  // Calls `then(const ticket&)`; see answerer::begin_load.
  template <class Then>
  void begin_load(Then then) const {
    client_->begin_load(number_,
                        [reply = *this, then = std::move(then)]() mutable { then(reply); });
  }
  // Refuses the request; the rest of it is not read.
  void refuse_and_end(const error& why) const { refuse(why, 0, {}, true); }

 private:
  std::shared_ptr<answerer> client_;
  std::uint64_t number_ = 0;
};

// Calls `then(const ticket&, value)` on the thread of the request's connection when `answer` is
// ready.
template <class T, class Then>
void when_done(ticket reply, future<T> answer, Then then) {
  executor& home = reply.client().home();
  reply.client().call_begins();
  const auto dropped = std::move(answer).via(home).handle(
      [kept = std::move(reply), then = std::move(then)](settled<T> ended) mutable {
        // Moved out of the continuation, which may be destroyed on another thread.
        const ticket own = std::move(kept);
        Then next = std::move(then);
        const struct last {
          answerer& client;
          ~last() { client.call_ended(); }
        } at_the_end{own.client()};
        if (ended.has_value()) {
          next(own, std::move(ended).value());
        } else {
          own.refuse({error_code::io_error, "the server could not finish this request"}, 500);
        }
      });
}

// Like `when_done(reply, call(), then)`, for values that may contain whole jobs and are only
// inspected: calls `call` when the budget has memory for them (answerer::begin_load).
template <class Call, class Then>
void when_loaded(const ticket& asked, Call call, Then then) {
  asked.begin_load([call = std::move(call), then = std::move(then)](const ticket& reply) mutable {
    when_done(reply, call(),
              [then = std::move(then)](const ticket& back, const auto& found) mutable {
                back.end_load();
                then(back, found);
              });
  });
}

}  // namespace sluice::jobs::http
