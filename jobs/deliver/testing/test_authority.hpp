#pragma once

// A temporary certificate authority for tests, and certificates issued by it; the project contains
// no file with trusted keys.
//
//     test_authority ca(folder.path() / "ca.pem");
//     receiver to(script, ca.server_for("DNS:localhost,IP:127.0.0.1"));

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/check.hpp"

namespace sluice::jobs::testing {

class test_authority {
 public:
  explicit test_authority(std::string pem_file) : file_(std::move(pem_file)) {
    key_ = make_key();
    certificate_ = make(key_.get(), "Test authority", {}, nullptr);
    FILE* const out = std::fopen(file_.c_str(), "w");
    check(out != nullptr && PEM_write_X509(out, certificate_.get()) == 1, "test", "a file");
    std::fclose(out);
  }

  const std::string& file() const { return file_; }

  // `names` as in the extension: "DNS:localhost,IP:127.0.0.1".
  SSL_CTX* server_for(const std::string& names) {
    const pkey key = make_key();
    const x509 made = make(key.get(), "Test server", names, this);
    contexts_.emplace_back(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
    SSL_CTX* const context = contexts_.back().get();
    check(SSL_CTX_use_certificate(context, made.get()) == 1 &&
              SSL_CTX_use_PrivateKey(context, key.get()) == 1,
          "test", "a certificate and its key");
    return context;
  }

 private:
  using pkey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using x509 = std::unique_ptr<X509, decltype(&X509_free)>;

  static pkey make_key() {
    const char* const curve = "P-256";  // a variable: the macro casts its argument
    return pkey(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", curve), EVP_PKEY_free);
  }

  static void add(X509* certificate, int kind, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* const made = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
    check(made != nullptr && X509_add_ext(certificate, made, -1) == 1, "test", "an extension");
    X509_EXTENSION_free(made);
  }

  // Signed by `by`; null: self-signed.
  static x509 make(EVP_PKEY* key, const char* name, const std::string& names, test_authority* by) {
    x509 made(X509_new(), X509_free);
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), by == nullptr ? 1 : 2);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 24L * 3600);
    X509_set_pubkey(made.get(), key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
    X509* const issuer = by == nullptr ? made.get() : by->certificate_.get();
    X509_set_issuer_name(made.get(), X509_get_subject_name(issuer));
    add(made.get(), NID_basic_constraints, by == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
    if (by == nullptr) add(made.get(), NID_key_usage, "critical,keyCertSign");
    if (!names.empty()) add(made.get(), NID_subject_alt_name, names);
    check(X509_sign(made.get(), by == nullptr ? key : by->key_.get(), EVP_sha256()) > 0, "test",
          "a signature");
    return made;
  }

  const std::string file_;
  pkey key_{nullptr, EVP_PKEY_free};
  x509 certificate_{nullptr, X509_free};
  std::vector<std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>> contexts_;
};

}  // namespace sluice::jobs::testing
