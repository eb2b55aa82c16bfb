#include "tests/architecture/source_tree.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace sluice::architecture {
namespace {

namespace fs = std::filesystem;

constexpr std::array folders = {".ci",  "benchmarks", "cmake",  "docs",  "examples", "fuzz",
                                "jobs", "scripts",    "sluice", "tests", "web"};

bool is_text(const fs::path& path) {
  static constexpr std::array extensions = {".hpp",  ".cpp",  ".cmake", ".txt", ".in",
                                            ".md",   ".json", ".bash",  ".sh",  ".go",
                                            ".java", ".ts",   ".tsx",   ".css", ".html"};
  const std::string name = path.filename().string();
  const std::string extension = path.extension().string();
  return (extension.empty() && !name.starts_with('.')) ||
         std::ranges::find(extensions, extension) != extensions.end();
}

// Made by tools, or inputs of tests that are as they are on purpose.
bool is_not_ours(const fs::path& folder) {
  return folder.filename() == "node_modules" || folder.filename() == "dist" ||
         folder.filename() == "corpus";
}

source_file read(const fs::path& root, const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {path.lexically_relative(root).generic_string(),
          {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}};
}

bool contains_folder(std::string_view path, std::string_view folder) {
  const std::string inside = "/" + std::string(folder) + "/";
  return path.starts_with(std::string_view(inside).substr(1)) ||
         path.find(inside) != std::string_view::npos;
}

// Walks over C++ text once, copying code and blanking the rest.
class code_copier {
 public:
  explicit code_copier(std::string_view text) : text_(text) { code_.reserve(text.size()); }

  std::string run() {
    while (at_ < text_.size()) {
      if (next_is("//")) {
        blank_until("\n");
      } else if (next_is("/*")) {
        blank(2);
        blank_until("*/");
        blank(2);
      } else if (next_is("R\"") && (at_ == 0 || !is_word(text_[at_ - 1]) || is_prefix())) {
        raw_string();
      } else if (text_[at_] == '"' || (text_[at_] == '\'' && !is_digit_separator())) {
        literal(text_[at_]);
      } else {
        copy(1);
      }
    }
    return std::move(code_);
  }

 private:
  bool next_is(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  // The u, U, L or u8 of uR"(...)".
  bool is_prefix() const { return std::string_view("uUL8").find(text_[at_ - 1]) < 4; }

  bool is_digit_separator() const {
    return at_ > 0 && std::isxdigit(static_cast<unsigned char>(text_[at_ - 1])) != 0 &&
           at_ + 1 < text_.size() && std::isxdigit(static_cast<unsigned char>(text_[at_ + 1])) != 0;
  }

  void copy(std::size_t count) {
    for (; count > 0 && at_ < text_.size(); --count) code_ += text_[at_++];
  }

  void blank(std::size_t count) {
    for (; count > 0 && at_ < text_.size(); --count, ++at_) {
      code_ += text_[at_] == '\n' ? '\n' : ' ';
    }
  }

  void blank_until(std::string_view end) {
    const std::size_t found = text_.find(end, at_);
    blank((found == std::string_view::npos ? text_.size() : found) - at_);
  }

  void raw_string() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) return copy(2);
    const std::string close = ")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"";
    copy(2);
    blank_until(close);
    blank(close.size() - 1);
    copy(1);
  }

  // A newline ends a literal: it was not one, or the compiler will say so.
  void literal(char quote) {
    copy(1);
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      blank(text_[at_] == '\\' ? 2 : 1);
    }
    if (at_ < text_.size() && text_[at_] == quote) copy(1);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string code_;
};

}  // namespace

source_tree read_tree(const fs::path& root) {
  source_tree tree;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    if (entry.is_regular_file() && is_text(entry.path())) tree.push_back(read(root, entry.path()));
  }
  for (const char* folder : folders) {
    if (!fs::is_directory(root / folder)) continue;
    for (auto at = fs::recursive_directory_iterator(root / folder); at != fs::end(at); ++at) {
      if (at->is_directory() && is_not_ours(at->path())) at.disable_recursion_pending();
      if (at->is_regular_file() && is_text(at->path())) tree.push_back(read(root, at->path()));
    }
  }
  std::ranges::sort(tree, {}, &source_file::path);
  return tree;
}

std::string to_string(const findings& all) {
  std::ostringstream out;
  for (const finding& f : all) out << f.path << ':' << f.line << ": " << f.what << '\n';
  return out.str();
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string code_of(std::string_view text) {
  return code_copier(text).run();
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_cpp(std::string_view path) {
  return path.ends_with(".hpp") || path.ends_with(".cpp");
}

bool is_header(std::string_view path) {
  return path.ends_with(".hpp");
}

bool is_test(std::string_view path) {
  return path.ends_with("_test.cpp") || contains_folder(path, "testing") ||
         path.starts_with("tests/");
}

bool is_bench(std::string_view path) {
  return path.ends_with("_bench.cpp") || path.starts_with("benchmarks/");
}

bool is_product(std::string_view path) {
  return path.starts_with("sluice/") || path.starts_with("jobs/");
}

std::string_view module_of(std::string_view path) {
  constexpr std::string_view library = "sluice/";
  if (!is_product(path)) return {};
  std::string_view folder = path.substr(0, path.rfind('/'));
  for (const std::string_view inner : {"/detail", "/testing"}) {
    if (folder.ends_with(inner)) folder.remove_suffix(inner.size());
  }
  if (folder.find('/') == std::string_view::npos) return {};  // beside the modules, in none
  if (folder.starts_with(library)) folder.remove_prefix(library.size());
  return folder;
}

std::string folder_of(std::string_view module) {
  return (module.starts_with("jobs/") ? "" : "sluice/") + std::string(module);
}

}  // namespace sluice::architecture
