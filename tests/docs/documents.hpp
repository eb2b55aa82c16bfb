#pragma once

// What is checked of a Markdown document: its quotes of code, its links, and the tests that it
// names. And of a public header: the examples in the comment that it begins with.

#include <string>
#include <string_view>
#include <vector>

#include "tests/architecture/source_tree.hpp"

namespace sluice::documents {

using architecture::findings;
using architecture::source_file;
using architecture::source_tree;

// A fenced block, and the line of the document it begins on.
struct block {
  std::string language;
  std::size_t line = 0;
  std::vector<std::string_view> lines;
};

std::vector<block> blocks_of(std::string_view markdown);

// True when the lines stand in the text one after the other, all indented by the same amount more.
bool is_quoted_from(const std::vector<std::string_view>& quote, std::string_view text);

// Every C++ block of every document must stand in a program of examples/ or docs/snippets/.
findings check_quotes(const source_tree& tree);

// Whether a header of sluice/ is for users, and begins with a comment that explains it.
bool is_public_header(std::string_view path);

// The paragraphs of the first comment that are indented by five spaces, each behind an empty line.
std::vector<block> examples_of(std::string_view header);

// Every example of every public header must stand in a program of examples/ or docs/snippets/.
findings check_header_examples(const source_tree& tree);

struct link {
  std::size_t line = 0;
  std::string target;  // without its #anchor; empty for a place in the same document
};

std::vector<link> links_of(std::string_view markdown);

// `to`, as `from` writes it, as a path from the root of the repository.
std::string resolve(std::string_view from, std::string_view to);

// A table may have a column of tests: its title has that word. In each of its rows at least one is
// named, in backquotes, and each must be there: a TEST of that name, or `CompileError.x` for a
// mistake in tests/compile_errors/x.cpp.
findings check_named_tests(const source_tree& tree);

}  // namespace sluice::documents
