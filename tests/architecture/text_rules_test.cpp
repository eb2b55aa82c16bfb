// The text rules: the wording and the names that they count, and the wording that they accept.
#include "tests/architecture/text_rules.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace sluice::architecture::text_rules_test {
namespace {

text_counts of(std::string path, std::string text) {
  return count_text(source_file{std::move(path), std::move(text)});
}
std::size_t indirect(const std::string& text) {
  return of("sluice/low/a.cpp", text).indirect;
}
std::size_t pronouns(const std::string& text) {
  return of("sluice/low/a.cpp", text).pronouns;
}

TEST(TextRules, CountIndirectWordingInComments) {
  EXPECT_EQ(indirect("// Wakes the waiter.\n"), 0U);
  EXPECT_EQ(indirect("// Tells whoever waits.\n"), 2U);
  EXPECT_EQ(indirect("int a;  // of somebody\n"), 1U);
  EXPECT_EQ(indirect("// one\n// that waits\n"), 1U) << "a phrase may break over two lines";
  EXPECT_EQ(indirect("// one\n\n// that waits\n"), 0U);
  EXPECT_EQ(indirect("//     whoever(one, that);\n"), 0U) << "an example is code";
  EXPECT_EQ(indirect("// calls `whoever`\n"), 0U);
  EXPECT_EQ(indirect("whoever(one);\n"), 0U);
}

TEST(TextRules, AcceptTheSameWordInAnotherUse) {
  EXPECT_EQ(indirect("// Who may call it. No more than 4 items. Lists what is wrong.\n"), 0U);
  EXPECT_EQ(indirect("// There are no more.\n"), 1U);
}

TEST(TextRules, CountIndirectWordingInMessages) {
  EXPECT_EQ(indirect("f(\"expected somebody to be waiting\");\n"), 1U);
  EXPECT_EQ(indirect("f(\"somebody waits\");\n"), 0U) << "fewer than four words: not a message";
}

TEST(TextRules, CountIndirectWordingInDocuments) {
  const auto document = [](const std::string& text) { return of("docs/a.md", text).indirect; };
  EXPECT_EQ(document("It wakes those\nwho wait.\n"), 1U);
  EXPECT_EQ(document("```\nthose who wait\n```\n"), 0U);
  EXPECT_EQ(document("| whoever | `somebody` |\n"), 1U);
  EXPECT_EQ(document("[text](docs/anyone.md)\n"), 0U);
}

TEST(TextRules, CountPronounsAsNames) {
  EXPECT_EQ(pronouns("void f(const job& what, int how);\n"), 2U);
  EXPECT_EQ(pronouns("struct s { queue* to_; };\n"), 1U);
  EXPECT_EQ(pronouns("struct s { queue* to; std::vector<job> those = {}; };\n"), 2U);
  EXPECT_EQ(pronouns("const char* what() const noexcept override;\n"), 0U);
  EXPECT_EQ(pronouns("for (auto it = all.begin(); it != all.end(); ++it) use(*it);\n"), 0U);
  EXPECT_EQ(pronouns("f(job, to); return what;\n"), 0U);
}

TEST(TextRules, HaveARowForEachModule) {
  EXPECT_EQ(text_module("sluice/queue/detail/ring.hpp"), "sluice/queue");
  EXPECT_EQ(text_module("jobs/store/sqlite/a.cpp"), "jobs/store");
  EXPECT_EQ(text_module("docs/guides/a.md"), "docs");
  EXPECT_EQ(text_module("README.md"), "(root)");
}

TEST(TextBudgets, FailAboveAndBelowTheCount) {
  const text_table counts = {{"docs", {2000, 3, 0}}};
  EXPECT_EQ(to_string(check_text(counts, "# a comment\n\ndocs 3 0\n")), "");
  EXPECT_EQ(to_string(check_text(counts, "docs 2 0\n")),
            "tests/architecture/text_budgets.txt:1: 3 indirect phrases in docs, the budget is 2: "
            "name the party or the thing (CONTRIBUTING.md)\n");
  EXPECT_EQ(to_string(check_text(counts, "docs 3 1\n")),
            "tests/architecture/text_budgets.txt:1: 0 pronouns as names in docs, the budget is 1: "
            "lower the budget\n");
  EXPECT_EQ(to_string(check_text(counts, "")),
            "tests/architecture/text_budgets.txt:0: no row for docs\n");
  EXPECT_THROW((void)check_text(counts, "docs many 0\n"), std::invalid_argument);
}

TEST(TextBudgets, AreAtMostTwoInAThousandWords) {
  EXPECT_EQ(to_string(check_text({{"docs", {2000, 4, 0}}}, "docs 4 0\n")), "");
  EXPECT_EQ(to_string(check_text({{"docs", {2000, 5, 0}}}, "docs 5 0\n")),
            "tests/architecture/text_budgets.txt:1: a budget of at most 4 for docs: 2 per 1,000 "
            "words\n");
  EXPECT_EQ(to_string(check_text({{"docs", {10, 2, 0}}}, "docs 2 0\n")), "");
}

}  // namespace
}  // namespace sluice::architecture::text_rules_test
