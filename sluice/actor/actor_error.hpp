#pragma once

// Why an ask has no answer, when the reason is not an exception of the actor's own: what the future
// of an ask throws. (One whose deadline has passed throws future_error::timed_out, one whose
// stop_token asked while the answer was waited for future_error::cancelled.)
//
//     try { use(account.ask(balance{}).get()); }
//     catch (const actor_error& e) { if (e.why() == actor_error::gone) reopen(); }

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice {

class actor_error : public std::runtime_error {
 public:
  enum reason : std::uint8_t {
    gone,        // the actor has ended, before it was asked or before it came to it
    full,        // its mailbox was full, and it does not let wait, or not so long
    dropped,     // its mailbox dropped the message to make room for another
    stopped,     // the stop_token asked while there was no room
    unanswered,  // it took the message and let go of the responder without an answer
    linked,      // an actor that this one is linked to has failed
    ended,       // it was ended by somebody else than its parent, and is permanent
  };

  actor_error(reason why, std::string_view actor, std::string_view message);
  reason why() const noexcept { return why_; }

 private:
  reason why_;
};

std::string_view to_string(actor_error::reason why) noexcept;

}  // namespace sluice
