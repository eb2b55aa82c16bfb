// cmake/layers.txt as a value: the modules that each module may include.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::architecture {

class layer_table {
 public:
  // Throws std::invalid_argument with the line if the text is not a table: a row that cannot be
  // read, a module with two rows, or a row that names a module with no row above it.
  explicit layer_table(std::string_view text);

  bool has(std::string_view module) const;
  const std::vector<std::string>& modules() const { return modules_; }

  // Inherited rights included; a module may always include itself.
  bool may_include(std::string_view module, std::string_view other) const;

  // Modules that only the tests of a module may include.
  bool tests_may_include(std::string_view module, std::string_view other) const;

  // Another library, by the folder that its headers are included from: "boost".
  bool may_include_library(std::string_view module, std::string_view folder) const;

  // For a message: "base, sync", or "nothing but itself".
  std::string allowed(std::string_view module) const;

  // A right as the table states it, without the inherited ones.
  struct right {
    std::string module;
    std::string target;  // a module, or a library's include folder
    enum class kind { module, test, library } what;
    std::size_t line;
  };
  const std::vector<right>& rights() const { return rights_; }

 private:
  struct row {
    std::string module;
    std::set<std::string, std::less<>> uses;
    std::set<std::string, std::less<>> test_uses;
    std::set<std::string, std::less<>> libraries;
  };

  const row* find(std::string_view module) const;

  std::vector<row> rows_;
  std::vector<std::string> modules_;
  std::vector<right> rights_;
};

}  // namespace sluice::architecture
