#include "jobs/store/sqlite/detail/log_scan.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <vector>

#include "jobs/store/sqlite/detail/log_format.hpp"

namespace sluice::jobs::detail {
namespace {

using octets = std::span<const unsigned char>;

struct log_checksum {
  std::uint32_t first = 0;
  std::uint32_t second = 0;

  friend bool operator==(const log_checksum&, const log_checksum&) = default;
};

std::uint32_t big_number_at(octets from, int at) {
  std::uint32_t value = 0;
  for (const unsigned char b : from.subspan(static_cast<std::size_t>(at), 4)) {
    value = value << 8 | b;
  }
  return value;
}

log_checksum checksum_at(octets from, int at) {
  return {big_number_at(from, at), big_number_at(from, at + 4)};
}

log_checksum checksum_of(log_checksum seed, octets words, bool is_big) {
  const bool must_swap = is_big != (std::endian::native == std::endian::big);
  for (std::size_t at = 0; at + 8 <= words.size(); at += 8) {
    std::uint32_t a = 0;
    std::uint32_t b = 0;
    std::memcpy(&a, words.data() + at, sizeof a);
    std::memcpy(&b, words.data() + at + 4, sizeof b);
    if (must_swap) {
      a = __builtin_bswap32(a);
      b = __builtin_bswap32(b);
    }
    seed.first += a + seed.second;
    seed.second += b + seed.first;
  }
  return seed;
}

// A file that is read through a VFS.
class vfs_file {
 public:
  vfs_file(const std::string& path, const std::string& vfs) {
    sqlite3_vfs* const on = sqlite3_vfs_find(vfs.empty() ? nullptr : vfs.c_str());
    if (on == nullptr) return;
    std::vector<char> name(static_cast<std::size_t>(on->mxPathname) + 2);  // ends with two zeros
    if (on->xFullPathname(on, path.c_str(), on->mxPathname, name.data()) != SQLITE_OK) return;
    memory_.resize(static_cast<std::size_t>(on->szOsFile) / sizeof(std::max_align_t) + 1);
    auto* const made = reinterpret_cast<sqlite3_file*>(memory_.data());
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_WAL;
    if (on->xOpen(on, name.data(), made, flags, &flags) == SQLITE_OK) {
      file_ = made;
    } else if (made->pMethods != nullptr) {
      made->pMethods->xClose(made);
    }
  }
  vfs_file(const vfs_file&) = delete;
  vfs_file& operator=(const vfs_file&) = delete;
  ~vfs_file() {
    if (file_ != nullptr) file_->pMethods->xClose(file_);
  }

  bool read(std::span<unsigned char> into, std::uint64_t at) const {
    return file_ != nullptr &&
           file_->pMethods->xRead(file_, into.data(), static_cast<int>(into.size()),
                                  static_cast<sqlite3_int64>(at)) == SQLITE_OK;
  }

 private:
  std::vector<std::max_align_t> memory_;
  sqlite3_file* file_ = nullptr;
};

// A frame from an earlier use of the log's file has neither of the current salts. A damaged frame
// of the current use has at least one of them.
int same_salts(octets frame, const std::vector<unsigned char>& salts) {
  const auto* const frame_salts = frame.data() + at_frame_salts;
  constexpr std::size_t half = salts_bytes / 2;
  return (std::memcmp(frame_salts, salts.data(), half) == 0 ? 1 : 0) +
         (std::memcmp(frame_salts + half, salts.data() + half, half) == 0 ? 1 : 0);
}

std::optional<log_damage> scan(const log_source& log, const std::vector<unsigned char>& head,
                               std::uint32_t page_bytes) {
  const std::uint32_t magic = big_number_at(head, 0);
  const octets summed = octets(head).first(at_log_checksum);
  bool is_big = (magic & 1) != 0;
  log_checksum seed = checksum_at(head, at_log_checksum);
  const bool has_head = (magic & ~1U) == log_magic && checksum_of({}, summed, is_big) == seed;
  if (has_head) page_bytes = big_number_at(head, at_page_size);
  if (!has_head) is_big = std::endian::native == std::endian::big;
  if (page_bytes == 1) page_bytes = 65536;
  if (page_bytes < 512 || page_bytes > 65536) return std::nullopt;

  std::vector<unsigned char> frame(frame_head_bytes + page_bytes);
  std::vector<unsigned char> salts;
  if (has_head) salts.assign(head.begin() + at_log_salts, head.begin() + at_log_checksum);
  log_damage found;
  std::uint64_t in_a_row = 0;
  bool is_damaged = !has_head;
  bool is_cut = false;  // a frame of the log is invalid
  for (std::uint64_t n = 0; log(frame, log_head_bytes + n * frame.size()); ++n) {
    const octets all(frame);
    const bool is_empty = big_number_at(all, 0) == 0;
    if (salts.empty() && !is_empty) {
      salts.assign(frame.begin() + at_frame_salts, frame.begin() + at_frame_checksum);
    }
    const int same = salts.empty() ? 0 : same_salts(all, salts);
    const log_checksum sum = checksum_of(checksum_of(seed, all.first(at_frame_salts), is_big),
                                         all.subspan(frame_head_bytes), is_big);
    seed = checksum_at(all, at_frame_checksum);
    const bool is_valid = !is_empty && same == 2 && sum == seed;
    is_cut = is_cut || (!is_valid && same > 0);
    if (!is_damaged && !is_valid) {
      is_damaged = true;
      found.frame = n + 1;
    } else if (is_damaged && is_valid) {
      const std::uint64_t ended = big_number_at(all, at_frame_commit) != 0 ? 1 : 0;
      ++found.frames_behind;
      found.commits_behind += ended;
      in_a_row += ended;
      found.commits_in_a_row = std::max(found.commits_in_a_row, in_a_row);
    }
    if (!is_valid) in_a_row = 0;
  }
  if (found.commits_behind == 0 && !is_cut) return std::nullopt;
  return found;
}

}  // namespace

std::string log_damage::describe() const {
  const std::string where = frame == 0 ? std::string("its head") : "frame " + std::to_string(frame);
  if (!is_certain()) {
    return where +
           " is invalid: the last commit is incomplete. After a power cut or a kill that is "
           "normal: it was never acknowledged. Otherwise an acknowledged commit is lost";
  }
  return where + " is damaged; after it there are " + std::to_string(frames_behind) +
         " valid frames with " + std::to_string(commits_behind) + " commits, which are missing";
}

std::optional<log_damage> find_log_damage(const log_source& log, std::uint32_t page_bytes) {
  std::vector<unsigned char> head(log_head_bytes);
  if (!log(head, 0)) return std::nullopt;
  const auto found = scan(log, head, page_bytes);
  if (!found) return std::nullopt;
  // A commit after a frame is written after it, so a frame that was only late is valid by now.
  const auto again = scan(log, head, page_bytes);
  std::vector<unsigned char> now(log_head_bytes);
  const bool is_same_log = log(now, 0) && now == head;
  if (!is_same_log || !again || again->frame != found->frame) return std::nullopt;
  return again;
}

std::optional<log_damage> find_log_damage(const std::string& path, const std::string& vfs) {
  const vfs_file log(path, vfs);
  return find_log_damage(
      [&log](std::span<unsigned char> into, std::uint64_t at) { return log.read(into, at); });
}

}  // namespace sluice::jobs::detail
