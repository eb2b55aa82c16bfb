#pragma once

// Hears what happens in a system of actors: the door for tracing, counters and for finding out why
// everything has stopped.
//
// Given to the system at its making; several at once through `observer_list`. Called by many
// threads at a time, in the middle of things: it must not wait, throw, or send. It must outlive the
// system, and whoever still holds the responder of an ask that one of its actors made. Without one
// a message costs a branch on a null pointer. Names and types are said once, when an actor is
// spawned; afterwards it is its number. A message is known by its type and by the note that `sent`
// gave it; one that was put aside keeps its note.

#include <cstdint>
#include <exception>
#include <string_view>

#include "sluice/actor/actor_options.hpp"

namespace sluice {

// What an actor waits for in the middle of a message.
enum class actor_wait : std::uint8_t { room, answer };

// Why nobody handled a message that had been sent.
enum class loss : std::uint8_t {
  ended,      // the actor had ended when it was sent, or takes nothing any more, or never lived
  unhandled,  // the actor had accepted it, and ended before it came to it
  dropped,    // a mailbox that was full dropped it for another, or as the newest
};

constexpr std::string_view to_string(loss why) noexcept {
  if (why == loss::dropped) return "dropped by a full mailbox";
  return why == loss::ended ? "the actor has ended" : "the actor ended before it came to it";
}

class actor_observer {
 public:
  // How many bits of a note it uses, from the lowest: a list gives each of its observers so many.
  virtual unsigned note_bits() const noexcept { return 64; }
  // parent: 0 for the system's own.
  virtual void spawned(actor_id, actor_id /*parent*/, std::string_view /*name*/,
                       std::string_view /*type*/) noexcept {}
  virtual void ended(actor_id, end_reason) noexcept {}
  // `from` is 0 outside of actors. What it returns stays with the message.
  virtual std::uint64_t sent(actor_id /*from*/, actor_id /*to*/,
                             std::string_view /*message*/) noexcept {
    return 0;
  }
  virtual void begun(actor_id, std::string_view /*message*/, std::uint64_t /*note*/) noexcept {}
  // The handler has returned, thrown, or, if it is a coroutine, let the next message in or ended.
  virtual void handled(actor_id, std::string_view /*message*/, std::uint64_t /*note*/) noexcept {}
  // A coroutine that has let others in goes on with its message; `handled` is said once more.
  virtual void resumed(actor_id, std::string_view /*message*/, std::uint64_t /*note*/) noexcept {}
  virtual void failed(actor_id, const std::exception_ptr&) noexcept {}
  // Its state has been made anew.
  virtual void restarted(actor_id) noexcept {}
  virtual void lost(actor_id /*to*/, std::string_view /*message*/, std::uint64_t /*note*/,
                    loss) noexcept {}
  // An actor waits for room in the mailbox of another, or has asked it and has no answer. Who has
  // asked may still be doing something else, or be done with the message in which it asked. Both
  // calls give the same number, which no other wait of the system has.
  virtual void waits(actor_id, actor_id /*for_whom*/, actor_wait, std::uint64_t /*wait*/) noexcept {
  }
  virtual void waits_no_more(actor_id, actor_id /*for_whom*/, actor_wait,
                             std::uint64_t /*wait*/) noexcept {}

 protected:
  ~actor_observer() = default;
};

}  // namespace sluice
