#include "jobs/http/detail/server_state.hpp"

namespace sluice::jobs::http {

void server_state::use_tokens(std::optional<token_set> now) {
  const bool asks = now.has_value();
  tokens.publish(std::move(now));
  asks_for_tokens_.store(asks);
  grants.end_refused(*this);
}

std::optional<error> server_state::refusal_of(const identity& caller, role needed,
                                              std::span<const std::string> queues) const {
  if (!asks_for_tokens()) return std::nullopt;
  const auto rules = tokens.load();
  if (!rules->has_value()) return std::nullopt;
  const result<identity> known = (*rules)->renew(caller, time.now());
  if (!known) return known.error();
  const auto lost = [&](const std::string& right) {
    return error{error_code::unauthenticated,
                 "the token " + std::string(caller.id()) + " has lost " + right};
  };
  if (!known->may(needed)) return lost("the role " + std::string(to_string(needed)));
  for (const std::string& queue : queues) {
    if (!known->may(needed, queue)) return lost("the queue '" + queue + "'");
  }
  if (queues.empty() && !known->covers_scope_of(caller)) return lost("some of its queues");
  return std::nullopt;
}

// Limits the notices to one a second, so that a client that tries many tokens cannot fill the log.
void server_state::note_intrusion(std::string_view from) {
  constexpr std::int64_t quiet_ms = 1000;
  intrusions_.fetch_add(1, relaxed);
  if (!options.on_intrusion) return;
  const std::int64_t now = time.now().ms;
  std::int64_t last = intrusion_noticed_ms_.load(relaxed);
  // relaxed: exactly one of the concurrent threads must win; no other data depends on it.
  if (now - last < quiet_ms || !intrusion_noticed_ms_.compare_exchange_strong(last, now, relaxed)) {
    return;
  }
  options.on_intrusion({.from = from, .times = intrusions_.exchange(0, relaxed)});
}

}  // namespace sluice::jobs::http
