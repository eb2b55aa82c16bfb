#pragma once

// Queues of the server's own jobs, such as webhooks to post.
//
// Their jobs run in the server's name, so protocols without authentication do not allow clients to
// push to these queues, lease from them or change their jobs.

#include <string_view>

namespace sluice::jobs {

inline constexpr std::string_view own_queue_prefix = "sluice/";

constexpr bool is_servers_own(std::string_view queue) noexcept {
  return queue.starts_with(own_queue_prefix);
}

}  // namespace sluice::jobs
