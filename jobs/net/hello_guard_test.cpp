#include "jobs/net/hello_guard.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sluice::jobs::net::hello_guard_test {
namespace {

std::string bytes_of(std::size_t value, int count) {
  std::string text;
  while (count-- > 0) text += static_cast<char>(value >> (8U * static_cast<unsigned>(count)));
  return text;
}
std::string record(int type, const std::string& content) {
  return bytes_of(static_cast<std::size_t>(type), 1) + "\x03\x01" + bytes_of(content.size(), 2) +
         content;
}
// A message whose head claims `claimed` bytes, followed by `sent` bytes.
std::string message(int type, std::size_t claimed, std::size_t sent) {
  return bytes_of(static_cast<std::size_t>(type), 1) + bytes_of(claimed, 3) + std::string(sent, 1);
}
std::string hello(std::size_t claimed, std::size_t sent) {
  return record(22, message(1, claimed, sent));
}
const std::string change_of_cipher = record(20, "\x01");

bool is_allowed(const std::string& bytes, bool is_tls12 = false) {
  hello_guard whole;
  hello_guard in_pieces;
  const bool allowed = whole.allows(bytes, is_tls12);
  bool allowed_in_pieces = true;
  for (const char& c : bytes)
    allowed_in_pieces = allowed_in_pieces && in_pieces.allows({&c, 1}, is_tls12);
  EXPECT_EQ(allowed, allowed_in_pieces);
  return allowed;
}

TEST(HelloGuard, AllowsAClientHelloInOneRecord) {
  EXPECT_TRUE(is_allowed(hello(517, 517)));
  EXPECT_TRUE(is_allowed(hello(16'380, 16'380)));
  EXPECT_TRUE(is_allowed(hello(517, 517) + change_of_cipher + hello(600, 600) +
                         record(23, std::string(40, 1))));
}

TEST(HelloGuard, RefusesAClientHelloThatClaimsMoreThanItsRecordHas) {
  EXPECT_FALSE(is_allowed(hello(131'000, 100)));
  EXPECT_FALSE(is_allowed(hello(101, 100)));
  EXPECT_FALSE(is_allowed(record(22, "\x01")));
  EXPECT_FALSE(is_allowed(record(22, "")));
}

TEST(HelloGuard, RefusesALongSecondClientHello) {
  EXPECT_FALSE(is_allowed(hello(517, 517) + hello(131'000, 100)));
  EXPECT_FALSE(is_allowed(hello(517, 517) + change_of_cipher + hello(131'000, 100)));
}

TEST(HelloGuard, AllowsOtherMessagesAndEncryptedRecords) {
  const std::string key_exchange = record(22, message(16, 66, 66));
  EXPECT_TRUE(is_allowed(hello(517, 517) + key_exchange + change_of_cipher, true));
  EXPECT_TRUE(is_allowed(hello(517, 517) + change_of_cipher + hello(131'000, 100), true))
      << "it is not a ClientHello but encrypted bytes";
}

TEST(HelloGuard, AllowsEveryByteAfterTheHandshake) {
  hello_guard guard;
  guard.end();
  EXPECT_TRUE(guard.allows(hello(131'000, 100), false));
}

}  // namespace
}  // namespace sluice::jobs::net::hello_guard_test
