// The sources of the project as values, so that a rule can be tried on a tree that never was on
// disk.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::architecture {

struct source_file {
  std::string path;  // from the root of the repository, with forward slashes
  std::string text;
};

using source_tree = std::vector<source_file>;

// Something that a rule objects to. Line 0 means the file as a whole.
struct finding {
  std::string path;
  std::size_t line;
  std::string what;
};

using findings = std::vector<finding>;

// Every text file of the repository: what stands at its root, and in the folders it is made of.
source_tree read_tree(const std::filesystem::path& root);

// One line for each finding, in the form that editors and terminals can jump to: path:line: what.
std::string to_string(const findings& all);

std::vector<std::string_view> lines_of(std::string_view text);

// The same text, line for line and column for column, with the inside of comments, and of string
// and character literals, replaced by spaces: what is left is code.
std::string code_of(std::string_view text);

bool is_word(char c);  // part of an identifier

bool is_cpp(std::string_view path);     // a header or a source
bool is_header(std::string_view path);  // .hpp
bool is_test(std::string_view path);    // *_test.cpp, or in a folder testing/ or tests/
bool is_bench(std::string_view path);   // *_bench.cpp, or in the folder benchmarks/

bool is_product(std::string_view path);  // of the library or the job server: sluice/, jobs/

// The module that a file belongs to, as cmake/layers.txt names it: "queue" for
// sluice/queue/detail/ring.hpp, "jobs/store" for jobs/store/testing/suite.hpp; empty for what is in
// no module.
std::string_view module_of(std::string_view path);

// Where the files of a module are: "sluice/queue" for "queue", "jobs/store" for "jobs/store".
std::string folder_of(std::string_view module);

}  // namespace sluice::architecture
