#pragma once

// Which queues the server keeps what it has to do itself in, such as webhooks that it has to post.
//
// What is in them is done in the server's name, so that protocols which ask nobody who they are let
// no client push there, take from there or change what is there.

#include <string_view>

namespace sluice::jobs {

inline constexpr std::string_view own_queue_prefix = "sluice/";

constexpr bool is_servers_own(std::string_view queue) noexcept {
  return queue.starts_with(own_queue_prefix);
}

}  // namespace sluice::jobs
