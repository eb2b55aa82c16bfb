#include "jobs/protocol/faktory/detail/sha256.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <memory>

#include "sluice/base/check.hpp"

namespace sluice::jobs::faktory {
namespace {

// One context for consecutive hashes: creating one takes longer than a hash.
class hasher {
 public:
  std::string hash(std::string_view bytes) {
    std::string digest(32, '\0');
    unsigned size = 0;
    const bool made =
        EVP_DigestInit_ex(context_.get(), algorithm(), nullptr) == 1 &&
        EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1 &&
        EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()),
                           &size) == 1;
    check(made && size == digest.size(), "sluice::jobs::faktory::sha256", "a hash");
    return digest;
  }

 private:
  // Fetched once: the library would fetch it for every hash.
  static const EVP_MD* algorithm() {
    static const EVP_MD* const found = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    return found;
  }

  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{EVP_MD_CTX_new(),
                                                                         &EVP_MD_CTX_free};
};

}  // namespace

std::string sha256(std::string_view bytes) {
  return hasher().hash(bytes);
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
  hasher h;
  for (std::uint32_t i = 0; i < iterations; ++i) hash = h.hash(hash);
  return to_hex(hash);
}

bool could_be_hash(std::string_view text) {
  constexpr std::size_t digits = 64;
  return text.size() == digits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
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
