#include "jobs/http/detail/server_state.hpp"

namespace sluice::jobs::http {

void server_state::use_tokens(std::optional<token_set> now) {
  const bool asks = now.has_value();
  tokens.publish(std::move(now));
  asks_for_tokens_.store(asks);
  grants.end_refused(*this);
}

std::optional<error> server_state::refusal_of(const identity& who, role what,
                                              std::span<const std::string> queues) const {
  if (!asks_for_tokens()) return std::nullopt;
  const auto rules = tokens.load();
  if (!rules->has_value()) return std::nullopt;
  const result<identity> known = (*rules)->renew(who, time.now());
  if (!known) return known.error();
  const auto lost = [&](const std::string& right) {
    return error{error_code::unauthenticated,
                 "the token " + std::string(who.id()) + " has lost " + right};
  };
  if (!known->may(what)) return lost("the role " + std::string(to_string(what)));
  for (const std::string& queue : queues) {
    if (!known->may(what, queue)) return lost("the queue '" + queue + "'");
  }
  if (queues.empty() && !known->covers_scope_of(who)) return lost("some of its queues");
  return std::nullopt;
}

// Whoever tries many tokens must not fill the log with it.
void server_state::note_intrusion(std::string_view from) {
  constexpr std::int64_t quiet_ms = 1000;
  intrusions_.fetch_add(1, relaxed);
  if (!options.on_intrusion) return;
  const std::int64_t now = time.now().ms;
  std::int64_t last = intrusion_told_ms_.load(relaxed);
  // relaxed: only one of those who try at once has to win.
  if (now - last < quiet_ms || !intrusion_told_ms_.compare_exchange_strong(last, now, relaxed)) {
    return;
  }
  options.on_intrusion({.from = from, .times = intrusions_.exchange(0, relaxed)});
}

}  // namespace sluice::jobs::http
