#include "jobs/deliver/signature.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"

#include <gtest/gtest.h>

#include <random>

namespace sluice::jobs::signature_test {
namespace {

using namespace std::chrono_literals;

const std::string first = "a-secret-of-enough-bytes";
const std::string second = "another-secret-of-enough-bytes";
constexpr unix_time now{1'700'000'000'000};

std::string why(const void_result& r) {
  return r ? "it was taken" : r.error().message;
}

// Computed by: printf '1700000000.{"id":1}' | openssl dgst -sha256 -hmac
// a-secret-of-enough-bytes
TEST(signature_test, EqualsThatOfOpenssl) {
  EXPECT_EQ(sign(R"({"id":1})", now, {first}),
            "t=1700000000,v1=e3e2ce6e2bcdd4030ef908c33e84f41937c27e1b6436668ace39c70689dc2e4b");
}

TEST(signature_test, VerifiesItsOwnSignature) {
  EXPECT_TRUE(verify_signature(sign("body", now, {first}), "body", {first}, now));
  EXPECT_TRUE(verify_signature(sign("", now, {first}), "", {first}, now));
}

TEST(signature_test, OneMatchingSecretIsEnoughOnEitherSide) {
  const std::string both = sign("body", now, {first, second});
  EXPECT_EQ(std::count(both.begin(), both.end(), ','), 2);
  EXPECT_TRUE(verify_signature(both, "body", {first}, now));
  EXPECT_TRUE(verify_signature(both, "body", {second}, now));
  EXPECT_TRUE(verify_signature(sign("body", now, {second}), "body", {first, second}, now));
}

TEST(signature_test, AnyChangeDoesNotMatch) {
  const std::string header = sign("body", now, {first});
  EXPECT_NE(why(verify_signature(header, "bodY", {first}, now)).find("does not match"),
            std::string::npos);
  EXPECT_NE(why(verify_signature(header, "body", {second}, now)).find("does not match"),
            std::string::npos);
  EXPECT_FALSE(verify_signature(header, "body", {}, now));
  std::string moved = header;
  moved.replace(2, 10, "1700000001");
  EXPECT_FALSE(verify_signature(moved, "body", {first}, now));
}

TEST(signature_test, TheTimeMustBeNear) {
  const std::string header = sign("body", now, {first});
  EXPECT_TRUE(verify_signature(header, "body", {first}, now + 5min));
  EXPECT_NE(why(verify_signature(header, "body", {first}, now + 5min + 1ms)).find("too old"),
            std::string::npos);
  EXPECT_NE(why(verify_signature(header, "body", {first}, now - 6min)).find("future"),
            std::string::npos);
  EXPECT_TRUE(verify_signature(header, "body", {first}, now + 1h, 2h));
}

TEST(signature_test, ABadHeaderIsNamed) {
  const auto fault = [](std::string_view header) {
    return why(verify_signature(header, "body", {first}, now));
  };
  EXPECT_NE(fault("").find("is missing"), std::string::npos);
  EXPECT_NE(fault("v1=00").find("no time"), std::string::npos);
  EXPECT_NE(fault("t=1700000000").find("no v1"), std::string::npos);
  EXPECT_NE(fault("t=x,v1=00").find("not a number"), std::string::npos);
  EXPECT_NE(fault("t=-5,v1=00").find("not a number"), std::string::npos);
  EXPECT_NE(fault("t=9223372036854775807,v1=00").find("not a number"), std::string::npos);
  EXPECT_NE(fault("t=1,t=2,v1=00").find("two times"), std::string::npos);
  EXPECT_NE(fault(std::string(5000, 'x')).find("too long"), std::string::npos);
  // An unknown version beside a known one is ignored.
  EXPECT_TRUE(verify_signature(sign("body", now, {first}) + ",v2=abc", "body", {first}, now));
}

TEST(signature_test, NoGarbageVerifies) {
  const auto seed = static_cast<unsigned>(sluice::testing::seed(sluice::testing::test_name(), 11));
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string header = sign("body", now, {first});
  for (int i = 0; i < 20'000; ++i) {
    std::string bad = header;
    for (auto n = 1 + random() % 3; n > 0; --n) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    if (bad == header) continue;
    ASSERT_FALSE(verify_signature(bad, "body", {first}, now)) << bad;
  }
}

TEST(signature_test, SplitsSeveralSecrets) {
  using list = std::vector<std::string>;
  EXPECT_EQ(split_secrets(""), list{});
  EXPECT_EQ(split_secrets(" \n"), list{});
  EXPECT_EQ(split_secrets("one"), list{"one"});
  EXPECT_EQ(split_secrets("one\ntwo\r\n"), (list{"one", "two"}));
  EXPECT_EQ(split_secrets(" one, two,three"), (list{"one", "two", "three"}));
}

TEST(signature_test, SecretsAreLongAndFew) {
  EXPECT_TRUE(validate_secrets({}));
  EXPECT_TRUE(validate_secrets({first, second}));
  const auto refused = validate_secrets({first, "short"});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("secret 2"), std::string::npos);
  EXPECT_EQ(refused.error().message.find("short"), std::string::npos);
  EXPECT_FALSE(validate_secrets({std::string(1025, 'x')}));
  EXPECT_FALSE(validate_secrets(std::vector<std::string>(9, first)));
}

}  // namespace
}  // namespace sluice::jobs::signature_test
