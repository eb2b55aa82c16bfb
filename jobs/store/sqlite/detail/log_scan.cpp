#include "jobs/store/sqlite/detail/log_scan.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <span>
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

class log_reader {
 public:
  explicit log_reader(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  log_reader(const log_reader&) = delete;
  log_reader& operator=(const log_reader&) = delete;
  ~log_reader() {
    if (fd_ >= 0) ::close(fd_);
  }

  // False: there is not as much.
  bool read(std::vector<unsigned char>& into, std::uint64_t at) const {
    const auto got = fd_ < 0 ? -1 : ::pread(fd_, into.data(), into.size(), static_cast<off_t>(at));
    return got == static_cast<ssize_t>(into.size());
  }

 private:
  const int fd_;
};

// A frame of an earlier use of the log's file has neither salt of this one. A damaged frame of this
// one has at least one of them.
int same_salts(octets frame, const std::vector<unsigned char>& salts) {
  const auto* const mine = frame.data() + at_frame_salts;
  constexpr std::size_t half = salts_bytes / 2;
  return (std::memcmp(mine, salts.data(), half) == 0 ? 1 : 0) +
         (std::memcmp(mine + half, salts.data() + half, half) == 0 ? 1 : 0);
}

std::optional<log_damage> scan(const log_reader& log, const std::vector<unsigned char>& head,
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
  bool is_damaged = !has_head;
  bool is_cut = false;  // a frame of the log is not valid
  for (std::uint64_t n = 0; log.read(frame, log_head_bytes + n * frame.size()); ++n) {
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
      ++found.frames_behind;
      found.commits_behind += big_number_at(all, at_frame_commit) != 0 ? 1U : 0U;
    }
  }
  if (found.commits_behind == 0 && !is_cut) return std::nullopt;
  return found;
}

}  // namespace

std::string log_damage::describe() const {
  const std::string where = frame == 0 ? std::string("its head") : "frame " + std::to_string(frame);
  if (!is_certain()) {
    return where +
           " is not valid, and no commit is behind it: the last commit is missing, if it was " +
           "acknowledged; after a power cut or a kill it was not";
  }
  return where + " is damaged, and behind it are " + std::to_string(frames_behind) +
         " valid frames with " + std::to_string(commits_behind) +
         " commits: what they stored is missing";
}

std::optional<log_damage> find_log_damage(const std::string& path, std::uint32_t page_bytes) {
  const log_reader log(path);
  std::vector<unsigned char> head(log_head_bytes);
  if (!log.read(head, 0)) return std::nullopt;
  const auto found = scan(log, head, page_bytes);
  std::vector<unsigned char> now(log_head_bytes);
  // Begun again by a server while this read it.
  if (!log.read(now, 0) || now != head) return std::nullopt;
  return found;
}

}  // namespace sluice::jobs::detail
