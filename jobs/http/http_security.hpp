#pragma once

// Reports of the HTTP server about access: audited requests, and unknown tokens.

#include <cstdint>
#include <string>
#include <string_view>

#include "jobs/net/tls_files.hpp"

namespace sluice::jobs {

// An audited request: one with effects for other clients. The views are valid during the callback.
struct audit_entry {
  std::string_view who;   // the id of the token, or "local"
  std::string_view from;  // the client's address
  std::string_view act;   // "POST /v1/queues/mail/purge"
  int status = 0;         // of the reply
};

// Requests with unknown tokens since the previous notice. At most one notice a second.
struct intrusion_notice {
  std::string_view from;  // address of the last such client
  std::uint64_t times = 0;
};

}  // namespace sluice::jobs
