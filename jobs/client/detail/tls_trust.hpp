#pragma once

// Whom a client believes: the authorities that certificates of servers must be signed by.

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "jobs/model/result.hpp"

namespace sluice::jobs::detail {

// Of the system, or of a file in PEM. invalid: names the file and what is wrong with it.
result<std::shared_ptr<boost::asio::ssl::context>> make_tls_trust(const std::string& ca_file);

// Before a handshake: the certificate must be for this host.
bool expect_host(SSL* connection, const std::string& host);
// Why a handshake failed, for people.
std::string handshake_failure(SSL* connection, const std::string& host,
                              const boost::system::error_code& why);

}  // namespace sluice::jobs::detail
