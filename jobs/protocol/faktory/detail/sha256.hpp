#pragma once

// SHA-256 for this protocol: password hashes, and digests of long texts.

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::jobs::faktory {

std::string sha256(std::string_view bytes);  // 32 bytes
std::string to_hex(std::string_view bytes);

// Returns the expected reply to a salt, in hex: SHA-256 applied `iterations` times, first to
// password and salt, then to the previous hash. Takes about a millisecond: must not be called on an
// event loop.
std::string password_hash(std::string_view password, std::string_view salt,
                          std::uint32_t iterations);
// Returns whether the text has the form of a hash.
bool could_be_hash(std::string_view text);
// Compares in constant time.
bool is_same(std::string_view a, std::string_view b);
std::string random_salt();

}  // namespace sluice::jobs::faktory
