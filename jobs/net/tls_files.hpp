#pragma once

// The certificate of a server: its files, and the facts that are reported about it.

#include <string>

#include "jobs/model/time.hpp"

namespace sluice::jobs {

// PEM files: the certificate followed by its chain, and the private key.
struct tls_files {
  std::string certificate{};
  std::string key{};
};

// The certificate that a server presents to its clients.
struct tls_certificate {
  std::string subject{};
  unix_time valid_until{};
  bool is_outside_validity = false;  // expired or not valid yet: clients that verify it refuse it
};

}  // namespace sluice::jobs
