#pragma once

// The interface between a line protocol and its connection: a session parses commands, a client
// takes its replies. The connection (connection.hpp) reads, orders the replies, writes, and
// enforces the limits.
//
// Everything here runs on the thread of the client's loop; a session needs no lock of its own.
//
// Replies are sent in the order in which they were opened, independent of the order of their
// answers; ready replies share a write. So a session can pass many commands to the engine at once
// and answer each when it is done.
//
//     std::size_t echo::consume(std::string_view in) {
//       const auto line = cut_line(in, 1024);
//       if (line.is == line_cut::kind::incomplete) return 0;
//       to_.respond(line.text);
//       return line.used;
//     }

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/future/future.hpp"

namespace sluice::jobs::protocol {

// The protocol state of one client.
class session {
 public:
  virtual ~session() = default;

  virtual void begin() {}  // the connection is open, after the TLS handshake: send a greeting

  // Consumes whole commands from the front of `in`, and returns their number of bytes. Called
  // again, with the rest and new bytes, when bytes arrive, when an engine call ends, when replies
  // may be opened again, and after client::resume. A session that must wait leaves bytes and
  // returns.
  virtual std::size_t consume(std::string_view in) = 0;
  // Returns the number of bytes that the session needs at once to consume more: the length of a
  // command whose beginning it has seen. Zero: it waits for another event or for the end of a line.
  virtual std::size_t needs() const { return 0; }
  // Returns the bytes that the session holds for replies that it has not made yet.
  virtual std::size_t held_bytes() const { return 0; }

  // The client has closed its direction; it may still read. All input was offered to `consume`, and
  // the rest is offered again as replies are answered; the connection ends when no reply is open
  // and the rest is not consumed. So a session cancels its long waits here. Called at most once.
  virtual void end_of_input() = 0;
  // Called at the time set with client::wake_at.
  virtual void on_time() {}
  // The server shuts down: no further command may begin. Called at most once.
  virtual void finish_up() = 0;
  // The connection has closed. Called once; only results of pending calls follow.
  virtual void gone() = 0;
};

// The connection as its session uses it. Lives as long as the session.
class client {
 public:
  // Opens a reply, behind the replies opened before, and returns its number.
  virtual std::uint64_t open() = 0;
  // Completes an open reply.
  virtual void answer(std::uint64_t reply, std::string_view bytes) = 0;
  // Opens and completes a reply.
  virtual void respond(std::string_view bytes) = 0;
  // Returns how many replies may be opened now; a session must not open more, and leaves the rest
  // of its input. `consume` is called again when there is capacity.
  virtual std::size_t replies_left() const = 0;
  virtual std::size_t open_replies() const = 0;
  // Stops reading; the connection closes when the open replies are written.
  virtual void end() = 0;
  // Requests a call of `consume` without new input.
  virtual void resume() = 0;
  // Sets the time of the next `on_time`, replacing the previous one; time_point::max(): none.
  virtual void wake_at(time_point when) = 0;
  // Stop is requested when the connection has gone: for waiting calls of the engine.
  virtual std::stop_token gone_token() = 0;
  virtual bool is_gone() const = 0;
  virtual std::string address() const = 0;  // IP address of the client, or "local"
  virtual bool is_secure() const = 0;       // TLS, or a unix socket

  // Calls `then(settled<T>)` on the loop's thread when the engine is done. Called even if the
  // connection has gone by then; the session still exists.
  template <class T, class Then>
  void when_done(future<T> answer, Then then);

 protected:
  ~client() = default;

 private:
  friend class connection;
  virtual executor& home() = 0;
  virtual std::shared_ptr<client> keep() = 0;  // keeps this and the session
  virtual void call_begins() noexcept = 0;
  virtual void call_ended() noexcept = 0;  // also writes ready replies
};

template <class T, class Then>
void client::when_done(future<T> answer, Then then) {
  call_begins();
  const auto dropped = std::move(answer).via(home()).handle(
      [kept = keep(), then = std::move(then)](settled<T> ended) mutable {
        // Moved out of the continuation, which may be destroyed on another thread.
        const std::shared_ptr<client> own = std::move(kept);
        Then next = std::move(then);
        const struct last {
          client& connection;
          ~last() { connection.call_ended(); }
        } at_the_end{*own};
        next(std::move(ended));
      });
}

}  // namespace sluice::jobs::protocol
