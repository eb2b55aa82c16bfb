#include "jobs/client/detail/tls_trust.hpp"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <boost/asio/ip/address.hpp>

namespace sluice::jobs::detail {

namespace ssl = boost::asio::ssl;
using boost_error = boost::system::error_code;

result<std::shared_ptr<ssl::context>> make_tls_trust(const std::string& ca_file) {
  auto trust = std::make_shared<ssl::context>(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(trust->native_handle(), TLS1_2_VERSION);
  boost_error ec;
  trust->set_verify_mode(ssl::verify_peer, ec);
  if (ec) return error{error_code::io_error, "cannot set up TLS: " + ec.message()};
  if (ca_file.empty()) {
    trust->set_default_verify_paths(ec);
  } else {
    trust->load_verify_file(ca_file, ec);
  }
  if (ec) {
    return error{error_code::invalid, "cannot read certificate authorities from " +
                                          (ca_file.empty() ? std::string("the system") : ca_file) +
                                          ": " + ec.message() + " (expected certificates in PEM)"};
  }
  return trust;
}

bool expect_host(SSL* connection, const std::string& host) {
  boost_error not_an_address;
  boost::asio::ip::make_address(host, not_an_address);
  if (!not_an_address) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(connection), host.c_str()) == 1;
  }
  SSL_set_hostflags(connection, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set1_host(connection, host.c_str()) == 1 &&
         // SSL_set_tlsext_host_name, without its cast.
         SSL_ctrl(connection, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                  const_cast<char*>(host.c_str())) == 1;
}

std::string handshake_failure(SSL* connection, const std::string& host, const boost_error& why) {
  const long verified = SSL_get_verify_result(connection);
  if (verified == X509_V_OK) {
    const bool speaks_no_tls =
        ERR_GET_REASON(static_cast<unsigned long>(why.value())) == SSL_R_WRONG_VERSION_NUMBER;
    return why.message() + (speaks_no_tls ? "; use http:// if the server has no TLS" : "");
  }
  std::string text = "the server's certificate is not trusted: ";
  text += X509_verify_cert_error_string(verified);
  switch (verified) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return text + " (it is not for " + host + ")";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return text + " (set ca_file or SLUICE_CA_FILE to the authority that signed it)";
    default:
      return text;
  }
}

}  // namespace sluice::jobs::detail
