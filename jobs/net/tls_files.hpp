#pragma once

// What a server is told to show of itself over TLS, and what that says.

#include <string>

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

}  // namespace sluice::jobs
