// Roles and scopes.
#include "jobs/auth/token.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs::token_test {
namespace {

TEST(RoleSet, AdminIncludesTheOtherRoles) {
  const role_set admin = {role::admin};
  for (const role r : all_roles) EXPECT_TRUE(admin.allows(r));
  EXPECT_FALSE(admin.names(role::push));
  const role_set some = {role::push, role::read};
  EXPECT_TRUE(some.allows(role::push));
  EXPECT_TRUE(some.allows(role::read));
  EXPECT_FALSE(some.allows(role::work));
  EXPECT_FALSE(some.allows(role::admin));
  EXPECT_EQ(to_string(some), "push, read");
}

TEST(Role, IsFoundByItsName) {
  for (const role r : all_roles) EXPECT_EQ(role_from(to_string(r)), r);
  EXPECT_EQ(role_from("root"), std::nullopt);
  EXPECT_EQ(role_from("Push"), std::nullopt);
}

TEST(Token, WithoutQueuesCoversAll) {
  EXPECT_TRUE(token{}.covers("anything"));
}

TEST(Token, CoversNamesAndPrefixes) {
  token t;
  t.queues = {"reports", "mail-*"};
  EXPECT_TRUE(t.covers("reports"));
  EXPECT_FALSE(t.covers("reports2"));
  EXPECT_TRUE(t.covers("mail-"));
  EXPECT_TRUE(t.covers("mail-eu/1"));
  EXPECT_FALSE(t.covers("mail"));
  EXPECT_FALSE(t.covers("email-eu"));
  t.queues = {"*"};
  EXPECT_TRUE(t.covers("anything"));
}

TEST(QueuePattern, MayHaveAStarAtTheEndOnly) {
  for (const char* good : {"a", "mail-*", "*", "team/a:*"}) {
    EXPECT_TRUE(validate_queue_pattern(good)) << good;
  }
  for (const char* bad : {"", "*a", "a*b", "a**", "**", "a b", "a b*"}) {
    EXPECT_FALSE(validate_queue_pattern(bad)) << bad;
  }
}

}  // namespace
}  // namespace sluice::jobs::token_test
