// The classic races: for each, a naive program in which the explorer finds the race, and a program
// with the type that rules it out, in which the same number of schedules finds nothing.
//
//   races                        explores all of them and prints the results
//   races --page SOURCE_FOLDER   writes docs/concepts/races.md to standard output
//   races --compare SOURCE_FOLDER PAGE   fails if PAGE differs from the output of --page

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "examples/races/race.hpp"

std::vector<race>& all_races() {
  static std::vector<race> all;
  return all;
}

namespace {

namespace sim = sluice::sim;

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct outcome {
  sim::result naive;
  sim::result ruled_out;
  bool as_expected = false;
};

outcome explore(const race& r) {
  outcome o;
  o.naive = sim::explore({.name = r.file, .schedules = r.within}, r.naive);
  o.ruled_out = sim::explore({.name = r.file, .schedules = r.within}, r.ruled_out);
  o.as_expected = o.naive.failed() && o.naive.kind == r.shows_as && !o.ruled_out.failed();
  return o;
}

// The first comment of a file, whose first line is the title, and the two programs of the file.
struct chapter {
  std::string title;
  std::string text;
  std::string naive;
  std::string ruled_out;
};

// Returns the text of `file` from the first `opening` up to the next `ending`; empty if there is no
// `opening`.
std::string part(const std::string& file, const std::string& opening, const std::string& ending) {
  const auto begin = file.find(opening);
  if (begin == std::string::npos) return {};
  const auto end = file.find(ending, begin);
  auto text = file.substr(begin, end - begin);
  while (text.ends_with('\n')) text.pop_back();
  return text + "\n";
}

chapter read_chapter(const std::string& file) {
  chapter c;
  std::istringstream lines(file);
  std::string line;
  while (std::getline(lines, line) && line.starts_with("//")) {
    line.erase(0, std::min<std::size_t>(3, line.size()));
    if (c.title.empty()) {
      c.title = line;
    } else {
      c.text += line + "\n";
    }
  }
  const auto code = part(file, "namespace {\n\n", "\n[[maybe_unused]]").substr(13);
  // The second form begins with the helper function that only it uses, if it has one.
  auto cut = code.find("void transfer(sluice::guarded");
  if (cut == std::string::npos) cut = code.find("void ruled_out()");
  c.naive = code.substr(0, cut);
  while (c.naive.ends_with("\n\n")) c.naive.pop_back();
  c.ruled_out = code.substr(cut);
  return c;
}

std::string page(const std::string& source_folder) {
  std::string text =
      "# Races, and the types that rule them out\n\n"
      "<!-- Written by examples/races --page from the files of that folder; a test compares. "
      "-->\n\n"
      "Each of these programs is wrong, and most of them work most of the time. "
      "[`sluice::sim`](../guides/sim.md)\nruns each of them with different schedules until one "
      "fails, and prints that schedule. The second form\nof each program uses a type that rules "
      "the race out; the same number of schedules finds no failure.\nTo run them: "
      "`build/release/examples/races`.\n\n"
      "| race | found as | within | ruled out by |\n|---|---|---|---|\n";
  for (const auto& r : all_races()) {
    const auto c = read_chapter(read_file(source_folder + "/" + r.file));
    text += "| " + c.title + " | " + sim::to_string(r.shows_as) + " | " + std::to_string(r.within) +
            " schedules | `" + r.by + "` |\n";
  }
  for (const auto& r : all_races()) {
    const auto c = read_chapter(read_file(source_folder + "/" + r.file));
    const auto o = explore(r);
    text += "\n## " + c.title + "\n" + c.text + "\n```cpp\n" + c.naive + "```\n\n" +
            "Output of the explorer (schedule " + std::to_string(o.naive.schedule) +
            ", minimized):\n\n```text\n" + sim::to_string(o.naive.kind) + ": " +
            o.naive.message + "\n\n" +
            (o.naive.steps_text.size() < 4'000 ? o.naive.steps_text
                                               : "(the same steps again and again)\n") +
            "```\n\nWith `" + r.by + "`:\n\n```cpp\n" + c.ruled_out + "```\n";
  }
  return text;
}

}  // namespace

int main(int count, char** given) {
  std::ranges::sort(all_races(), {}, &race::order);
  if (count == 3 && std::strcmp(given[1], "--page") == 0) {
    std::fputs(page(given[2]).c_str(), stdout);
    return 0;
  }
  if (count == 4 && std::strcmp(given[1], "--compare") == 0) {
    if (page(given[2]) == read_file(given[3])) return 0;
    std::fprintf(stderr, "%s is not what `races --page` writes: write it again\n", given[3]);
    return 1;
  }
  int failed = 0;
  for (const auto& r : all_races()) {
    const auto o = explore(r);
    std::printf("%-24s %-16s in schedule %4llu of %llu; with %s: %s\n", r.file.c_str(),
                o.naive.failed() ? sim::to_string(o.naive.kind) : "NOT FOUND",
                static_cast<unsigned long long>(o.naive.schedule),
                static_cast<unsigned long long>(r.within), r.by.c_str(),
                o.ruled_out.failed() ? "FOUND" : "none in as many");
    if (o.ruled_out.failed()) std::puts(o.ruled_out.text().c_str());
    if (!o.as_expected) ++failed;
  }
  return failed == 0 ? 0 : 1;
}
