#include "jobs/worker/detail/attempt_notes.hpp"

#include <algorithm>

namespace sluice::jobs::detail {
namespace {

// Cuts at a character boundary.
std::string_view cut(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most);
}

}  // namespace

void kept_notes::add(std::string_view line) {
  line = cut(line, limits::log_line_bytes_max);
  // One line is reserved for the count of dropped lines.
  if (notes.lines.size() + 1 >= limits::log_lines_at_once || bytes + line.size() > bytes_max) {
    ++left_out;
    return;
  }
  bytes += line.size();
  notes.lines.emplace_back(line);
}

template <class Change>
void attempt_notes::change(Change apply) {
  const bool is_first = state_.with([&](state& s) {
    const bool was_empty = s.is_empty();
    apply(s);
    return was_empty && !s.is_empty();
  });
  if (is_first && wake_) wake_();
}

void attempt_notes::note(jobs::progress latest) {
  // NaN becomes 0.
  latest.percent = latest.percent >= 0 ? std::min(latest.percent, 100.0) : 0;
  latest.text = cut(latest.text, limits::progress_bytes_max);
  change([&](state& s) { s.notes.progress = std::move(latest); });
}

void attempt_notes::note_lines(std::string_view text) {
  change([&](state& s) {
    for (;;) {
      const std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      s.add(line);
      if (end == std::string_view::npos || end + 1 == text.size()) return;
      text.remove_prefix(end + 1);
    }
  });
}

attempt_notes::taken attempt_notes::take() {
  return state_.with([](state& s) {
    taken all = std::exchange(s.notes, {});
    s.bytes = 0;
    if (const std::uint64_t left_out = std::exchange(s.left_out, 0); left_out > 0) {
      all.lines.push_back("(" + std::to_string(left_out) +
                          (left_out == 1 ? " line was" : " lines were") +
                          " dropped: written faster than they could be sent)");
    }
    return all;
  });
}

bool attempt_notes::is_empty() const {
  return state_.lock()->is_empty();
}

}  // namespace sluice::jobs::detail
