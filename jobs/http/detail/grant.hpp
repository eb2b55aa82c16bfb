#pragma once

// Checks again, before a request takes effect, that its token still allows it.
//
// A token is checked when the head of a request is complete. The effect can be much later: a lease
// waits for a job, a push for capacity, a stream for events. Such a call has a grant. Its `limits`
// end the wait when the token no longer allows the call: it was revoked or removed, it has expired,
// or it lost the role or one of the queues. The handler checks `refusal` when the wait has ended:
// before it sends jobs or events, and in place of the error of a wait that was stopped. A push that
// was committed before is reported as committed.
//
// Guarantees: a copy is the same grant; any thread may use one. Changes of other tokens, and
// changes after which the call is still allowed, do not end a wait. Lifetime: ends before the
// server_state. Cost: without tokens, one load of an atomic for each check; with them, two
// allocations and two short critical sections for each grant.
//
//     const grant may(c.server, c.caller, role::work, queues);
//     when_done(c.reply, jobs.lease(request, may.limits(c.reply, wait)),
//               [may](const ticket& reply, const leased& jobs) {
//                 if (const auto why = may.refusal()) return release_and_refuse(reply, jobs, *why);

#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "jobs/auth/identity.hpp"
#include "jobs/http/detail/ticket.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::jobs::http {

class server_state;

class grant {
 public:
  // `queues`: the queues of the call. Empty: all queues that the token covers.
  grant(server_state& server, const identity& caller, role needed,
        std::vector<std::string> queues = {});

  // The wait also ends when the client of `reply` has gone.
  wait_limits limits(const ticket& reply, milliseconds wait) const;
  // Returns none if the call is still allowed, else `unauthenticated`.
  std::optional<error> refusal() const;

 private:
  friend class open_grants;
  struct entry;

  server_state* server_;
  std::shared_ptr<entry> entry_;  // null: no tokens were required when the request arrived
};

// The grants of a server whose tokens may change.
class open_grants {
 public:
  // Ends each wait whose call `server` no longer allows.
  void end_refused(const server_state& server);
  std::size_t count() const;

 private:
  friend class grant;

  mutable mutex mutex_;
  intrusive_list<grant::entry> all_;  // protected by mutex_
};

// Returns the queues of the jobs, each once. Empty if `caller` needed no token.
std::vector<std::string> queues_of(const identity& caller, std::span<const job_spec> specs);

}  // namespace sluice::jobs::http
