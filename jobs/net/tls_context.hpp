#pragma once

// The TLS settings of a server: certificate and key; TLS 1.2 and 1.3; forward secrecy only.
//
// Each connection keeps the context that it began with, so a new certificate applies to new
// connections only.

#include <openssl/ssl.h>

#include <memory>

#include "jobs/model/result.hpp"
#include "jobs/net/tls_files.hpp"

namespace sluice::jobs::net {

class tls_context {
 public:
  // Loads the files. Fails with `invalid`; the message names the file and the reason.
  static result<std::shared_ptr<const tls_context>> load(const tls_files& files, unix_time now);

  SSL_CTX* get() const noexcept { return context_.get(); }
  const tls_certificate& certificate() const noexcept { return certificate_; }

 private:
  struct freer {
    void operator()(SSL_CTX* c) const noexcept { SSL_CTX_free(c); }
  };

  std::unique_ptr<SSL_CTX, freer> context_;
  tls_certificate certificate_;
};

}  // namespace sluice::jobs::net
