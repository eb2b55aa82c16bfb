#pragma once

// The result of a schedule: counts, and readable text. It is constructed outside of the schedule,
// whose memory is freed with it, so nothing in here may allocate while it is filled.

#include <array>
#include <cstddef>
#include <string>

#include "tests/crash/ledger.hpp"

namespace sluice::sim_jobs {

template <class Counts>
struct remains {
  Counts all{};  // its strings and lists stay empty
  std::array<char, 8192> text{};
  std::size_t text_bytes = 0;

  void clear() {
    all = {};
    text_bytes = 0;
  }
  // Truncates the text: the first findings matter most.
  void add(const std::string& more) {
    text_bytes += more.copy(text.data() + text_bytes, text.size() - text_bytes);
    if (text_bytes < text.size()) text[text_bytes++] = '\n';
  }
  void judge(const crash::ledger& book) {
    crash::verdict found = book.judge();
    for (const auto& finding : found.findings) add(finding);
    found.findings = {};
    found.lost_jobs = {};
    all.found = found;
  }
  std::string findings() const { return {text.data(), text_bytes}; }
};

}  // namespace sluice::sim_jobs
