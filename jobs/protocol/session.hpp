#pragma once

// What a line protocol is made of: a session that understands bytes, and the client that it speaks
// to. The connection under them (connection.hpp) reads, orders the replies, writes, and bounds it
// all.
//
// Everything here runs on the thread of the client's loop; a session needs no lock of its own.
//
// Replies leave in the order in which they were opened, however late each is answered, and those
// that are ready go out in one write. So a session can hand many commands to the engine at once and
// answer each when it is done.
//
//     std::size_t echo::consume(std::string_view in) {
//       const auto line = cut_line(in, 1024);
//       if (line.is == line_cut::what::incomplete) return 0;
//       to_.say(line.text);
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

// One client's side of a conversation.
class session {
 public:
  virtual ~session() = default;

  virtual void begin() {}  // the connection is open, and with TLS secure: greet

  // Takes whole commands from the front of `in` and says how many bytes those were. It is called
  // again with what is left and what has come since, when something came or the session asked for
  // it (client::resume). A session that must wait before it may go on leaves bytes and returns.
  virtual std::size_t consume(std::string_view in) = 0;
  // How many bytes it must see at once before it can take any of what it left: the length of a
  // command whose beginning it has seen. Zero: it does not need more, it waits for something else
  // or for the end of a line.
  virtual std::size_t needs() const { return 0; }
  // Bytes that it holds for replies that it has not made.
  virtual std::size_t held_bytes() const { return 0; }

  // The client sends no more; it may still read. What came before has been offered to `consume`,
  // and is offered again as replies are answered; when none is open and none of the rest is taken,
  // the connection ends. So a session calls off here what would wait for long. Called once, if at
  // all.
  virtual void end_of_input() = 0;
  // The time that client::wake_at was told has come.
  virtual void on_time() {}
  // The server is shutting down: nothing new is to be begun. Called once, if at all.
  virtual void finish_up() = 0;
  // The connection has gone. Called once, last but for calls under way, which still come back.
  virtual void gone() = 0;
};

// What a session has of its connection. Lives as long as the session.
class client {
 public:
  // A reply that will come. Its place is behind those that were opened before.
  virtual std::uint64_t open() = 0;
  virtual void answer(std::uint64_t reply, std::string_view bytes) = 0;
  // Both at once.
  virtual void say(std::string_view bytes) = 0;
  // How many more may be opened now; a session opens no more than that, and leaves the rest of its
  // input. `consume` is called again when there is room.
  virtual std::size_t room() const = 0;
  virtual std::size_t open_replies() const = 0;
  // Nothing more is read; when the replies that are open are written, the connection closes.
  virtual void end() = 0;
  // `consume` shall be called again soon, although nothing has come.
  virtual void resume() = 0;
  // `on_time` shall be called then; time_point::max(): not at all. One time, the last that was
  // said.
  virtual void wake_at(time_point when) = 0;
  // Asked to stop when the connection has gone: for calls of the engine that wait.
  virtual std::stop_token gone_token() = 0;
  virtual bool is_gone() const = 0;
  virtual std::string address() const = 0;  // of the other end, or "local"
  virtual bool is_secure() const = 0;       // TLS, or a socket of this machine

  // Calls `then(settled<T>)` on the loop's thread when the engine is done, also when the connection
  // has gone by then; the session is still there.
  template <class T, class Then>
  void when_done(future<T> answer, Then then);

 protected:
  ~client() = default;

 private:
  friend class connection;
  virtual executor& home() = 0;
  virtual std::shared_ptr<client> keep() = 0;  // keeps this and the session
  virtual void call_begins() noexcept = 0;
  virtual void call_ended() noexcept = 0;  // also lets replies out
};

template <class T, class Then>
void client::when_done(future<T> answer, Then then) {
  call_begins();
  const auto dropped = std::move(answer).via(home()).handle(
      [kept = keep(), then = std::move(then)](settled<T> ended) mutable {
        // Moved out of the continuation, which may be destroyed on another thread.
        const std::shared_ptr<client> mine = std::move(kept);
        Then next = std::move(then);
        const struct last {
          client& who;
          ~last() { who.call_ended(); }
        } at_the_end{*mine};
        next(std::move(ended));
      });
}

}  // namespace sluice::jobs::protocol
