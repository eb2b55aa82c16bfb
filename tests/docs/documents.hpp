#pragma once

// Checks of Markdown documents: quoted code, links and named tests. And of public headers: the
// examples in the opening comment.

#include <string>
#include <string_view>
#include <vector>

#include "tests/architecture/source_tree.hpp"

namespace sluice::documents {

using architecture::findings;
using architecture::source_file;
using architecture::source_tree;

// A fenced block and its first line in the document.
struct block {
  std::string language;
  std::size_t line = 0;
  std::vector<std::string_view> lines;
};

std::vector<block> blocks_of(std::string_view markdown);

// Returns true if the text contains the lines in sequence, all with equal additional indentation.
bool is_quoted_from(const std::vector<std::string_view>& quote, std::string_view text);

// Every C++ block of every document must be part of a program in examples/ or docs/snippets/.
findings check_quotes(const source_tree& tree);

// Whether a header of sluice/ is public, and so begins with an explanatory comment.
bool is_public_header(std::string_view path);

// Returns the paragraphs of the first comment that are indented by five spaces after an empty line.
std::vector<block> examples_of(std::string_view header);

// Every example of every public header must be part of a program in examples/ or docs/snippets/.
findings check_header_examples(const source_tree& tree);

struct link {
  std::size_t line = 0;
  std::string target;  // without its #anchor; empty for a place in the same document
};

std::vector<link> links_of(std::string_view markdown);

// Converts the link `target` of the document `from` to a path from the root of the repository.
std::string resolve(std::string_view from, std::string_view target);

// If the title of a table column contains the word "tests", each of its rows must name at least one
// test in backquotes, and each must exist: a TEST of that name, or `CompileError.x` for a mistake
// in tests/compile_errors/x.cpp.
findings check_named_tests(const source_tree& tree);

}  // namespace sluice::documents
