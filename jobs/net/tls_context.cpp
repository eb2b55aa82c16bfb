#include "jobs/net/tls_context.hpp"

#include <fcntl.h>
#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>

namespace sluice::jobs::net {
namespace {

// For TLS 1.2; all ciphers of TLS 1.3 are acceptable.
constexpr const char* ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
// In the format of ALPN: each name has its length before it.
constexpr std::array<unsigned char, 9> http_1_1 = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

error unusable(std::string_view role, const std::string& file, std::string_view reason) {
  return {error_code::invalid,
          "the " + std::string(role) + " in " + file + " cannot be used: " + std::string(reason)};
}

std::string openssl_reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* const text = ERR_reason_error_string(code);
  ERR_clear_error();
  return text != nullptr ? text : "it is not in PEM format";
}

// Checked here for a clear message: OpenSSL would only report "no start line".
void_result check_readable(std::string_view role, const std::string& file) {
  const int opened = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) return unusable(role, file, std::strerror(errno));
  struct stat found {};
  const bool is_file = ::fstat(opened, &found) == 0 && S_ISREG(found.st_mode);
  ::close(opened);
  if (!is_file) return unusable(role, file, "it is not a regular file");
  if (role == "key" && (found.st_mode & 07U) != 0) {
    return unusable(role, file,
                    "every user of this machine has access to it; run: chmod o-rwx " + file);
  }
  return done{};
}

int no_password(char*, int, int, void*) {
  return 0;  // never prompts on the terminal
}

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* offered, unsigned offered_size, void*) {
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(&chosen, out_size, http_1_1.data(), http_1_1.size(),
                                          offered, offered_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

unix_time time_of(const ASN1_TIME* t) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(t, &parts) != 1) return {};
  return {std::int64_t{::timegm(&parts)} * 1000};
}

std::string subject_of(X509* certificate) {
  std::array<char, 256> text{};
  X509_NAME_oneline(X509_get_subject_name(certificate), text.data(), static_cast<int>(text.size()));
  return text.data();
}

}  // namespace

result<std::shared_ptr<const tls_context>> tls_context::load(const tls_files& files,
                                                             unix_time now) {
  if (auto found = check_readable("certificate", files.certificate); !found) return found.error();
  if (auto found = check_readable("key", files.key); !found) return found.error();
  ERR_clear_error();
  auto loaded = std::make_shared<tls_context>();
  loaded->context_.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const c = loaded->context_.get();
  if (c == nullptr) return error{error_code::io_error, "TLS cannot be used: " + openssl_reason()};
  SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(c, ciphers);
  // A close without close_notify is an end, not an error: HTTP messages carry their own length.
  SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                             SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_num_tickets(c, 0);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                          SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(c, choose_protocol, nullptr);
  SSL_CTX_set_default_passwd_cb(c, no_password);
  if (SSL_CTX_use_certificate_chain_file(c, files.certificate.c_str()) != 1) {
    return unusable("certificate", files.certificate, openssl_reason());
  }
  if (SSL_CTX_use_PrivateKey_file(c, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return unusable("key", files.key, openssl_reason());
  }
  if (SSL_CTX_check_private_key(c) != 1) {
    return unusable("key", files.key,
                    "it does not belong to the certificate in " + files.certificate);
  }
  X509* const certificate = SSL_CTX_get0_certificate(c);
  loaded->certificate_.subject = subject_of(certificate);
  loaded->certificate_.valid_until = time_of(X509_get0_notAfter(certificate));
  loaded->certificate_.is_outside_validity =
      now > loaded->certificate_.valid_until || now < time_of(X509_get0_notBefore(certificate));
  return std::shared_ptr<const tls_context>(std::move(loaded));
}

}  // namespace sluice::jobs::net
