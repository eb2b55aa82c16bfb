#pragma once

// Signs requests so that a receiver can verify that a request is from this server, unmodified and
// recent: an HMAC over the time and the body with a shared secret.
//
//     Sluice-Signature: t=1700000000,v1=5257a869...
//
// v1 is HMAC-SHA256(secret, "<t>.<body>") in lower-case hexadecimal; t is in seconds since 1970.
// During a rotation of secrets there is one v1 per secret, and a receiver accepts any that matches.
// To verify: take t and every v1 from the header; reject a t that differs from the current time by
// more than some minutes; compute the HMAC over t, a dot and the body's bytes as received (before
// JSON parsing); compare in constant time with every v1. docs/guides/push-delivery.md has this in
// Python and JavaScript.
//
// Guarantees: the comparison takes constant time. Any header is handled: invalid ones return an
// error. Limits: secrets_max secrets of secret_bytes_min to secret_bytes_max bytes.
//
//     const std::string header = sign(body, time.now(), {"whsec_..."});
//     if (auto fine = verify_signature(header, body, secrets, time.now()); !fine) return 401;

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs {

inline constexpr std::size_t secrets_max = 8;
inline constexpr std::size_t secret_bytes_min = 16;
inline constexpr std::size_t secret_bytes_max = 1024;
inline constexpr milliseconds signature_tolerance{5 * 60 * 1000};

// Splits a setting or a file with several secrets at commas and white space.
std::vector<std::string> split_secrets(std::string_view text);
// Checks the number of secrets and their lengths; the error contains no secret.
void_result validate_secrets(const std::vector<std::string>& secrets);

// Returns the header's value. Requires at least one secret.
std::string sign(std::string_view body, unix_time at, const std::vector<std::string>& secrets);

// Fails with `invalid` and the cause: a malformed header, a time too far away, or no matching
// secret.
void_result verify_signature(std::string_view header, std::string_view body,
                             const std::vector<std::string>& secrets, unix_time now,
                             milliseconds tolerance = signature_tolerance);

}  // namespace sluice::jobs
