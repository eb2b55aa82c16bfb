// Replies in parts: each part is sent when it is put; unsent parts are bounded like other replies.
#include <algorithm>
#include <array>
#include <charconv>

#include "jobs/http/detail/connection.hpp"

namespace sluice::jobs::http {

void connection::begin_parts(std::uint64_t number, response&& head,
                             std::shared_ptr<part_source> source) {
  if (closed_) return;
  slot& s = at(number);
  check(number >= first_ && number < next_ && !s.is_ready && s.parts == nullptr,
        "sluice::jobs::http::connection", "one answer for each request");
  if (s.is_old) s.is_last = true;
  const std::size_t before = s.bytes.size();
  append_response(
      s.bytes, head,
      {.date = loop_.date(),
       .keeps_alive = !s.is_last,
       .body = s.is_old ? response_form::frame::to_the_end : response_form::frame::chunked});
  made_bytes_ += s.bytes.size() - before;
  s.parts = std::move(source);
  end_long_answer(s);
  loop_.counts().count(s.target, head.status);
  loop_.touch(*this);
}

bool connection::put_part(std::uint64_t number, std::string_view bytes) {
  if (closed_ || bytes.empty()) return true;
  slot& s = at(number);
  const std::size_t before = s.bytes.size();
  if (s.is_old) {
    s.bytes += bytes;
  } else {
    std::array<char, 16> length{};
    const auto end = std::to_chars(length.data(), length.data() + length.size(), bytes.size(), 16);
    s.bytes.append(length.data(), end.ptr);
    s.bytes += "\r\n";
    s.bytes += bytes;
    s.bytes += "\r\n";
  }
  made_bytes_ += s.bytes.size() - before;
  count_memory();
  loop_.touch(*this);
  s.is_full = is_short_of_memory(s);
  return !s.is_full;
}

void connection::end_parts(std::uint64_t number) {
  if (closed_) return;
  slot& s = at(number);
  if (!s.is_old) {
    constexpr std::string_view last_chunk = "0\r\n\r\n";
    s.bytes += last_chunk;
    made_bytes_ += last_chunk.size();
  }
  s.is_last = s.is_last || loop_.server().is_closing() || loop_.is_stopping() ||
              (is_last_ && number + 1 == next_);
  s.is_ready = true;
  s.parts.reset();
  loop_.touch(*this);
}

// Resumes the source of the first slot only: the others are not sent before it.
void connection::resume_parts() {
  if (closed_ || slots_open() == 0) return;
  slot& s = at(first_);
  if (!s.is_full || is_short_of_memory(s)) return;
  s.is_full = false;
  const std::shared_ptr<part_source> source = s.parts;
  if (source != nullptr) source->put_more();
}

}  // namespace sluice::jobs::http
