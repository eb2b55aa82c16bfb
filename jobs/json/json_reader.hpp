#pragma once

// A pull parser for untrusted JSON, with the position of the first error: reads one token after the
// other, without building a tree.
//
// Use it through `read<T>` (codec.hpp); directly only for a type without a codec.
//
// Guarantees: strict RFC 8259, UTF-8 included; nesting up to depth_max. The first error is kept:
// after it every call returns at once with an empty value, so callers check once, at the end
// (`finish`). An error has the path of the value, if any, and its line and column (in characters,
// from 1): `jobs[2].retry.factor: expected a number from 1 to 1000, found a string (line 3, column
// 14)`. `raw` returns a value as its unchanged text, also 12345678901234567890 or 1.10. For any
// text, never aborts and throws nothing except std::bad_alloc. Returned views point into the text,
// which must outlive them.
// Cost: one pass; allocates only for strings with escapes and for an error.
//
//     json_reader in(text);
//     for (in.begin_array(); in.next_element();) sum += in.whole(0, 100);
//     if (auto read = in.finish(); !read) return read.error();

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs::json {

class json_reader {
 public:
  static constexpr std::size_t depth_max = 100;
  enum class unknown_fields : std::uint8_t { refused, skipped };
  enum class kind : std::uint8_t { object, array, string, number, boolean, null, other, end };

  // `first_line` is the number of the text's first line, for a part of a larger text.
  explicit json_reader(std::string_view text, std::size_t first_line = 1,
                       unknown_fields policy = unknown_fields::refused) noexcept
      : text_(text), first_line_(first_line), policy_(policy) {}
  json_reader(const json_reader&) = delete;
  json_reader& operator=(const json_reader&) = delete;

  bool ok() const noexcept { return !error_; }
  // Returns the first error, if any; an error also if more than white space follows.
  void_result finish();
  unknown_fields policy() const noexcept { return policy_; }

  kind peek() noexcept;

  // Call begin, then next until it returns false: at the end, or after an error.
  void begin_object();
  bool next_key(std::string_view& key);  // valid until the next call
  void begin_array();
  bool next_element();
  // Sets the name of the next member, for messages. Not needed for elements.
  void name_member(std::string_view name) noexcept;

  std::string string();
  // Like string(), without a copy; valid until the next call. For words that are compared at once.
  std::string_view word();
  std::int64_t whole(std::int64_t least, std::int64_t most);
  std::uint64_t natural(std::uint64_t least = 0,
                        std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
  double number(double least, double most);
  bool boolean();
  // "30s", or a number of seconds.
  milliseconds duration();
  unix_time time();        // RFC 3339
  std::string base64();    // decoded
  std::string_view raw();  // any value, as its text
  std::string_view raw_object();
  bool skip_null() noexcept;  // true: the value was null
  void skip() { raw(); }

  // Fails at the last value (or the one about to be read): `expected ...`, or any other sentence.
  void refuse(std::string_view sentence);
  // Fails at an object that was read to its end.
  void refuse_object(std::string_view sentence);
  // Fails at an unknown key; the error suggests a similar name of `known`, or lists all of them.
  template <class Names>
  void refuse_key(std::string_view key, const Names& known);

  // Returns the edit distance of two words.
  static std::size_t distance(std::string_view a, std::string_view b);

 private:
  struct step {
    std::string_view name;  // of a member; empty: an element
    std::size_t index = 0;
  };
  struct scanned {
    std::string_view inside;  // between the quotes, with escapes
    bool escaped = false;
  };
  struct level {
    bool fresh;  // no member or element was read yet
    bool is_array;
  };

  bool at_end() const noexcept { return at_ == text_.size(); }
  void skip_space() noexcept;
  bool expect(kind wanted, std::string_view expected);
  scanned scan_string();
  bool scan_escape();
  std::string_view scan_number();
  bool scan_word(std::string_view word);
  void scan_scalar();
  std::string_view unescape(scanned s);
  std::string_view found(std::size_t at) const;
  std::string describe(std::size_t at) const;
  std::string path() const;
  std::string where(std::size_t at) const;
  bool open(char bracket, std::string_view expected);
  bool close_or_comma(char bracket, bool& first);
  void fail_syntax(std::size_t at, std::string_view sentence);
  void fail_at(std::size_t at, std::string_view sentence);
  void fail_number(std::size_t at, std::string_view expected, const std::string& least,
                   const std::string& most);
  void refuse_unknown(std::string_view key, std::string_view near, std::string_view all);

  // Constant after construction.
  const std::string_view text_;
  const std::size_t first_line_;
  const unknown_fields policy_;

  std::size_t at_ = 0;
  std::size_t value_at_ = 0;  // the start of the last value
  std::size_t depth_ = 0;
  std::array<step, 16> steps_{};          // of the open objects and arrays, the outermost 16
  std::array<std::size_t, 16> opened_{};  // their starts
  std::array<level, depth_max> levels_;
  std::string scratch_;  // the last string with escapes, decoded
  std::optional<error> error_;
};

template <class Names>
void json_reader::refuse_key(std::string_view key, const Names& known) {
  std::string_view near;
  std::size_t best = 3;  // from this distance on a name is not similar
  std::string all;
  for (const std::string_view name : known) {
    const std::size_t d = distance(key, name);
    if (d < best && d < name.size()) {
      best = d;
      near = name;
    }
    if (!all.empty()) all += ", ";
    all += name;
  }
  refuse_unknown(key, near, all);
}

}  // namespace sluice::jobs::json
