#include "tests/architecture/include_rules.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace sluice::architecture {
namespace {

struct include {
  std::string_view path;
  bool quoted;
  std::size_t line;
};

std::vector<include> includes_of(const source_file& file) {
  std::vector<include> includes;
  const std::string code = code_of(file.text);
  const std::vector<std::string_view> code_lines = lines_of(code);
  const std::vector<std::string_view> lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // The directive is searched in the code, the path (which is blank there) in the text.
    const std::size_t hash = code_lines[i].find_first_not_of(" \t");
    if (hash == std::string_view::npos || code_lines[i][hash] != '#') continue;
    const std::size_t word = code_lines[i].find_first_not_of(" \t", hash + 1);
    if (word == std::string_view::npos || !code_lines[i].substr(word).starts_with("include")) {
      continue;
    }
    const std::size_t open = lines[i].find_first_of("\"<", word);
    if (open == std::string_view::npos) continue;
    const bool quoted = lines[i][open] == '"';
    const std::size_t close = lines[i].find(quoted ? '"' : '>', open + 1);
    if (close == std::string_view::npos) continue;
    includes.push_back({lines[i].substr(open + 1, close - open - 1), quoted, i + 1});
  }
  return includes;
}

bool is_ours(std::string_view path) {
  static constexpr std::array roots = {"sluice/",   "jobs/", "benchmarks/",
                                       "examples/", "fuzz/", "tests/"};
  return std::ranges::any_of(roots, [&](std::string_view root) { return path.starts_with(root); });
}

bool is_system_folder(std::string_view folder) {
  static constexpr std::array folders = {"sys", "linux", "asm", "net", "netinet", "arpa"};
  return std::ranges::find(folders, folder) != folders.end();
}

// What a row of the table calls the library that a header is from: its folder, or its own name for
// those few that have none. Empty for the standard library and the operating system.
std::string_view library_of(std::string_view path) {
  static constexpr std::array without_folder = {"sqlite3.h", "libpq-fe.h"};
  const std::size_t slash = path.find('/');
  if (slash != std::string_view::npos) {
    const std::string_view folder = path.substr(0, slash);
    return is_system_folder(folder) ? std::string_view{} : folder;
  }
  return std::ranges::find(without_folder, path) != without_folder.end() ? path
                                                                         : std::string_view{};
}

// sluice/queue/ for sluice/queue/detail/ring.hpp: the folder whose files may include it.
std::optional<std::string_view> owner_of_detail(std::string_view path) {
  const std::size_t found = path.rfind("/detail/");
  if (found == std::string_view::npos) return std::nullopt;
  return path.substr(0, found + 1);
}

// Parsers are fuzzed directly, and few of them are in a public header.
bool may_include_every_detail(std::string_view path) {
  return path.starts_with("fuzz/");
}

// The modules under the rest of the library. Their detail/ is private to the library as a whole:
// the modules above share it, and so do the tests that cross modules. Users do not see it.
bool is_foundation(std::string_view module) {
  static constexpr std::array modules = {"base", "sync", "queue", "channel"};
  return std::ranges::find(modules, module) != modules.end();
}
bool is_in_library(std::string_view path) {
  return path.starts_with("sluice/") || path.starts_with("tests/");
}

class walk {
 public:
  walk(const source_tree& tree, const layer_table& layers) : tree_(tree), layers_(layers) {}

  findings run() {
    for (const source_file& file : tree_) {
      if (!is_cpp(file.path)) continue;
      check_place(file);
      for (const include& i : includes_of(file)) {
        included_.insert(std::string(i.path));
        if (is_test(file.path)) test_includes_[file.path].emplace_back(i.path);
        check(file.path, i);
      }
    }
    for (const auto& [path, includes] : test_includes_) note_test_uses(path, path);
    for (const source_file& file : tree_) {
      if (is_header(file.path) && owner_of_detail(file.path) && !included_.contains(file.path)) {
        found_.push_back({file.path, 0, "no file includes this internal header: delete it"});
      }
    }
    return std::move(found_);
  }

  // Rights that no include needs: none is direct, and without the right all are still allowed.
  // Requires a run before it.
  findings unused_rights() {
    findings unused;
    const std::vector<layer_table::right>& rights = layers_.rights();
    for (const layer_table::right& r : rights) {
      const bool is_for_tests = r.what == layer_table::right::kind::test;
      if ((is_for_tests ? test_uses_ : uses_).contains({r.module, r.target})) continue;
      if (r.what != layer_table::right::kind::library && is_needed(r)) continue;
      unused.push_back({"cmake/layers.txt", r.line,
                        (is_for_tests ? "no test of " : "no file of ") + folder_of(r.module) +
                            " includes " + r.target + ": delete the right"});
    }
    return unused;
  }

 private:
  // sluice/queue.hpp for the module queue, and sluice/sluice.hpp.
  bool is_umbrella(std::string_view path) const {
    constexpr std::string_view begin = "sluice/";
    constexpr std::string_view end = ".hpp";
    if (!path.starts_with(begin) || !path.ends_with(end)) return false;
    path.remove_prefix(begin.size());
    path.remove_suffix(end.size());
    return path == "sluice" || (path.find('/') == std::string_view::npos && layers_.has(path));
  }

  void check_place(const source_file& file) {
    if (!is_product(file.path) || layers_.has(module_of(file.path))) return;
    if (is_umbrella(file.path)) return;
    found_.push_back({file.path, 0, "stands in no module of cmake/layers.txt"});
  }

  void check(std::string_view from, const include& i) {
    if (is_ours(i.path)) {
      check_layer(from, i);
      check_audience(from, i);
    } else if (i.quoted) {
      object(from, i, "write it as a path from the root, like \"sluice/queue/x.hpp\"");
    } else {
      check_library(from, i);
    }
  }

  void check_layer(std::string_view from, const include& i) {
    const std::string_view module = module_of(from);
    if (const auto owner = owner_of_detail(i.path);
        owner && !may_include_every_detail(from) &&
        !(is_foundation(module_of(i.path)) && is_in_library(from)) &&
        !(from.starts_with(*owner) && module == module_of(i.path))) {
      object(from, i, "only files in " + std::string(*owner) + " may include its detail/");
    }
    if (module.empty() || !is_product(i.path)) return;
    const std::string_view other = module_of(i.path);
    note_use(from, module, other);
    if (layers_.may_include(module, other)) return;
    if (is_test(from) && layers_.tests_may_include(module, other)) return;
    object(from, i, folder_of(module) + " may include: " + layers_.allowed(module));
  }

  void check_audience(std::string_view from, const include& i) {
    if (!is_product(from)) return;
    if (is_test(i.path) && !is_test(from)) {
      object(from, i, "only tests may include what is written for tests");
    }
    if (is_bench(i.path) && !is_bench(from)) {
      object(from, i, "only benchmarks may include what is written for benchmarks");
    }
    if (i.path.starts_with("examples/")) object(from, i, "the product does not use its examples");
  }

  void check_library(std::string_view from, const include& i) {
    const std::string_view module = module_of(from);
    const std::string_view library = library_of(i.path);
    if (module.empty() || library.empty()) return;
    note_use(from, module, library);
    if (is_test(from) || is_bench(from)) return;
    if (layers_.may_include_library(module, library)) return;
    object(from, i,
           folder_of(module) + " may not use another library: its row of " +
               "cmake/layers.txt does not name <" + std::string(library) + ">");
  }

  // Adds to `reached` the modules that `module` may include without the right `dropped`.
  void reach(const std::string& module, const layer_table::right& dropped,
             std::set<std::string>& reached) const {
    if (!reached.insert(module).second) return;
    for (const layer_table::right& r : layers_.rights()) {
      if (r.module == module && r.what == layer_table::right::kind::module && &r != &dropped) {
        reach(r.target, dropped, reached);
      }
    }
  }
  bool is_needed(const layer_table::right& dropped) const {
    for (const std::string& module : layers_.modules()) {
      std::set<std::string> reached;
      reach(module, dropped, reached);
      const auto is_out_of_reach = [&](const auto& use) {
        return use.first == module && layers_.has(use.second) && !reached.contains(use.second);
      };
      if (std::ranges::any_of(uses_, is_out_of_reach)) return true;
      for (const layer_table::right& r : layers_.rights()) {
        if (r.module == module && r.what == layer_table::right::kind::test && &r != &dropped) {
          reach(r.target, dropped, reached);
        }
      }
      if (std::ranges::any_of(test_uses_, is_out_of_reach)) return true;
    }
    return false;
  }

  // A test uses also the modules that test code of other modules includes on its behalf.
  void note_test_uses(std::string_view test, const std::string& path) {
    const auto found = test_includes_.find(path);
    if (found == test_includes_.end() || module_of(test).empty()) return;
    for (const std::string& included : found->second) {
      if (!is_product(included)) continue;
      test_uses_.emplace(std::string(module_of(test)), std::string(module_of(included)));
      if (is_test(included) && included != path) note_test_uses(test, included);
    }
  }

  void note_use(std::string_view from, std::string_view module, std::string_view target) {
    const bool by_test = is_test(from) || is_bench(from);
    (by_test ? test_uses_ : uses_).emplace(std::string(module), std::string(target));
  }

  void object(std::string_view from, const include& i, const std::string& why) {
    found_.push_back({std::string(from), i.line, "includes " + std::string(i.path) + ": " + why});
  }

  const source_tree& tree_;
  const layer_table& layers_;
  std::set<std::string, std::less<>> included_;
  std::map<std::string, std::vector<std::string>, std::less<>> test_includes_;
  std::set<std::pair<std::string, std::string>> uses_;
  std::set<std::pair<std::string, std::string>> test_uses_;
  findings found_;
};

}  // namespace

findings check_includes(const source_tree& tree, const layer_table& layers) {
  return walk(tree, layers).run();
}

findings check_umbrellas(const source_tree& tree) {
  findings found;
  for (const source_file& umbrella : tree) {
    const std::string folder = umbrella.path.substr(0, umbrella.path.size() - 4) + '/';
    if (!is_header(umbrella.path) || umbrella.path.find('/') != umbrella.path.rfind('/')) continue;
    for (const source_file& file : tree) {
      const bool is_public = is_header(file.path) && file.path.starts_with(folder) &&
                             file.path.find('/', folder.size()) == std::string::npos;
      // Aids of a user's tests are included where they are used.
      const bool is_for_tests = file.path.find("_test_") != std::string::npos ||
                                file.path.find("_probe") != std::string::npos;
      if (!is_public || is_for_tests) continue;
      if (umbrella.text.find("#include \"" + file.path + "\"") == std::string::npos) {
        found.push_back({umbrella.path, 0, "does not include " + file.path});
      }
    }
  }
  return found;
}

findings check_rights(const source_tree& tree, const layer_table& layers) {
  walk all(tree, layers);
  (void)all.run();
  return all.unused_rights();
}

}  // namespace sluice::architecture
