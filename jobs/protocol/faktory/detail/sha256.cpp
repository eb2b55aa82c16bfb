#include "jobs/protocol/faktory/detail/sha256.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>

#include "sluice/base/check.hpp"

namespace sluice::jobs::faktory {

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  const int made =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  check(made == 1 && size == digest.size(), "sluice::jobs::faktory::sha256", "a hash");
  return {digest.begin(), digest.end()};
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
  }
  return out;
}

std::string password_hash(std::string_view password, std::string_view salt,
                          std::uint32_t iterations) {
  std::string hash = std::string(password) + std::string(salt);
  for (std::uint32_t i = 0; i < iterations; ++i) hash = sha256(hash);
  return to_hex(hash);
}

bool is_same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_salt() {
  std::array<unsigned char, 16> bytes{};
  check(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1,
        "sluice::jobs::faktory::random_salt", "random bytes");
  return to_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace sluice::jobs::faktory
