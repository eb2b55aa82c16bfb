#include "tests/architecture/include_rules.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

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
    // The directive is looked for in the code, the path (which is blank there) in the text.
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

// sluice/queue/ for sluice/queue/detail/ring.hpp: the folder that may look inside.
std::optional<std::string_view> owner_of_detail(std::string_view path) {
  const std::size_t found = path.rfind("/detail/");
  if (found == std::string_view::npos) return std::nullopt;
  return path.substr(0, found + 1);
}

// A parser is fuzzed where it is, and that is seldom in a public header.
bool may_look_inside(std::string_view path) {
  return path.starts_with("fuzz/");
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
        check(file.path, i);
      }
    }
    for (const source_file& file : tree_) {
      if (is_header(file.path) && owner_of_detail(file.path) && !included_.contains(file.path)) {
        found_.push_back({file.path, 0, "nobody includes this internal header: delete it"});
      }
    }
    return std::move(found_);
  }

 private:
  void check_place(const source_file& file) {
    if (!is_product(file.path) || layers_.has(module_of(file.path))) return;
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
        owner && !may_look_inside(from) &&
        !(from.starts_with(*owner) && module == module_of(i.path))) {
      object(from, i, "only files in " + std::string(*owner) + " may include its detail/");
    }
    if (module.empty() || !is_product(i.path)) return;
    const std::string_view other = module_of(i.path);
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
    if (module.empty() || is_test(from) || is_bench(from) || library.empty()) return;
    if (layers_.may_include_library(module, library)) return;
    object(from, i,
           folder_of(module) + " may not use another library: its row of " +
               "cmake/layers.txt does not name <" + std::string(library) + ">");
  }

  void object(std::string_view from, const include& i, const std::string& why) {
    found_.push_back({std::string(from), i.line, "includes " + std::string(i.path) + ": " + why});
  }

  const source_tree& tree_;
  const layer_table& layers_;
  std::set<std::string, std::less<>> included_;
  findings found_;
};

}  // namespace

findings check_includes(const source_tree& tree, const layer_table& layers) {
  return walk(tree, layers).run();
}

}  // namespace sluice::architecture
