#include "tests/architecture/tidy_rules.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace sluice::architecture {
namespace {

constexpr std::size_t columns_max = 100;
constexpr std::size_t header_lines_max = 400;
constexpr std::size_t source_lines_max = 800;
constexpr std::size_t test_lines_max = 1200;

// In prose and data a line cannot always be broken.
bool has_columns(std::string_view path) {
  return !path.ends_with(".md") && !path.ends_with(".json");
}

// gofmt indents with tabs.
bool may_have_tabs(std::string_view path) {
  return path.ends_with(".go");
}

std::size_t columns(std::string_view line) {
  // Bytes that continue a UTF-8 character take no column of their own.
  return static_cast<std::size_t>(std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// Finds `name` where it stands as a word. A name that ends in * stands for all that begin so.
bool has_word(std::string_view line, std::string_view name) {
  const bool is_stem = name.ends_with('*');
  if (is_stem) name.remove_suffix(1);
  for (std::size_t at = line.find(name); at != std::string_view::npos;
       at = line.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || !is_word(line[at - 1]);
    const bool ends = is_stem || !is_word(name.back()) || end == line.size() || !is_word(line[end]);
    if (begins && ends) return true;
  }
  return false;
}

template <class Names, class What>
void find_words(const source_file& file, std::string_view text, const Names& names, What what,
                findings& found) {
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    for (const std::string_view name : names) {
      if (has_word(line, name)) found.push_back({file.path, number, what(std::string(name))});
    }
  }
}

void check_line_form(const source_file& file, std::size_t number, std::string_view line,
                     findings& found) {
  if (has_columns(file.path) && columns(line) > columns_max) {
    found.push_back({file.path, number,
                     std::to_string(columns(line)) + " columns, at most " +
                         std::to_string(columns_max) + " are allowed"});
  }
  if (!may_have_tabs(file.path) && line.find('\t') != std::string_view::npos) {
    found.push_back({file.path, number, "a tab"});
  }
  if (line.ends_with(' ') || line.ends_with('\t') || line.ends_with('\r')) {
    found.push_back({file.path, number, "trailing whitespace"});
  }
}

}  // namespace

findings check_form(const source_tree& tree) {
  findings found;
  for (const source_file& file : tree) {
    std::size_t number = 0;
    for (const std::string_view line : lines_of(file.text)) {
      check_line_form(file, ++number, line, found);
    }
    if (!file.text.empty() && !file.text.ends_with('\n')) {
      found.push_back({file.path, number, "no newline at the end"});
    }
  }
  return found;
}

findings check_size(const source_tree& tree) {
  findings found;
  for (const source_file& file : tree) {
    if (!is_cpp(file.path)) continue;
    const std::size_t limit = is_test(file.path)     ? test_lines_max
                              : is_header(file.path) ? header_lines_max
                                                     : source_lines_max;
    const std::size_t lines = lines_of(file.text).size();
    if (lines > limit) {
      found.push_back({file.path, 0,
                       std::to_string(lines) + " lines, at most " + std::to_string(limit) +
                           " are allowed: this is two ideas"});
    }
  }
  return found;
}

findings check_leftovers(const source_tree& tree) {
  // Put together here, so that this file has none of them.
  static const std::array marks = {std::string("TO") + "DO", std::string("FIX") + "ME",
                                   std::string(3, 'X')};
  findings found;
  for (const source_file& file : tree) {
    find_words(
        file, file.text, marks,
        [](const std::string& mark) { return mark + ": do it, or write it down elsewhere"; },
        found);
  }
  return found;
}

findings check_seam(const source_tree& tree) {
  static constexpr std::array banned = {
      // Atomics and fences.
      "std::atomic*", "__atomic_*", "__sync_*",
      // Everything of std that can wait.
      "std::mutex", "std::timed_mutex", "std::recursive_*", "std::shared_mutex",
      "std::shared_timed_mutex", "std::condition_variable*", "std::counting_semaphore",
      "std::binary_semaphore", "std::latch", "std::barrier", "std::call_once", "std::once_flag",
      // The scheduler, the kernel, time, chance.
      "std::this_thread::*", "std::thread", "std::jthread", "std::async(", "pthread_create",
      "pthread_mutex*", "pthread_cond*", "pthread_rwlock*", "SYS_futex*", "futex(", "sched_yield(",
      "steady_clock::now(", "high_resolution_clock::now(", "std::random_device"};
  static constexpr std::array banned_in_library = {"pthread_*", "syscall("};
  static constexpr std::array wall_clock = {"system_clock::now(", "gettimeofday(",
                                            "CLOCK_REALTIME"};
  static constexpr std::string_view reads_wall_clock = "jobs/model/time.cpp";
  const auto why = [](const std::string& name) {
    return name + " outside sluice/base/: go through the seam";
  };
  findings found;
  for (const source_file& file : tree) {
    // The explorer is what stands on the other side of the seam.
    const bool is_seam =
        file.path.starts_with("sluice/base/") || file.path.starts_with("sluice/sim/");
    const bool is_watched = is_cpp(file.path) && is_product(file.path) && !is_seam &&
                            !is_test(file.path) && !is_bench(file.path);
    if (!is_watched) continue;
    const std::string code = code_of(file.text);
    find_words(file, code, banned, why, found);
    if (file.path.starts_with("sluice/")) find_words(file, code, banned_in_library, why, found);
    if (file.path != reads_wall_clock) find_words(file, code, wall_clock, why, found);
  }
  return found;
}

namespace {

// A coroutine that awaits a timer holds up no thread, and on a manual clock nobody: it may sleep.
std::string without_awaited_timers(std::string code) {
  static constexpr std::string_view awaited = "co_await sleep_";
  for (auto at = code.find(awaited); at != std::string::npos; at = code.find(awaited, at)) {
    code.replace(at, awaited.size(), awaited.size(), ' ');  // columns stay
  }
  return code;
}

// A sleep that is explored takes no time.
bool has_virtual_time(std::string_view path) {
  return path.starts_with("sluice/sim/") || path.starts_with("tests/sim");
}

}  // namespace

findings check_sleep(const source_tree& tree) {
  static constexpr std::array sleeps = {"sleep_for", "sleep_until", "sleep(", "usleep(",
                                        "nanosleep("};
  findings found;
  for (const source_file& file : tree) {
    if (!is_cpp(file.path) || !is_test(file.path) || has_virtual_time(file.path)) continue;
    find_words(
        file, without_awaited_timers(code_of(file.text)), sleeps,
        [](const std::string& name) {
          return name + " in a test: wait for a signal or use a manual clock";
        },
        found);
  }
  return found;
}

}  // namespace sluice::architecture
