#pragma once

// Creates self-signed certificates for tests, with a given name and validity.
//
//     const auto files = make_certificate(folder, "server", {.names = "DNS:localhost"});

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <string>

#include "jobs/http/http_security.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::testing {

struct certificate_options {
  std::string names = "DNS:localhost,IP:127.0.0.1";
  long valid_from_seconds = -3600;  // from now
  long valid_until_seconds = 3600;
};

namespace detail {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
struct closed_file {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using file_ptr = std::unique_ptr<std::FILE, closed_file>;
using key_ptr = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using x509_ptr = std::unique_ptr<X509, freed_by<X509_free>>;

inline void add_extension(X509* certificate, int which, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, freed_by<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, which, value.c_str()));
  ASSERT_NE(extension, nullptr) << value;
  ASSERT_EQ(X509_add_ext(certificate, extension.get(), -1), 1);
}

}  // namespace detail

// Writes NAME.pem and NAME.key.
inline tls_files make_certificate(const sluice::testing::temporary_folder& in,
                                  const std::string& name, const certificate_options& o = {}) {
  const detail::key_ptr key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  const detail::x509_ptr made(X509_new());
  X509_set_version(made.get(), 2);
  static long serial = 1;
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), o.valid_from_seconds);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), o.valid_until_seconds);
  X509_set_pubkey(made.get(), key.get());
  X509_NAME* const subject = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made.get(), subject);
  detail::add_extension(made.get(), NID_basic_constraints, "critical,CA:TRUE");
  detail::add_extension(made.get(), NID_subject_alt_name, o.names);
  EXPECT_GT(X509_sign(made.get(), key.get(), EVP_sha256()), 0);

  tls_files files{in.file(name + ".pem"), in.file(name + ".key")};
  const detail::file_ptr certificate(std::fopen(files.certificate.c_str(), "w"));
  const detail::file_ptr secret(std::fopen(files.key.c_str(), "w"));
  EXPECT_EQ(PEM_write_X509(certificate.get(), made.get()), 1);
  EXPECT_EQ(PEM_write_PrivateKey(secret.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr),
            1);
  EXPECT_EQ(::chmod(files.key.c_str(), 0600), 0);
  return files;
}

}  // namespace sluice::jobs::testing
