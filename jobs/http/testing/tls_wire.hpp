#pragma once

// A `wire` with TLS that accepts any certificate.

#include <openssl/ssl.h>

#include <array>
#include <csignal>
#include <memory>
#include <string>

#include "jobs/http/testing/wire.hpp"

namespace sluice::jobs::testing {

class tls_wire : public wire {
 public:
  struct options {
    int version_max = 0;      // zero: any
    std::string protocols{};  // ALPN, each with its length before it
  };

  explicit tls_wire(std::uint16_t port) : tls_wire(port, options{}) {}
  tls_wire(std::uint16_t port, const options& o)
      : wire(port), context_(SSL_CTX_new(TLS_client_method())) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
    SSL_CTX_set_options(context_.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
    // Allows versions below 1.2 with their weak ciphers, to test that the server refuses them.
    SSL_CTX_set_security_level(context_.get(), 0);
    SSL_CTX_set_min_proto_version(context_.get(), 0);
    SSL_CTX_set_max_proto_version(context_.get(), o.version_max);
    ssl_.reset(SSL_new(context_.get()));
    if (!o.protocols.empty()) {
      SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(o.protocols.data()),
                          static_cast<unsigned>(o.protocols.size()));
    }
    SSL_set_fd(ssl_.get(), socket());
    is_secure_ = uninterrupted([&] { return SSL_connect(ssl_.get()); }) == 1;
  }

  bool is_secure() const { return is_secure_; }
  std::string version() const { return SSL_get_version(ssl_.get()); }
  std::string protocol() const {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }
  // Returns the common name of the server's certificate.
  std::string shown() const {
    std::array<char, 128> text{};
    X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_get0_peer_certificate(ssl_.get())),
                              NID_commonName, text.data(), static_cast<int>(text.size()));
    return text.data();
  }

 protected:
  ssize_t send_some(std::string_view bytes) override {
    return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
  }
  ssize_t receive_some(char* into, std::size_t size) override {
    const int n = SSL_read(ssl_.get(), into, static_cast<int>(size));
    return n > 0 || SSL_get_error(ssl_.get(), n) != SSL_ERROR_ZERO_RETURN ? n : 0;
  }

 private:
  struct freer {
    void operator()(SSL_CTX* c) const { SSL_CTX_free(c); }
    void operator()(SSL* s) const { SSL_free(s); }
  };
  std::unique_ptr<SSL_CTX, freer> context_;
  std::unique_ptr<SSL, freer> ssl_;
  bool is_secure_ = false;
};

}  // namespace sluice::jobs::testing
