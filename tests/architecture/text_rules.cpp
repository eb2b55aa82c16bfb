#include "tests/architecture/text_rules.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sluice::architecture {
namespace {

constexpr std::size_t least_words_of_a_message = 4;

// The largest budget of a module: 2 hits per 1,000 words, but at least 2.
constexpr std::size_t words_per_hit = 500;
constexpr std::size_t least_budget = 2;

// Space-separated words; a phrase is a hit where its words follow each other. Some words are fine
// before certain others ("no more than").
struct phrase {
  std::string_view text;
  std::string_view not_before = "";  // space-separated
};
constexpr std::array phrases = {phrase{"who", "may can did"},
                                phrase{"whom"},
                                phrase{"whoever"},
                                phrase{"whomever"},
                                phrase{"whosoever"},
                                phrase{"somebody"},
                                phrase{"someone"},
                                phrase{"nobody"},
                                phrase{"no one"},
                                phrase{"everybody"},
                                phrase{"everyone"},
                                phrase{"anybody"},
                                phrase{"anyone"},
                                phrase{"whatever"},
                                phrase{"whichever"},
                                phrase{"wherever"},
                                phrase{"one that"},
                                phrase{"one who"},
                                phrase{"one which"},
                                phrase{"ones that"},
                                phrase{"ones who"},
                                phrase{"those that"},
                                phrase{"those who"},
                                phrase{"those which"},
                                phrase{"those whose"},
                                phrase{"in whose"},
                                phrase{"of whose"},
                                phrase{"what is", "wrong"},
                                phrase{"what was"},
                                phrase{"what it", "is does"},
                                phrase{"what they"},
                                phrase{"what has"},
                                phrase{"what had"},
                                phrase{"what comes"},
                                phrase{"what came"},
                                phrase{"what goes"},
                                phrase{"what stands"},
                                phrase{"what waits"},
                                phrase{"what follows"},
                                phrase{"told", "apart"},
                                phrase{"tells of"},
                                phrase{"tell of"},
                                phrase{"hear"},
                                phrase{"hears"},
                                phrase{"heard"},
                                phrase{"said"},
                                phrase{"says"},
                                phrase{"tells"},
                                phrase{"lets"},
                                phrase{"anew"},
                                phrase{"held up"},
                                phrase{"in vain"},
                                phrase{"so many"},
                                phrase{"so much"},
                                phrase{"no more", "than"},
                                phrase{"there is none"},
                                phrase{"therein"},
                                phrase{"elsewhere"},
                                phrase{"somewhere"},
                                phrase{"lies down"},
                                phrase{"gets up"},
                                phrase{"stands in line"},
                                phrase{"go on"},
                                phrase{"goes on"},
                                phrase{"looks at"},
                                phrase{"looks for"},
                                phrase{"wants to"},
                                phrase{"likes to"},
                                phrase{"knows of"},
                                phrase{"asks for"},
                                phrase{"hands it"},
                                phrase{"mends"},
                                phrase{"mended"}};

constexpr std::array pronouns = {"it",   "what",  "how", "to",   "those", "mine",
                                 "said", "about", "him", "whom", "them",  "these"};

// Words that a type does not end with.
constexpr std::array keywords = {"return", "co_return", "co_await", "case",
                                 "throw",  "else",      "new",      "delete"};

std::vector<std::string> words_of(std::string_view prose) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : prose) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty() && (c == '\'' || c == '-')) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

// The words of each phrase, by its first word.
struct split_phrase {
  std::vector<std::string> words;
  std::vector<std::string> not_before;
};
using phrase_table = std::map<std::string, std::vector<split_phrase>, std::less<>>;

const phrase_table& phrases_by_first_word() {
  static const phrase_table table = [] {
    phrase_table made;
    for (const phrase& p : phrases) {
      split_phrase split{words_of(p.text), words_of(p.not_before)};
      made[split.words.front()].push_back(std::move(split));
    }
    return made;
  }();
  return table;
}

bool is_at(const split_phrase& p, const std::vector<std::string>& words, std::size_t at) {
  const std::size_t end = at + p.words.size();
  if (end > words.size()) return false;
  if (!std::ranges::equal(p.words, std::span(words).subspan(at, p.words.size()))) return false;
  return end == words.size() || std::ranges::find(p.not_before, words[end]) == p.not_before.end();
}

void add_prose(std::string_view prose, text_counts& counts) {
  const std::vector<std::string> words = words_of(prose);
  counts.words += words.size();
  for (std::size_t at = 0; at < words.size(); ++at) {
    const auto found = phrases_by_first_word().find(words[at]);
    if (found == phrases_by_first_word().end()) continue;
    const auto hit = std::ranges::find_if(
        found->second, [&](const split_phrase& p) { return is_at(p, words, at); });
    if (hit == found->second.end()) continue;
    ++counts.indirect;
    at += hit->words.size() - 1;  // "those who" is one hit
  }
}

// Drops `inline code` and link targets of a line of a document.
std::string without_code(std::string_view line) {
  std::string prose;
  bool in_code = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '`') {
      in_code = !in_code;
      prose += ' ';
    } else if (!in_code && line.substr(i).starts_with("](")) {
      const std::size_t close = line.find(')', i);
      i = close == std::string_view::npos ? line.size() : close;
      prose += ' ';
    } else if (!in_code) {
      prose += line[i];
    }
  }
  return prose;
}

void count_document(const source_file& file, text_counts& counts) {
  bool in_block = false;
  std::string paragraph;
  const auto flush = [&] { add_prose(std::exchange(paragraph, {}), counts); };
  for (const std::string_view line : lines_of(file.text)) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first != std::string_view::npos && line.substr(first).starts_with("```")) {
      in_block = !in_block;
      flush();
    } else if (first == std::string_view::npos) {
      flush();
    } else if (!in_block) {
      paragraph += without_code(line) + ' ';
      if (line.starts_with('|') || line.starts_with('#')) flush();
    }
  }
  flush();
}

// The text of the comments, and of the string literals, of a C++ source: where the code is blank.
void count_comments_and_strings(const source_file& file, const std::string& code,
                                text_counts& counts) {
  const std::vector<std::string_view> lines = lines_of(file.text);
  const std::vector<std::string_view> code_lines = lines_of(code);
  std::string comment;
  const auto flush = [&] { add_prose(std::exchange(comment, {}), counts); };
  for (std::size_t n = 0; n < lines.size(); ++n) {
    const std::string_view line = lines[n];
    const std::string_view blanked = code_lines[n];
    bool has_comment = false;
    for (std::size_t i = 0; i < line.size();) {
      if (blanked[i] != ' ' || line[i] == ' ') {
        if (blanked[i] == '"') {  // a literal: up to the next quote that is code
          const std::size_t end = blanked.find('"', i + 1);
          if (end == std::string_view::npos) break;
          const std::string_view literal = line.substr(i + 1, end - i - 1);
          if (!line.starts_with("#include") &&
              words_of(literal).size() >= least_words_of_a_message) {
            add_prose(literal, counts);
          }
          i = end + 1;
          continue;
        }
        ++i;
        continue;
      }
      std::string_view text = line.substr(i);
      if (text.starts_with("//")) text.remove_prefix(2);
      has_comment = true;
      if (!text.starts_with("    ")) comment += without_code(text) + ' ';  // else an example
      if (text.find_first_not_of(' ') == std::string_view::npos) flush();
      break;
    }
    if (!has_comment) flush();
  }
  flush();
}

void count_names(const std::string& code, text_counts& counts) {
  std::string before;    // the token before the last one
  std::string last;      // the last token
  bool pending = false;  // it is a pronoun after a type
  const auto token = [&](std::string_view t) {
    if (pending && (t == "," || t == ")" || t == ";" || t == "=" || t == "{")) ++counts.pronouns;
    // Members end with an underscore.
    const std::string_view name = t.ends_with('_') ? t.substr(0, t.size() - 1) : t;
    const bool is_name = std::ranges::find(pronouns, name) != pronouns.end();
    const std::string& type = last == "&" || last == "*" ? before : last;
    const bool after_type = type == ">" || (!type.empty() && is_word(type.back()) &&
                                            std::ranges::find(keywords, type) == keywords.end());
    pending = is_name && after_type && !(t == "it" && type == "auto");
    before = std::exchange(last, std::string(t));
  };
  for (std::size_t i = 0; i < code.size();) {
    if (std::isspace(static_cast<unsigned char>(code[i])) != 0) {
      ++i;
    } else if (is_word(code[i])) {
      std::size_t end = i;
      while (end < code.size() && is_word(code[end])) ++end;
      token(std::string_view(code).substr(i, end - i));
      i = end;
    } else {
      token(std::string_view(code).substr(i, 1));
      ++i;
    }
  }
}

}  // namespace

text_counts count_text(const source_file& file) {
  text_counts counts;
  if (file.path.ends_with(".md")) {
    count_document(file, counts);
  } else if (is_cpp(file.path)) {
    const std::string code = code_of(file.text);
    count_comments_and_strings(file, code, counts);
    count_names(code, counts);
  }
  return counts;
}

std::string text_module(std::string_view path) {
  const std::size_t first = path.find('/');
  if (first == std::string_view::npos) return "(root)";
  const std::size_t second = path.find('/', first + 1);
  if (is_product(path) && second != std::string_view::npos) {
    return std::string(path.substr(0, second));
  }
  return std::string(path.substr(0, first));
}

text_table count_text(const source_tree& tree) {
  text_table table;
  for (const source_file& file : tree) {
    // The rules and their test quote the words that they refuse.
    if (file.path.starts_with("tests/architecture/text_rules")) continue;
    if (!file.path.ends_with(".md") && !is_cpp(file.path)) continue;
    const text_counts of_file = count_text(file);
    text_counts& sum = table[text_module(file.path)];
    sum.words += of_file.words;
    sum.indirect += of_file.indirect;
    sum.pronouns += of_file.pronouns;
  }
  return table;
}

findings check_text(const text_table& counts, std::string_view budgets) {
  static constexpr std::string_view path = "tests/architecture/text_budgets.txt";
  findings found;
  std::map<std::string, std::size_t, std::less<>> rows;  // the line of each module
  std::istringstream in{std::string(budgets)};
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream columns(line);
    std::string module;
    text_counts budget;
    if (!(columns >> module >> budget.indirect >> budget.pronouns)) {
      throw std::invalid_argument(std::string(path) + ":" + std::to_string(number) +
                                  ": expected 'module indirect pronouns'");
    }
    rows[module] = number;
    const auto count = counts.find(module);
    const text_counts actual = count == counts.end() ? text_counts{} : count->second;
    const auto compare = [&](std::string_view kind, std::size_t is, std::size_t allowed) {
      if (is == allowed) return;
      const std::string both = std::to_string(is) + " " + std::string(kind) + " in " + module +
                               ", the budget is " + std::to_string(allowed);
      found.push_back({std::string(path), number,
                       is > allowed ? both + ": name the party or the thing (CONTRIBUTING.md)"
                                    : both + ": lower the budget"});
    };
    compare("indirect phrases", actual.indirect, budget.indirect);
    const std::size_t most = std::max(least_budget, actual.words / words_per_hit);
    if (budget.indirect > most) {
      found.push_back({std::string(path), number,
                       "a budget of at most " + std::to_string(most) + " for " + module +
                           ": 2 per 1,000 words"});
    }
    compare("pronouns as names", actual.pronouns, budget.pronouns);
  }
  for (const auto& [module, count] : counts) {
    if (!rows.contains(module) && count.indirect + count.pronouns > 0) {
      found.push_back({std::string(path), 0, "no row for " + module});
    }
  }
  return found;
}

}  // namespace sluice::architecture
