#include "jobs/deliver/signature.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "sluice/base/check.hpp"

namespace sluice::jobs {
namespace {

constexpr std::size_t header_bytes_max = 4096;
constexpr std::size_t hex_bytes = 64;

std::string signed_text(std::string_view seconds, std::string_view body) {
  std::string text;
  text.reserve(seconds.size() + 1 + body.size());
  text.append(seconds).append(".").append(body);
  return text;
}

std::string hmac_hex(std::string_view text, std::string_view secret) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const unsigned char* const made =
      HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  check(made != nullptr && size * 2 == hex_bytes, "sluice::jobs::sign", "an HMAC-SHA256");
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += digits[digest[i] >> 4U];
    hex += digits[digest[i] & 15U];
  }
  return hex;
}

bool is_same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

struct signature_header {
  std::string_view seconds;
  std::int64_t at = 0;
  std::vector<std::string_view> v1;
};

result<signature_header> read_header(std::string_view text) {
  if (text.empty()) return invalid_error("the signature is missing");
  if (text.size() > header_bytes_max) return invalid_error("the signature is too long");
  signature_header header;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    while (part.starts_with(' ')) part.remove_prefix(1);
    if (part.starts_with("t=")) {
      if (!header.seconds.empty()) return invalid_error("the signature has two times");
      header.seconds = part.substr(2);
      const char* const end = header.seconds.data() + header.seconds.size();
      const auto [stopped, failed] = std::from_chars(header.seconds.data(), end, header.at);
      if (failed != std::errc() || stopped != end || header.at < 0 ||
          header.at > std::int64_t{1} << 40) {
        return invalid_error("the time of the signature (t) is not a number of seconds");
      }
    } else if (part.starts_with("v1=")) {
      header.v1.push_back(part.substr(3));
    }  // other versions are ignored
  }
  if (header.seconds.empty()) return invalid_error("the signature has no time (t)");
  if (header.v1.empty()) return invalid_error("the signature has no v1");
  return header;
}

}  // namespace

std::vector<std::string> split_secrets(std::string_view text) {
  static constexpr std::string_view between = ", \t\r\n";
  std::vector<std::string> secrets;
  while (true) {
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(between)));
    if (text.empty()) return secrets;
    secrets.emplace_back(text.substr(0, text.find_first_of(between)));
    text.remove_prefix(secrets.back().size());
  }
}

void_result validate_secrets(const std::vector<std::string>& secrets) {
  if (secrets.size() > secrets_max) {
    return invalid_error("more than " + std::to_string(secrets_max) + " secrets");
  }
  for (std::size_t i = 0; i < secrets.size(); ++i) {
    if (secrets[i].size() >= secret_bytes_min && secrets[i].size() <= secret_bytes_max) continue;
    return invalid_error("secret " + std::to_string(i + 1) + " must have from " +
                         std::to_string(secret_bytes_min) + " to " +
                         std::to_string(secret_bytes_max) +
                         " bytes; create one with `openssl rand -hex 32`");
  }
  return done{};
}

std::string sign(std::string_view body, unix_time at, const std::vector<std::string>& secrets) {
  check(!secrets.empty(), "sluice::jobs::sign", "at least one secret");
  const std::string seconds = std::to_string(at.ms / 1000);
  const std::string text = signed_text(seconds, body);
  std::string header = "t=" + seconds;
  for (const std::string& secret : secrets) header += ",v1=" + hmac_hex(text, secret);
  return header;
}

void_result verify_signature(std::string_view header, std::string_view body,
                             const std::vector<std::string>& secrets, unix_time now,
                             milliseconds tolerance) {
  const auto read = read_header(header);
  if (!read) return read.error();
  const milliseconds away = now - unix_time{read->at * 1000};
  if (away > tolerance) return invalid_error("the signature is too old");
  if (away < -tolerance)
    return invalid_error("the time of the signature is in the future: check the clocks");
  const std::string text = signed_text(read->seconds, body);
  bool matches = false;
  for (const std::string& secret : secrets) {
    const std::string expected = hmac_hex(text, secret);
    for (const std::string_view v1 : read->v1) matches = is_same(expected, v1) || matches;
  }
  if (!matches)
    return invalid_error("the signature does not match: the body or the secret differs");
  return done{};
}

}  // namespace sluice::jobs
