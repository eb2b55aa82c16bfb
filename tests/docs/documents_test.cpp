#include "tests/docs/documents.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

namespace sluice::documents::documents_test {
namespace {

const source_tree& repository() {
  static const source_tree files = architecture::read_tree(SLUICE_SOURCE_DIR);
  return files;
}

template <class F>
void for_each_document(F visit) {
  for (const source_file& file : repository()) {
    if (file.path.ends_with(".md")) visit(file);
  }
}

TEST(Documents, QuoteOnlyCodeThatIsCompiled) {
  std::size_t quotes = 0;
  for_each_document([&](const source_file& file) {
    for (const block& b : blocks_of(file.text)) quotes += b.language == "cpp" ? 1U : 0U;
  });
  std::printf("%zu quotes of C++\n", quotes);
  EXPECT_GT(quotes, 0U);
  const auto found = check_quotes(repository());
  EXPECT_TRUE(found.empty()) << to_string(found);
}

TEST(PublicHeaders, ShowOnlyExamplesThatAreCompiled) {
  std::size_t examples = 0;
  for (const source_file& file : repository()) {
    if (is_public_header(file.path)) examples += examples_of(file.text).size();
  }
  std::printf("%zu examples in headers\n", examples);
  EXPECT_GT(examples, 0U);
  const auto found = check_header_examples(repository());
  EXPECT_TRUE(found.empty()) << to_string(found);
}

TEST(Documents, LinkToExistingFiles) {
  findings found;
  for_each_document([&](const source_file& file) {
    for (const link& l : links_of(file.text)) {
      if (l.target.empty()) continue;
      const auto path = std::filesystem::path(SLUICE_SOURCE_DIR) / resolve(file.path, l.target);
      if (!std::filesystem::exists(path)) {
        found.push_back({file.path, l.line, "a link to " + l.target + ", which does not exist"});
      }
    }
  });
  EXPECT_TRUE(found.empty()) << to_string(found);
}

TEST(Documents, NameExistingTests) {
  const auto found = check_named_tests(repository());
  EXPECT_TRUE(found.empty()) << to_string(found);
}

TEST(Documents, AreAllInTheIndex) {
  std::set<std::string> listed;
  for_each_document([&](const source_file& file) {
    if (file.path != "docs/README.md") return;
    for (const link& l : links_of(file.text)) listed.insert(resolve(file.path, l.target));
  });
  for_each_document([&](const source_file& file) {
    if (!file.path.starts_with("docs/") || file.path == "docs/README.md") return;
    EXPECT_TRUE(listed.contains(file.path)) << file.path << " is not in docs/README.md";
  });
}

constexpr std::string_view program = "int main() {\n  if (a) {\n    b();\n\n    c();\n  }\n}\n";

TEST(Quote, MayBeIndentedLess) {
  EXPECT_TRUE(is_quoted_from({"if (a) {", "  b();"}, program));
  EXPECT_TRUE(is_quoted_from({"b();", "", "c();"}, program));
  EXPECT_TRUE(is_quoted_from({"  }", "}"}, program));
}

TEST(Quote, MayNotDifferInAnythingElse) {
  EXPECT_FALSE(is_quoted_from({"b();", "c();"}, program));      // the empty line is missing
  EXPECT_FALSE(is_quoted_from({"if (a) {", "b();"}, program));  // another shape
  EXPECT_FALSE(is_quoted_from({"(a) {"}, program));             // half a line
  EXPECT_FALSE(is_quoted_from({"b();", "", "d();"}, program));  // another call
  EXPECT_FALSE(is_quoted_from({"c();", "", "}", "}", "}"}, program));
}

TEST(Quote, IsSearchedForInExamplesAndSnippetsOnly) {
  const source_tree tree = {{"README.md", "```cpp\nrun();\n```\n"},
                            {"sluice/base/x.cpp", "run();\n"}};
  EXPECT_EQ(check_quotes(tree).size(), 1U);
  const source_tree quoted = {{"README.md", "```cpp\nrun();\n```\n"},
                              {"examples/x.cpp", "  run();\n"}};
  EXPECT_TRUE(check_quotes(quoted).empty());
}

constexpr std::string_view header =
    "#pragma once\n\n// Purpose.\n//     no example: text\n//\n//     a();\n//     b();\n"
    "//\n//     c();\n\n#include <x>\n//\n//     no example: another comment\n";

TEST(HeaderExample, IsAnIndentedParagraphOfTheFirstComment) {
  const auto examples = examples_of(header);
  ASSERT_EQ(examples.size(), 2U);
  EXPECT_EQ(examples[0].lines, (std::vector<std::string_view>{"a();", "b();"}));
  EXPECT_EQ(examples[0].line, 6U);
  EXPECT_EQ(examples[1].lines, (std::vector<std::string_view>{"c();"}));
}

TEST(HeaderExample, MustBeCompiled) {
  const source_file of_user = {"sluice/base/x.hpp", std::string(header)};
  const source_tree quoted = {of_user, {"docs/snippets/headers/x.cpp", "  a();\n  b();\n c();\n"}};
  EXPECT_TRUE(check_header_examples(quoted).empty());
  const source_tree changed = {of_user, {"docs/snippets/headers/x.cpp", "  a();\n  c();\n"}};
  const auto found = check_header_examples(changed);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].path, "sluice/base/x.hpp");
  EXPECT_EQ(found[0].line, 6U);
}

TEST(HeaderExample, IsNotRequiredOfInternalHeaders) {
  EXPECT_TRUE(is_public_header("sluice/base/x.hpp"));
  EXPECT_FALSE(is_public_header("sluice/base/detail/x.hpp"));
  EXPECT_FALSE(is_public_header("sluice/queue/testing/x.hpp"));
  EXPECT_FALSE(is_public_header("jobs/model/job.hpp"));
}

TEST(Link, IsRelativeToItsDocument) {
  const auto links = links_of("see [a](../x/y.md#part), [b](https://a.b/c) and [c](#here)\n");
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(resolve("docs/guides/g.md", links[0].target), "docs/x/y.md");
  EXPECT_EQ(links[1].target, "");
}

source_tree with_table(const std::string& rows) {
  return {{"docs/x.md", "| what | tests |\n|---|---|\n" + rows},
          {"sluice/x/x_test.cpp", "TEST(x_test, IsThere) {}\nTEST_F(x_test,\n       IsToo) {}\n"},
          {"tests/compile_errors/wrong.cpp", "int main() {}\n"}};
}

TEST(NamedTest, IsSearchedForInTheSources) {
  EXPECT_TRUE(check_named_tests(with_table("| a | `IsThere`, `IsToo` |\n")).empty());
  EXPECT_TRUE(check_named_tests(with_table("| a | `CompileError.wrong` |\n")).empty());
  const auto found = check_named_tests(with_table("| a | `IsThere`, `IsGone` |\n"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].line, 3U);
  EXPECT_EQ(check_named_tests(with_table("| a | `CompileError.right` |\n")).size(), 1U);
}

TEST(NamedTest, IsInEveryRow) {
  EXPECT_EQ(check_named_tests(with_table("| `IsThere` | it is clear |\n")).size(), 1U);
}

TEST(NamedTest, IsNotRequiredByOtherTables) {
  const source_tree tree = {{"docs/x.md", "| for tests or not | |\n|---|---|\n"},
                            {"docs/y.md", "| a | b |\n|---|---|\n| `tests` | `c` |\n"}};
  EXPECT_TRUE(check_named_tests(tree).empty());
}

}  // namespace
}  // namespace sluice::documents::documents_test
