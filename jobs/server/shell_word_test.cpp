#include "jobs/server/shell_word.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs::shell_word_test {
namespace {

TEST(ShellWord, IsUnchangedIfItNeedsNoQuotes) {
  EXPECT_EQ(shell_word("mail/high.2+x"), "mail/high.2+x");
  EXPECT_EQ(shell_word("/usr/bin/sluice"), "/usr/bin/sluice");
}

TEST(ShellWord, IsQuotedIfAShellWouldInterpretIt) {
  EXPECT_EQ(shell_word("a$b"), "'a$b'");
  EXPECT_EQ(shell_word("a;b()"), "'a;b()'");
  EXPECT_EQ(shell_word("two words"), "'two words'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace sluice::jobs::shell_word_test
