#include "tests/docs/documents.hpp"

#include <filesystem>

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
      if (b.language != "cpp") continue;
      bool is_somewhere = false;
      for (const source_file& source : tree) {
        is_somewhere |= is_compiled(source.path) && is_quoted_from(b.lines, source.text);
      }
      if (!is_somewhere) {
        found.push_back(
            {document.path, b.line, "this C++ is in no program of examples/ or docs/snippets/"});
      }
    }
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

std::string resolve(std::string_view from, std::string_view to) {
  namespace fs = std::filesystem;
  return (fs::path(from).parent_path() / fs::path(to)).lexically_normal().generic_string();
}

}  // namespace sluice::documents
