// Plain technical English as a rule: indirect wording and pronouns as names, counted per module.
//
// Prose is comments, documents, and string literals of four words or more. Hits are words and
// phrases for an unnamed party or action ("somebody", "one that", "is told"), which the glossary in
// CONTRIBUTING.md replaces by nouns and verbs of the field. Names are members, parameters and
// variables called `what`, `how`, `to` and the like.
//
// tests/architecture/text_budgets.txt states how many hits and names each module may have. A count
// above its budget fails, and so does a budget above its count, or above 2 per 1,000 words.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "tests/architecture/source_tree.hpp"

namespace sluice::architecture {

struct text_counts {
  std::size_t words = 0;
  std::size_t indirect = 0;  // hits in prose
  std::size_t pronouns = 0;  // names
};

// The counts of one file.
text_counts count_text(const source_file& file);

// sluice/queue for sluice/queue/detail/x.hpp, docs for docs/a/b.md, (root) for README.md.
std::string text_module(std::string_view path);

using text_table = std::map<std::string, text_counts, std::less<>>;
text_table count_text(const source_tree& tree);

// Compares the counts with the rows `module indirect pronouns` of the budget file. Throws
// std::invalid_argument with the line if a row cannot be read.
findings check_text(const text_table& counts, std::string_view budgets);

}  // namespace sluice::architecture
