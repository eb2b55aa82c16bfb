#pragma once

// The exception of an ask that fails for a reason other than an exception of the handler. (An ask
// whose deadline has passed throws future_error::timed_out; an ask that is stopped while it waits
// for the reply throws future_error::cancelled.)
//
//     try { use(account.ask(balance{}).get()); }
//     catch (const actor_error& e) { if (e.why() == actor_error::terminated) reopen(); }

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice {

class actor_error : public std::runtime_error {
 public:
  enum reason : std::uint8_t {
    terminated,      // the actor had ended, or ended before handling the request
    full,            // the mailbox was full, and does not let senders wait, or not that long
    dropped,         // the mailbox dropped the message to make room for another one
    stopped,         // a stop was requested while waiting for capacity
    unanswered,      // the responder was destroyed without a reply
    linked,          // a linked actor has failed
    unexpected_end,  // the actor is permanent, and was not ended by its parent
  };

  actor_error(reason why, std::string_view actor, std::string_view message);
  reason why() const noexcept { return why_; }

 private:
  reason why_;
};

std::string_view to_string(actor_error::reason why) noexcept;

}  // namespace sluice
