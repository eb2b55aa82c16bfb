#pragma once

// The interface through which a system of actors reports its events, for tracing, counters and for
// finding out why all progress has stopped.
//
// It is passed to the system's constructor; `observer_list` combines several. Its functions are
// called by many threads at a time, and in the middle of operations: they must not wait, throw, or
// send. It must outlive the system, and every responder of an ask that an actor of the system made.
// Without an observer a message costs a branch on a null pointer. Name and type of an actor are
// reported once, at its spawn; later calls identify it by its number. A message is identified by
// its type and by the note that `sent` returned for it; a stashed message keeps its note.

#include <cstdint>
#include <exception>
#include <string_view>

#include "sluice/actor/actor_options.hpp"

namespace sluice {

// The reason for a wait during a message: capacity in a mailbox, or a reply.
enum class actor_wait : std::uint8_t { capacity, answer };

// Why a sent message was not handled.
enum class loss : std::uint8_t {
  ended,      // the actor had ended, was closing, or was never started
  unhandled,  // the actor accepted the message, and ended before handling it
  dropped,    // a full mailbox dropped it, for another message or as the newest
};

constexpr std::string_view to_string(loss why) noexcept {
  if (why == loss::dropped) return "dropped by a full mailbox";
  return why == loss::ended ? "the actor has ended" : "the actor ended before handling it";
}

class actor_observer {
 public:
  // Returns how many bits of a note it uses, from the lowest. An observer_list reserves that many.
  virtual unsigned note_bits() const noexcept { return 64; }
  // `parent` is 0 for actors that the system spawned.
  virtual void spawned(actor_id, actor_id /*parent*/, std::string_view /*name*/,
                       std::string_view /*type*/) noexcept {}
  virtual void ended(actor_id, end_reason) noexcept {}
  // `from` is 0 for a sender that is no actor. The result is the note of the message.
  virtual std::uint64_t sent(actor_id /*from*/, actor_id /*receiver*/,
                             std::string_view /*message*/) noexcept {
    return 0;
  }
  virtual void begun(actor_id, std::string_view /*message*/, std::uint64_t /*note*/) noexcept {}
  // The handler has returned or thrown; a coroutine has ended, or has begun a `reentrant` wait.
  virtual void handled(actor_id, std::string_view /*message*/, std::uint64_t /*note*/) noexcept {}
  // A coroutine continues after a `reentrant` wait; `handled` is called once more for its message.
  virtual void resumed(actor_id, std::string_view /*message*/, std::uint64_t /*note*/) noexcept {}
  virtual void failed(actor_id, const std::exception_ptr&) noexcept {}
  // The state has been constructed again.
  virtual void restarted(actor_id) noexcept {}
  virtual void lost(actor_id /*receiver*/, std::string_view /*message*/, std::uint64_t /*note*/,
                    loss) noexcept {}
  // An actor waits for capacity in the mailbox of another actor, or has asked it and has no reply.
  // An asker may still be doing other work, or may have finished the message in which it asked.
  // Both calls get the same wait number, which is unique in the system.
  virtual void wait_begun(actor_id, actor_id /*target*/, actor_wait,
                          std::uint64_t /*wait*/) noexcept {}
  virtual void wait_ended(actor_id, actor_id /*target*/, actor_wait,
                          std::uint64_t /*wait*/) noexcept {}

 protected:
  ~actor_observer() = default;
};

}  // namespace sluice
