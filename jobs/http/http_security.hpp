#pragma once

// What the HTTP server is told about who may reach it, and what it tells about it.

#include <cstdint>
#include <string>
#include <string_view>

#include "jobs/net/tls_files.hpp"

namespace sluice::jobs {

// One request that changes something for others. The views last as long as the call that has them.
struct audit_entry {
  std::string_view who;   // the id of the token, or "local"
  std::string_view from;  // the client's address
  std::string_view act;   // "POST /v1/queues/mail/purge"
  int status = 0;         // of the answer
};

// Tokens that were not known, since this was told last; at most once a second.
struct intrusion_notice {
  std::string_view from;  // the last of them
  std::uint64_t times = 0;
};

}  // namespace sluice::jobs
