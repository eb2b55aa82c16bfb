#include "tests/docs/documents.hpp"

#include <filesystem>
#include <optional>
#include <regex>
#include <set>

namespace sluice::documents {
namespace {

constexpr std::string_view fence = "```";

bool is_compiled(std::string_view path) {
  return path.ends_with(".cpp") &&
         (path.starts_with("examples/") || path.starts_with("docs/snippets/"));
}

std::string_view without_indent(std::string_view line) {
  const auto text = line.find_first_not_of(' ');
  return text == std::string_view::npos ? std::string_view() : line.substr(text);
}

bool matches_at(const std::vector<std::string_view>& quote,
                const std::vector<std::string_view>& lines, std::size_t at) {
  if (!lines[at].ends_with(quote[0])) return false;
  const std::string_view indent = lines[at].substr(0, lines[at].size() - quote[0].size());
  if (!without_indent(indent).empty()) return false;
  for (std::size_t i = 0; i < quote.size(); ++i) {
    const std::string_view line = lines[at + i];
    const bool same = quote[i].empty()
                          ? line.empty()
                          : line.starts_with(indent) && line.substr(indent.size()) == quote[i];
    if (!same) return false;
  }
  return true;
}

// ---- named tests

using names = std::set<std::string, std::less<>>;

names tests_of(const source_tree& tree) {
  static const std::regex declared(
      R"((?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(\s*\w+,\s*(\w+)\))");
  constexpr std::string_view mistakes = "tests/compile_errors/";
  names all;
  for (const source_file& file : tree) {
    if (!architecture::is_test(file.path) || !architecture::is_cpp(file.path)) continue;
    if (file.path.starts_with(mistakes)) {
      all.insert("CompileError." + std::filesystem::path(file.path).stem().string());
    }
    const std::sregex_iterator end;
    for (std::sregex_iterator at(file.text.begin(), file.text.end(), declared); at != end; ++at) {
      all.insert((*at)[1].str());
    }
  }
  return all;
}

// Returns the cells of a table row; none for other lines.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  if (!line.starts_with('|')) return cells;
  for (auto at = line.find('|', 1); at != std::string_view::npos; at = line.find('|', 1)) {
    cells.push_back(line.substr(1, at - 1));
    line = line.substr(at);
  }
  return cells;
}

// Returns the index of the column whose title contains the word "tests".
std::optional<std::size_t> column_of_tests(const std::vector<std::string_view>& titles) {
  static const std::regex word(R"(\btests\b)");
  for (std::size_t at = 0; at < titles.size(); ++at) {
    if (std::regex_search(titles[at].begin(), titles[at].end(), word)) return at;
  }
  return std::nullopt;
}

std::vector<std::string> backquoted(std::string_view cell) {
  std::vector<std::string> words;
  for (auto at = cell.find('`'); at != std::string_view::npos; at = cell.find('`')) {
    const auto end = cell.find('`', at + 1);
    if (end == std::string_view::npos) break;
    words.emplace_back(cell.substr(at + 1, end - at - 1));
    cell = cell.substr(end + 1);
  }
  return words;
}

void check_row(const source_file& in, std::size_t line, std::string_view cell, const names& known,
               findings& found) {
  const std::vector<std::string> named = backquoted(cell);
  if (named.empty()) found.push_back({in.path, line, "a row without a test"});
  for (const std::string& name : named) {
    if (!known.contains(name)) found.push_back({in.path, line, "there is no test " + name});
  }
}

void check_tables(const source_file& in, const names& known, findings& found) {
  std::size_t number = 0;
  std::size_t rows = 0;  // of the table so far, including the titles
  std::optional<std::size_t> column;
  for (const std::string_view line : architecture::lines_of(in.text)) {
    ++number;
    const std::vector<std::string_view> cells = cells_of(line);
    rows = cells.empty() ? 0 : rows + 1;
    if (rows == 1) column = column_of_tests(cells);
    if (rows <= 2 || !column) continue;
    check_row(in, number, *column < cells.size() ? cells[*column] : "", known, found);
  }
}

void check_quote(const std::string& path, const block& quote, const source_tree& tree,
                 findings& found) {
  for (const source_file& source : tree) {
    if (is_compiled(source.path) && is_quoted_from(quote.lines, source.text)) return;
  }
  found.push_back({path, quote.line, "no program of examples/ or docs/snippets/ has this C++"});
}

}  // namespace

std::vector<block> blocks_of(std::string_view markdown) {
  std::vector<block> blocks;
  bool inside = false;
  std::size_t number = 0;
  for (const std::string_view line : architecture::lines_of(markdown)) {
    ++number;
    if (line.starts_with(fence)) {
      if (!inside) blocks.push_back({std::string(line.substr(fence.size())), number, {}});
      inside = !inside;
    } else if (inside) {
      blocks.back().lines.push_back(line);
    }
  }
  return blocks;
}

bool is_quoted_from(const std::vector<std::string_view>& quote, std::string_view text) {
  const auto lines = architecture::lines_of(text);
  if (quote.empty()) return true;
  for (std::size_t at = 0; at + quote.size() <= lines.size(); ++at) {
    if (matches_at(quote, lines, at)) return true;
  }
  return false;
}

findings check_quotes(const source_tree& tree) {
  findings found;
  for (const source_file& document : tree) {
    if (!document.path.ends_with(".md")) continue;
    for (const block& b : blocks_of(document.text)) {
      if (b.language == "cpp") check_quote(document.path, b, tree, found);
    }
  }
  return found;
}

bool is_public_header(std::string_view path) {
  return path.starts_with("sluice/") && path.ends_with(".hpp") &&
         path.find("/detail/") == std::string_view::npos &&
         path.find("/testing/") == std::string_view::npos;
}

std::vector<block> examples_of(std::string_view header) {
  constexpr std::string_view comment = "//";
  constexpr std::string_view indented = "//     ";
  std::vector<block> examples;
  std::string_view before;  // the previous line of the comment
  bool inside = false;
  std::size_t number = 0;
  for (const std::string_view line : architecture::lines_of(header)) {
    ++number;
    if (!line.starts_with(comment) && !before.empty()) break;  // the end of the first comment
    if (!line.starts_with(comment)) continue;
    const bool is_example = line.starts_with(indented) && (inside || before == comment);
    if (is_example && !inside) examples.push_back({"cpp", number, {}});
    if (is_example) examples.back().lines.push_back(line.substr(indented.size()));
    inside = is_example;
    before = line;
  }
  return examples;
}

findings check_header_examples(const source_tree& tree) {
  findings found;
  for (const source_file& header : tree) {
    if (!is_public_header(header.path)) continue;
    for (const block& b : examples_of(header.text)) check_quote(header.path, b, tree, found);
  }
  return found;
}

std::vector<link> links_of(std::string_view markdown) {
  std::vector<link> links;
  bool inside = false;
  std::size_t number = 0;
  for (const std::string_view line : architecture::lines_of(markdown)) {
    ++number;
    if (line.starts_with(fence)) inside = !inside;
    if (inside) continue;
    for (auto at = line.find("]("); at != std::string_view::npos; at = line.find("](", at + 2)) {
      const auto end = line.find(')', at);
      if (end == std::string_view::npos) break;
      const auto target = line.substr(at + 2, end - at - 2);
      if (target.find("://") != std::string_view::npos) continue;
      links.push_back({number, std::string(target.substr(0, target.find('#')))});
    }
  }
  return links;
}

findings check_named_tests(const source_tree& tree) {
  const names known = tests_of(tree);
  findings found;
  for (const source_file& document : tree) {
    if (document.path.ends_with(".md")) check_tables(document, known, found);
  }
  return found;
}

std::string resolve(std::string_view from, std::string_view target) {
  namespace fs = std::filesystem;
  return (fs::path(from).parent_path() / fs::path(target)).lexically_normal().generic_string();
}

}  // namespace sluice::documents
