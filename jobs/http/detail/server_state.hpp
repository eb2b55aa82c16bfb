#pragma once

// The state that all connections of a server share: options, counters, tokens, shutdown.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/http/detail/grant.hpp"
#include "jobs/http/detail/router.hpp"
#include "jobs/http/http_server.hpp"
#include "jobs/net/client_memory.hpp"
#include "jobs/net/tls_context.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/sync/snapshot.hpp"

namespace sluice::jobs::http {

// Counters of one loop: written by its thread, read by any. relaxed throughout: the counts order
// nothing.
struct traffic {
  static constexpr std::size_t classes = 5;                          // 1xx to 5xx
  std::vector<std::array<atomic<std::uint64_t>, classes>> requests;  // by route; the last: no route
  atomic<std::uint64_t> accepted{0};                                 // connections
  atomic<std::uint64_t> refused{0};                                  // connections over the limit
  atomic<std::uint64_t> open{0};
  atomic<std::uint64_t> bytes_in{0};
  atomic<std::uint64_t> bytes_out{0};
  atomic<std::uint64_t> timeouts{0};  // requests, bodies and replies that took too long

  traffic() : requests(routes().size() + 1) {}

  void count(const route* target, int status) noexcept {
    const auto at =
        target != nullptr ? static_cast<std::size_t>(target - routes().data()) : routes().size();
    const auto kind = static_cast<std::size_t>(status / 100 - 1);
    requests[at][kind < classes ? kind : classes - 1].fetch_add(1, relaxed);
  }
};

class server_state {
 public:
  explicit server_state(http_server_options o);

  const http_server_options options;
  time_source& time;
  std::vector<std::unique_ptr<traffic>> counts;  // one for each loop; constant after construction
  atomic<bool> closing{false};                   // intake is closed

  const std::shared_ptr<net::client_memory> memory =
      options.memory != nullptr ? options.memory : std::make_shared<net::client_memory>();

  // None: requests need no token. Replaced by use_tokens only.
  snapshot<std::optional<token_set>> tokens{options.tokens};
  // TLS context for new connections; null: plain HTTP.
  snapshot<std::shared_ptr<const net::tls_context>> tls{std::shared_ptr<const net::tls_context>()};

  // Replaces the tokens, and ends the waits that the new tokens do not allow.
  void use_tokens(std::optional<token_set> now);
  bool asks_for_tokens() const noexcept { return asks_for_tokens_.load(); }
  // Returns none if `caller` still has the role `needed` in these queues; without queues, in all
  // queues that it had. Otherwise returns `unauthenticated` and names the right that was lost.
  std::optional<error> refusal_of(const identity& caller, role needed,
                                  std::span<const std::string> queues = {}) const;
  open_grants grants;

  // Called for a request with an unknown token.
  void note_intrusion(std::string_view from);

  bool is_closing() const noexcept { return closing.load(relaxed); }
  std::uint64_t connections() const noexcept;

 private:
  atomic<bool> asks_for_tokens_{options.tokens.has_value()};
  atomic<std::uint64_t> intrusions_{0};           // since the last notice
  atomic<std::int64_t> intrusion_noticed_ms_{0};  // time of the last notice
};

// The text of /metrics.
void write_metrics(std::string& out, const server_state& server, const engine& jobs);

}  // namespace sluice::jobs::http
