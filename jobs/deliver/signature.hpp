#pragma once

// Lets a receiver see that a request came from this server, is whole and is not an old one sent
// again: a signature over the time and the body, with a secret that both have.
//
//     Sluice-Signature: t=1700000000,v1=5257a869...
//
// v1 is HMAC-SHA256(secret, "<t>.<body>") in lower-case hexadecimal; t is in seconds since 1970.
// While secrets are exchanged there are several: one v1 for each, and a receiver takes any that
// fits. To verify by hand: take t and the v1s out of the header; refuse a t that is more than some
// minutes away from now; compute the HMAC over t, a dot and the body's bytes as they came (before
// any JSON is parsed); compare in constant time with every v1. docs/guides/push-delivery.md has it
// in Python and JavaScript.
//
// Guarantees: the comparison takes the same time wherever a difference is. Whatever the header is,
// the answer is a result. Limits: secrets_max secrets of secret_bytes_min to secret_bytes_max.
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

// Of a setting or a file that holds one or several, separated by commas or white space.
std::vector<std::string> split_secrets(std::string_view text);
// How many there are and how long they are; an error shows none of them.
void_result validate_secrets(const std::vector<std::string>& secrets);

// The header's value. At least one secret.
std::string sign(std::string_view body, unix_time at, const std::vector<std::string>& secrets);

// invalid: the header is none, is too old or too new, or no secret fits. Says which.
void_result verify_signature(std::string_view header, std::string_view body,
                             const std::vector<std::string>& secrets, unix_time now,
                             milliseconds tolerance = signature_tolerance);

}  // namespace sluice::jobs
