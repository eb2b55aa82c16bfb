// The rules, on this repository.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/architecture/include_rules.hpp"
#include "tests/architecture/source_tree.hpp"
#include "tests/architecture/text_rules.hpp"
#include "tests/architecture/tidy_rules.hpp"

namespace sluice::architecture::repository_test {
namespace {

const source_tree& tree() {
  static const source_tree files = read_tree(SLUICE_SOURCE_DIR);
  return files;
}

const source_file* find(std::string_view path) {
  const auto found = std::ranges::find(tree(), path, &source_file::path);
  return found == tree().end() ? nullptr : &*found;
}

layer_table layers() {
  const source_file* table = find("cmake/layers.txt");
  if (table == nullptr) throw std::runtime_error("cmake/layers.txt was not found");
  return layer_table(table->text);
}

void expect_none(const findings& found) {
  EXPECT_TRUE(found.empty()) << "findings:\n" << to_string(found);
}

// A walk that sees no file finds nothing.
TEST(Repository, IsSeenByTheRules) {
  EXPECT_NE(find("CMakeLists.txt"), nullptr);
  EXPECT_NE(find("scripts/setup"), nullptr);
  EXPECT_NE(find("tests/architecture/repository_test.cpp"), nullptr);
  const auto headers = std::ranges::count_if(tree(), [](const source_file& file) {
    return is_header(file.path) && file.path.starts_with("sluice/");
  });
  const auto of_jobs = std::ranges::count_if(
      tree(), [](const source_file& file) { return file.path.starts_with("jobs/"); });
  EXPECT_GT(of_jobs, 0);
  std::printf("%zu files, %td of them headers of the library\n", tree().size(), headers);
  EXPECT_GT(headers, 0);
}

TEST(Repository, IncludesOnlyWhatTheLayersAllow) {
  expect_none(check_includes(tree(), layers()));
}

TEST(Repository, HasEveryPublicHeaderInItsUmbrella) {
  expect_none(check_umbrellas(tree()));
}

TEST(Repository, UsesEveryRightOfTheLayers) {
  expect_none(check_rights(tree(), layers()));
}

TEST(Repository, HasTidyForm) {
  expect_none(check_form(tree()));
}

TEST(Repository, HasFilesOfOneIdeaEach) {
  expect_none(check_size(tree()));
}

TEST(Repository, HasNothingLeftForLater) {
  expect_none(check_leftovers(tree()));
}

// Prints the counts of each module.
TEST(Repository, KeepsItsTextWithinTheBudgets) {
  const source_file* budgets = find("tests/architecture/text_budgets.txt");
  ASSERT_NE(budgets, nullptr);
  const text_table counts = count_text(tree());
  for (const auto& [module, count] : counts) {
    std::printf("%-20s %7zu words, %4zu indirect, %4zu pronouns as names\n", module.c_str(),
                count.words, count.indirect, count.pronouns);
  }
  expect_none(check_text(counts, budgets->text));
}

TEST(Repository, ReachesTheSchedulerThroughTheSeamOnly) {
  expect_none(check_seam(tree()));
}

TEST(Repository, HasNoTestThatSleeps) {
  expect_none(check_sleep(tree()));
}

}  // namespace
}  // namespace sluice::architecture::repository_test
