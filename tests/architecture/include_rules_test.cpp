// Each rule about includes, on trees small enough to see why it objects.
#include "tests/architecture/include_rules.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace sluice::architecture::include_rules_test {
namespace {

constexpr std::string_view three_layers =
    "# a comment\n"
    "low    ->\n"
    "middle -> low\n"
    "high   -> middle, <boost>\n"
    "\n"
    "beside -> low\n"
    "jobs/model -> low\n"
    "jobs/store -> jobs/model\n"
    "jobs/store/file -> jobs/store, <sqlite3.h>\n"
    "jobs/engine -> jobs/store, high, test:jobs/store/file\n";

// A tree with one file that includes one thing, and what the rules say about it.
std::string verdict(std::string path, const std::string& included, source_tree others = {}) {
  others.push_back({std::move(path), "#pragma once\n\n#include " + included + "\n"});
  return to_string(check_includes(others, layer_table(three_layers)));
}

TEST(LayerTable, RightsAreInheritedFromBelow) {
  const layer_table layers(three_layers);
  EXPECT_TRUE(layers.may_include("high", "low"));
  EXPECT_TRUE(layers.may_include("high", "high"));
  EXPECT_FALSE(layers.may_include("low", "high"));
  EXPECT_FALSE(layers.may_include("high", "beside"));
  EXPECT_EQ(layers.allowed("high"), "low, middle");
  EXPECT_EQ(layers.allowed("low"), "nothing but itself");
}

TEST(LayerTable, RefusesARowThatNamesSomethingNotAboveIt) {
  EXPECT_THROW(layer_table("low -> high\nhigh ->\n"), std::invalid_argument);
  EXPECT_THROW(layer_table("low -> low\n"), std::invalid_argument);
}

TEST(LayerTable, RefusesTwoRowsForOneModule) {
  EXPECT_THROW(layer_table("low ->\nlow ->\n"), std::invalid_argument);
}

TEST(LayerTable, RefusesARowItCannotRead) {
  EXPECT_THROW(layer_table("low: base\n"), std::invalid_argument);
}

TEST(LayerTable, RightsOfTestsAreTheirsAlone) {
  const layer_table layers(three_layers);
  EXPECT_TRUE(layers.tests_may_include("jobs/engine", "jobs/store/file"));
  EXPECT_FALSE(layers.may_include("jobs/engine", "jobs/store/file"));
  EXPECT_FALSE(layers.tests_may_include("jobs/store", "jobs/store/file"));
  EXPECT_THROW(layer_table("low -> test:high\nhigh ->\n"), std::invalid_argument);
}

TEST(ModuleOf, IsTheFolderWithoutItsInnerFolders) {
  EXPECT_EQ(module_of("sluice/queue/bounded_queue.hpp"), "queue");
  EXPECT_EQ(module_of("sluice/queue/detail/ring.hpp"), "queue");
  EXPECT_EQ(module_of("sluice/queue/testing/kinds.hpp"), "queue");
  EXPECT_EQ(module_of("jobs/model/job.hpp"), "jobs/model");
  EXPECT_EQ(module_of("jobs/store/store.hpp"), "jobs/store");
  EXPECT_EQ(module_of("jobs/store/testing/store_suite.hpp"), "jobs/store");
  EXPECT_EQ(module_of("jobs/store/sqlite/detail/x.hpp"), "jobs/store/sqlite");
  EXPECT_EQ(module_of("jobs/detail/x.hpp"), "");
  EXPECT_EQ(module_of("jobs/x.hpp"), "");
  EXPECT_EQ(module_of("sluice/x.hpp"), "");
  EXPECT_EQ(module_of("examples/burst/burst.hpp"), "");
  EXPECT_EQ(folder_of("queue"), "sluice/queue");
  EXPECT_EQ(folder_of("jobs/store"), "jobs/store");
}

TEST(IncludeRules, AcceptWhatTheTableAllows) {
  EXPECT_EQ(verdict("sluice/middle/a.hpp", "\"sluice/low/b.hpp\""), "");
  EXPECT_EQ(verdict("sluice/middle/a.hpp", "\"sluice/middle/b.hpp\""), "");
  EXPECT_EQ(verdict("sluice/high/a.hpp", "\"sluice/low/b.hpp\""), "");
  EXPECT_EQ(verdict("sluice/low/a.hpp", "<vector>"), "");
  EXPECT_EQ(verdict("sluice/low/a.hpp", "<sys/syscall.h>"), "");
  EXPECT_EQ(verdict("sluice/low/a_test.cpp", "<gtest/gtest.h>"), "");
  EXPECT_EQ(verdict("examples/a.cpp", "\"sluice/high/b.hpp\""), "");
}

TEST(IncludeRules, ObjectToAnIncludeThatPointsUp) {
  EXPECT_EQ(verdict("sluice/middle/a.hpp", "\"sluice/high/b.hpp\""),
            "sluice/middle/a.hpp:3: includes sluice/high/b.hpp: sluice/middle may include: low\n");
}

TEST(IncludeRules, ObjectToAnIncludeOfASibling) {
  EXPECT_EQ(
      verdict("sluice/beside/a.cpp", "\"sluice/middle/b.hpp\""),
      "sluice/beside/a.cpp:3: includes sluice/middle/b.hpp: sluice/beside may include: low\n");
}

TEST(IncludeRules, ObjectToAnIncludeThatPointsUpWhicheverWayItIsWritten) {
  EXPECT_NE(verdict("sluice/low/a.hpp", "<sluice/high/b.hpp>"), "");
  EXPECT_NE(verdict("sluice/low/a_test.cpp", "\"sluice/high/b.hpp\""), "");
  const source_tree spaced = {{"sluice/low/a.hpp", "  #  include \"sluice/high/b.hpp\"\n"}};
  EXPECT_EQ(check_includes(spaced, layer_table(three_layers)).size(), 1U);
}

TEST(IncludeRules, DoNotReadCommentsOrStrings) {
  const source_tree tree = {{"sluice/low/a.hpp",
                             "// #include \"sluice/high/b.hpp\"\n"
                             "/*\n#include \"sluice/high/b.hpp\"\n*/\n"
                             "auto s = R\"(\n#include \"sluice/high/b.hpp\"\n)\";\n"}};
  EXPECT_EQ(to_string(check_includes(tree, layer_table(three_layers))), "");
}

TEST(IncludeRules, ObjectToAFolderThatIsNotInTheTable) {
  EXPECT_EQ(verdict("sluice/stray/a.hpp", "<vector>"),
            "sluice/stray/a.hpp:0: stands in no module of cmake/layers.txt\n");
  EXPECT_NE(verdict("sluice/a.hpp", "<vector>"), "");
}

TEST(IncludeRules, ObjectToDetailFromOutsideItsModule) {
  const source_tree used = {{"sluice/low/detail/b.hpp", ""},
                            {"sluice/low/a.hpp", "#include \"sluice/low/detail/b.hpp\"\n"}};
  const std::string included = "\"sluice/low/detail/b.hpp\"";
  const std::string objection =
      ":3: includes sluice/low/detail/b.hpp: only files in sluice/low/ may include its detail/\n";
  EXPECT_EQ(verdict("sluice/low/c.cpp", included, used), "");
  EXPECT_EQ(verdict("sluice/middle/c.hpp", included, used), "sluice/middle/c.hpp" + objection);
  EXPECT_EQ(verdict("fuzz/c_fuzz.cpp", included, used), "");
  EXPECT_EQ(verdict("sluice/middle/detail/c_test.cpp", included, used),
            "sluice/middle/detail/c_test.cpp" + objection);
  EXPECT_EQ(verdict("examples/c.cpp", included, used), "examples/c.cpp" + objection);
  EXPECT_EQ(verdict("tests/stress/c.cpp", included, used), "tests/stress/c.cpp" + objection);
}

TEST(IncludeRules, ShareTheDetailOfTheFoundationWithinTheLibrary) {
  const layer_table layers("base ->\nhigh -> base\njobs/model -> high\n");
  const auto verdict_of = [&](std::string path) {
    const source_tree tree = {{"sluice/base/detail/b.hpp", ""},
                              {std::move(path), "#include \"sluice/base/detail/b.hpp\"\n"}};
    return check_includes(tree, layers).size();
  };
  EXPECT_EQ(verdict_of("sluice/high/a.hpp"), 0U);
  EXPECT_EQ(verdict_of("tests/sim/a.cpp"), 0U);
  EXPECT_EQ(verdict_of("jobs/model/a.hpp"), 1U);
  EXPECT_EQ(verdict_of("examples/a.cpp"), 1U);
  EXPECT_EQ(verdict_of("docs/snippets/a.cpp"), 1U);
}

TEST(IncludeRules, ObjectToAnUmbrellaThatLeavesAHeaderOut) {
  const source_tree tree = {{"sluice/low.hpp", "#include \"sluice/low/a.hpp\"\n"},
                            {"sluice/low/a.hpp", ""},
                            {"sluice/low/b.hpp", ""},
                            {"sluice/low/detail/c.hpp", ""},
                            {"sluice/low/x_probe.hpp", ""},
                            {"sluice/lower/a.hpp", ""}};
  EXPECT_EQ(to_string(check_umbrellas(tree)),
            "sluice/low.hpp:0: does not include sluice/low/b.hpp\n");
}

TEST(IncludeRules, ObjectToARightThatNoFileUses) {
  const layer_table layers("low ->\nmiddle -> low, test:low, <boost>\n");
  const source_tree unused = {{"sluice/middle/a.hpp", "#include <vector>\n"}};
  EXPECT_EQ(to_string(check_rights(unused, layers)),
            "cmake/layers.txt:2: no file of sluice/middle includes low: delete the right\n"
            "cmake/layers.txt:2: no test of sluice/middle includes low: delete the right\n"
            "cmake/layers.txt:2: no file of sluice/middle includes boost: delete the right\n");
  const source_tree used = {
      {"sluice/middle/a.hpp", "#include <boost/x.hpp>\n#include \"sluice/low/b.hpp\"\n"},
      {"sluice/middle/a_test.cpp", "#include \"sluice/low/b.hpp\"\n"}};
  EXPECT_EQ(to_string(check_rights(used, layers)), "");
}

TEST(IncludeRules, ObjectToAnInternalHeaderThatNoFileIncludes) {
  EXPECT_EQ(verdict("sluice/low/detail/b.hpp", "<vector>"),
            "sluice/low/detail/b.hpp:0: no file includes this internal header: delete it\n");
}

TEST(IncludeRules, ObjectToTestCodeInTheLibrary) {
  EXPECT_EQ(verdict("sluice/low/a_test.cpp", "\"sluice/low/testing/b.hpp\""), "");
  EXPECT_EQ(verdict("sluice/low/a_test.cpp", "\"tests/support/b.hpp\""), "");
  EXPECT_NE(verdict("sluice/low/a.hpp", "\"sluice/low/testing/b.hpp\""), "");
  EXPECT_NE(verdict("sluice/low/a.hpp", "\"tests/support/b.hpp\""), "");
}

TEST(IncludeRules, ObjectToBenchmarksAndExamplesInTheLibrary) {
  EXPECT_EQ(verdict("sluice/low/a_bench.cpp", "\"benchmarks/b.hpp\""), "");
  EXPECT_NE(verdict("sluice/low/a.hpp", "\"benchmarks/b.hpp\""), "");
  EXPECT_NE(verdict("sluice/low/a.hpp", "\"examples/b.hpp\""), "");
}

TEST(IncludeRules, ObjectToAPathThatIsNotFromTheRoot) {
  EXPECT_NE(verdict("sluice/low/a.hpp", "\"b.hpp\""), "");
  EXPECT_NE(verdict("sluice/low/a.hpp", "\"../middle/b.hpp\""), "");
}

TEST(IncludeRules, ObjectToALibraryThatTheRowDoesNotName) {
  EXPECT_EQ(verdict("sluice/high/a.hpp", "<boost/asio.hpp>"), "");
  EXPECT_EQ(verdict("sluice/middle/a.hpp", "<boost/asio.hpp>"),
            "sluice/middle/a.hpp:3: includes boost/asio.hpp: sluice/middle may not use another "
            "library: its row of cmake/layers.txt does not name <boost>\n");
}

TEST(IncludeRules, HoldForTheJobServer) {
  EXPECT_EQ(verdict("jobs/engine/a.hpp", "\"jobs/store/b.hpp\""), "");
  EXPECT_EQ(verdict("jobs/engine/a.hpp", "\"sluice/low/b.hpp\""), "");
  EXPECT_EQ(verdict("jobs/store/file/a.cpp", "\"jobs/model/b.hpp\""), "");
  EXPECT_EQ(verdict("jobs/store/a.hpp", "\"jobs/engine/b.hpp\""),
            "jobs/store/a.hpp:3: includes jobs/engine/b.hpp: jobs/store may include: jobs/model, "
            "low\n");
  EXPECT_NE(verdict("jobs/store/a.hpp", "\"jobs/store/file/b.hpp\""), "")
      << "a folder inside a module is a module of its own";
  EXPECT_EQ(verdict("jobs/stray/a.hpp", "<vector>"),
            "jobs/stray/a.hpp:0: stands in no module of cmake/layers.txt\n");
  EXPECT_NE(verdict("jobs/a.hpp", "<vector>"), "");
}

TEST(IncludeRules, ObjectToTheLibraryIncludingTheJobServer) {
  EXPECT_EQ(verdict("sluice/high/a.hpp", "\"jobs/model/b.hpp\""),
            "sluice/high/a.hpp:3: includes jobs/model/b.hpp: sluice/high may include: low, "
            "middle\n");
  EXPECT_NE(verdict("sluice/high/a_test.cpp", "\"jobs/model/b.hpp\""), "");
}

TEST(IncludeRules, LetTestsIncludeWhatTheirRowGivesToTests) {
  EXPECT_EQ(verdict("jobs/engine/a_test.cpp", "\"jobs/store/file/b.hpp\""), "");
  EXPECT_EQ(verdict("jobs/engine/testing/a.hpp", "\"jobs/store/file/b.hpp\""), "");
  EXPECT_NE(verdict("jobs/engine/a.cpp", "\"jobs/store/file/b.hpp\""), "");
  EXPECT_NE(verdict("jobs/store/a_test.cpp", "\"jobs/store/file/b.hpp\""), "");
}

TEST(IncludeRules, KeepADetailFromTheModulesBelowItsFolder) {
  const source_tree used = {{"jobs/store/detail/b.hpp", ""},
                            {"jobs/store/a.hpp", "#include \"jobs/store/detail/b.hpp\"\n"}};
  const std::string included = "\"jobs/store/detail/b.hpp\"";
  EXPECT_EQ(verdict("jobs/store/c.cpp", included, used), "");
  EXPECT_EQ(verdict("jobs/store/file/c.cpp", included, used),
            "jobs/store/file/c.cpp:3: includes jobs/store/detail/b.hpp: only files in jobs/store/ "
            "may include its detail/\n");
}

TEST(IncludeRules, KnowALibraryWhoseHeaderHasNoFolder) {
  EXPECT_EQ(verdict("jobs/store/file/a.cpp", "<sqlite3.h>"), "");
  EXPECT_EQ(verdict("jobs/engine/a.cpp", "<unistd.h>"), "");
  EXPECT_EQ(verdict("jobs/engine/a.cpp", "<sqlite3.h>"),
            "jobs/engine/a.cpp:3: includes sqlite3.h: jobs/engine may not use another library: its "
            "row of cmake/layers.txt does not name <sqlite3.h>\n");
}

}  // namespace
}  // namespace sluice::architecture::include_rules_test
