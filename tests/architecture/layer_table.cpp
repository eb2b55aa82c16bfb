#include "tests/architecture/layer_table.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace sluice::architecture {
namespace {

[[noreturn]] void refuse(std::size_t line, const std::string& what) {
  throw std::invalid_argument("layers.txt:" + std::to_string(line) + ": " + what);
}

}  // namespace

layer_table::layer_table(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.starts_with('#')) continue;
    std::ranges::replace(line, ',', ' ');
    while (in.peek() == ' ') {  // a continuation of the row
      std::string more;
      std::getline(in, more);
      ++number;
      std::ranges::replace(more, ',', ' ');
      line += more;
    }
    std::istringstream words(line);
    row r;
    std::string word;
    if (!(words >> r.module)) continue;
    if (!(words >> word) || word != "->") refuse(number, "expected 'module -> module, module'");
    if (has(r.module)) refuse(number, "'" + r.module + "' has two rows");
    while (words >> word) {
      if (word.starts_with('<') && word.ends_with('>')) {
        r.libraries.insert(word.substr(1, word.size() - 2));
        rights_.push_back(
            {r.module, word.substr(1, word.size() - 2), right::kind::library, number});
        continue;
      }
      constexpr std::string_view for_tests = "test:";
      const bool is_for_tests = word.starts_with(for_tests);
      if (is_for_tests) word.erase(0, for_tests.size());
      const row* used = find(word);
      if (used == nullptr) refuse(number, "'" + word + "' has no row above this one");
      auto& uses = is_for_tests ? r.test_uses : r.uses;
      uses.insert(word);
      rights_.push_back(
          {r.module, word, is_for_tests ? right::kind::test : right::kind::module, number});
      uses.insert(used->uses.begin(), used->uses.end());
    }
    modules_.push_back(r.module);
    rows_.push_back(std::move(r));
  }
}

bool layer_table::has(std::string_view module) const {
  return find(module) != nullptr;
}

bool layer_table::may_include(std::string_view module, std::string_view other) const {
  const row* r = find(module);
  return r != nullptr && (module == other || r->uses.contains(other));
}

bool layer_table::tests_may_include(std::string_view module, std::string_view other) const {
  const row* r = find(module);
  return r != nullptr && r->test_uses.contains(other);
}

bool layer_table::may_include_library(std::string_view module, std::string_view folder) const {
  const row* r = find(module);
  return r != nullptr && r->libraries.contains(folder);
}

std::string layer_table::allowed(std::string_view module) const {
  const row* r = find(module);
  if (r == nullptr || r->uses.empty()) return "nothing but itself";
  std::string list;
  for (const std::string& use : r->uses) list += (list.empty() ? "" : ", ") + use;
  return list;
}

const layer_table::row* layer_table::find(std::string_view module) const {
  const auto found = std::ranges::find(rows_, module, &row::module);
  return found == rows_.end() ? nullptr : &*found;
}

}  // namespace sluice::architecture
