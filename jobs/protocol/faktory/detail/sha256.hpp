#pragma once

// What of SHA-256 this protocol needs: the hash of a password, and a short name for a long text.

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::jobs::faktory {

std::string sha256(std::string_view bytes);  // 32 bytes
std::string to_hex(std::string_view bytes);

// What a client that knows the password answers to a salt: the hash is taken `iterations` times,
// first of the password and the salt, then of the hash itself. In hex. Takes about a millisecond:
// not for a thread that others wait for.
std::string password_hash(std::string_view password, std::string_view salt,
                          std::uint32_t iterations);
// Whether it looks like one.
bool could_be_hash(std::string_view text);
// Takes as long whichever byte differs.
bool is_same(std::string_view a, std::string_view b);
std::string random_salt();

}  // namespace sluice::jobs::faktory
