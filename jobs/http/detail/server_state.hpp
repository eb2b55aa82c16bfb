#pragma once

// What all connections of a server share: its options, what it has counted, whether it shuts down.

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

// Counted by one loop alone, read by whoever asks; relaxed throughout: the counts order nothing.
struct traffic {
  static constexpr std::size_t classes = 5;                          // 1xx to 5xx
  std::vector<std::array<atomic<std::uint64_t>, classes>> requests;  // by route; the last: no route
  atomic<std::uint64_t> accepted{0};                                 // connections
  atomic<std::uint64_t> refused{0};                                  // ... beyond the limit
  atomic<std::uint64_t> open{0};
  atomic<std::uint64_t> bytes_in{0};
  atomic<std::uint64_t> bytes_out{0};
  atomic<std::uint64_t> timeouts{0};  // requests, bodies and answers that took too long

  traffic() : requests(routes().size() + 1) {}

  void count(const route* to, int status) noexcept {
    const auto at =
        to != nullptr ? static_cast<std::size_t>(to - routes().data()) : routes().size();
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

  // None: requests need no token. Only use_tokens replaces them.
  snapshot<std::optional<token_set>> tokens{options.tokens};
  // What new connections begin TLS with; null: they do not.
  snapshot<std::shared_ptr<const net::tls_context>> tls{std::shared_ptr<const net::tls_context>()};

  // Ends the waits that the new tokens do not allow.
  void use_tokens(std::optional<token_set> now);
  bool asks_for_tokens() const noexcept { return asks_for_tokens_.load(); }
  // None if `who` still has the role `what` in these queues; without queues, in all queues that it
  // had. Otherwise `unauthenticated`, with the right that the token has lost.
  std::optional<error> refusal_of(const identity& who, role what,
                                  std::span<const std::string> queues = {}) const;
  open_grants grants;

  // Somebody has shown a token that is not known.
  void note_intrusion(std::string_view from);

  bool is_closing() const noexcept { return closing.load(relaxed); }
  std::uint64_t connections() const noexcept;

 private:
  atomic<bool> asks_for_tokens_{options.tokens.has_value()};
  atomic<std::uint64_t> intrusions_{0};        // that were not told of
  atomic<std::int64_t> intrusion_told_ms_{0};  // when the last were
};

// The text of /metrics.
void write_metrics(std::string& out, const server_state& server, const engine& jobs);

}  // namespace sluice::jobs::http
