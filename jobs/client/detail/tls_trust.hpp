#pragma once

// The certificate authorities that a client trusts.

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "jobs/model/result.hpp"

namespace sluice::jobs::detail {

// Loads the system's authorities, or a PEM file. Fails with `invalid`, the file and the cause.
result<std::shared_ptr<boost::asio::ssl::context>> make_tls_trust(const std::string& ca_file);

// Sets the host that the certificate must match; call before the handshake.
bool expect_host(SSL* connection, const std::string& host);
// Returns why a handshake failed, for people.
std::string handshake_failure(SSL* connection, const std::string& host,
                              const boost::system::error_code& why);

}  // namespace sluice::jobs::detail
