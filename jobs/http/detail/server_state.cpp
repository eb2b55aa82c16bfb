#include "jobs/http/detail/server_state.hpp"

namespace sluice::jobs::http {

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
