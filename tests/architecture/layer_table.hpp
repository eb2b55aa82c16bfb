// cmake/layers.txt as a value: which module may include which.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::architecture {

class layer_table {
 public:
  // Throws std::invalid_argument, naming the line, when the text is not a table: a row that cannot
  // be read, a module with two rows, or a row that names a module with no row above it.
  explicit layer_table(std::string_view text);

  bool has(std::string_view module) const;
  const std::vector<std::string>& modules() const { return modules_; }

  // Inherited rights included; a module may always include itself.
  bool may_include(std::string_view module, std::string_view other) const;

  // What only the tests of a module may include, beside what the module may.
  bool tests_may_include(std::string_view module, std::string_view other) const;

  // Another library, by the folder that its headers are included from: "boost".
  bool may_include_library(std::string_view module, std::string_view folder) const;

  // For a message: "base, sync", or "nothing but itself".
  std::string allowed(std::string_view module) const;

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
};

}  // namespace sluice::architecture
