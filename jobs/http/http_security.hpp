#pragma once

// What the HTTP server is told about who may reach it, and what it tells about it.

#include <cstdint>
#include <string>
#include <string_view>

#include "jobs/model/time.hpp"

namespace sluice::jobs {

// PEM files: the certificate with those that it was signed with behind it, and its key.
struct tls_files {
  std::string certificate{};
  std::string key{};
};

// What a server shows to its clients.
struct tls_certificate {
  std::string subject{};
  unix_time valid_until{};
  bool is_over = false;  // or not valid yet: clients that look will refuse it
};

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
