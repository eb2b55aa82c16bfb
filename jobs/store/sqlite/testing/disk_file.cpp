#include "jobs/store/sqlite/testing/disk_file.hpp"

#include <algorithm>
#include <cstring>

namespace sluice::jobs::testing {

std::size_t disk_file::read(void* buffer, std::size_t count, std::uint64_t offset) const noexcept {
  if (offset >= seen_.size()) return 0;
  const auto there = std::min<std::uint64_t>(count, seen_.size() - offset);
  std::memcpy(buffer, seen_.data() + offset, there);
  return there;
}

void disk_file::write(std::string_view bytes, std::uint64_t offset) {
  if (bytes.empty()) return;
  const auto end = offset + bytes.size();
  const auto begin = std::min<std::uint64_t>(offset, seen_.size());  // a gap is filled with zeros
  if (seen_.size() < end) seen_.resize(end);
  std::memcpy(seen_.data() + offset, bytes.data(), bytes.size());

  const auto first = begin / sector_bytes;
  const auto from = first * sector_bytes;
  const auto whole = (sectors_of(end) - first) * sector_bytes;
  operation made{first, seen_.substr(from, whole), seen_.size(), 0};
  made.sectors.resize(whole);
  dirty_.push_back(std::move(made));
}

void disk_file::truncate(std::uint64_t size) {
  const auto zero_from = std::min<std::uint64_t>(size, seen_.size());
  seen_.resize(size);
  dirty_.push_back({zero_from / sector_bytes, {}, size, zero_from});
}

void disk_file::sync() {
  // Stores only dirty sectors, without sectors that a failed sync has marked as written.
  for (const auto& entry : dirty_) {
    stored_.resize(entry.size);
    const auto from = entry.first_sector * sector_bytes;
    if (from >= stored_.size()) continue;
    const auto count = std::min<std::uint64_t>(entry.sectors.size(), stored_.size() - from);
    std::memcpy(stored_.data() + from, entry.sectors.data(), count);
  }
  dirty_.clear();
}

void disk_file::revert_dirty() {
  seen_ = stored_;
  dirty_.clear();
}

void disk_file::corrupt(std::uint64_t offset, std::size_t count, random& chance) {
  for (auto at = offset; at < offset + count; ++at) {
    const auto flip =
        static_cast<char>(1 + chance.below(255));  // not zero, so that the byte changes
    if (at < seen_.size()) seen_[at] = static_cast<char>(seen_[at] ^ flip);
    if (at < stored_.size()) stored_[at] = static_cast<char>(stored_[at] ^ flip);
  }
}

// Builds the contents of the disk after a power cut.
class disk_file::aftermath {
 public:
  aftermath(const disk_file& before, random& chance)
      : chance_(chance), size_(before.stored_.size()) {
    auto largest = before.stored_.size();
    for (const auto& entry : before.dirty_) largest = std::max<std::size_t>(largest, entry.size);
    bytes_ = before.stored_;
    bytes_.resize(sectors_of(largest) * sector_bytes);
    arrived_.assign(sectors_of(largest), false);
    std::fill_n(arrived_.begin(), sectors_of(before.stored_.size()), true);
  }

  void apply(const operation& entry) {
    apply_sectors(entry, [] { return true; });
    size_ = entry.size;
  }
  // Keeps each sector with a probability of `percent`; the caller chooses the size.
  void apply_torn(const operation& entry, std::uint32_t percent) {
    apply_sectors(entry, [&] { return chance_.below(100) < percent; });
  }
  void resize(std::uint64_t size) { size_ = size; }

  disk_file finish(bool junk) {
    if (junk) fill_gaps();
    disk_file after;
    bytes_.resize(size_);
    after.stored_ = bytes_;
    after.seen_ = std::move(bytes_);
    return after;
  }

 private:
  template <class Chosen>
  void apply_sectors(const operation& entry, Chosen chosen) {
    const bool cuts_off = entry.sectors.empty();
    const auto end =
        cuts_off ? arrived_.size() : entry.first_sector + entry.sectors.size() / sector_bytes;
    for (auto sector = entry.first_sector; sector < end; ++sector) {
      if (!chosen()) continue;
      const auto from = sector * sector_bytes;
      if (cuts_off) {
        const auto kept = entry.zero_from > from ? entry.zero_from - from : 0;
        std::memset(bytes_.data() + from + kept, 0, sector_bytes - kept);
      } else {
        const auto at = (sector - entry.first_sector) * sector_bytes;
        std::memcpy(bytes_.data() + from, entry.sectors.data() + at, sector_bytes);
      }
      arrived_[sector] = true;
    }
  }

  void fill_gaps() {
    for (std::size_t i = 0; i < arrived_.size(); ++i) {
      if (arrived_[i]) continue;
      for (std::size_t at = 0; at < sector_bytes; ++at) {
        bytes_[i * sector_bytes + at] = static_cast<char>(chance_.next());
      }
    }
  }

  random& chance_;
  std::uint64_t size_;
  std::string bytes_;          // whole sectors
  std::vector<bool> arrived_;  // by sector: its contents were stored
};

disk_file disk_file::after_power_cut(random& chance) const {
  return after_power_cut(chance, static_cast<cut>(chance.below(4)));
}

disk_file disk_file::after_power_cut(random& chance, cut kind) const {
  aftermath after(*this, chance);
  const auto operations = static_cast<std::uint32_t>(dirty_.size());
  switch (kind) {
    case cut::loses_all:
      break;
    case cut::keeps_all:
      for (const auto& entry : dirty_) after.apply(entry);
      break;
    case cut::keeps_a_start: {
      const auto whole = chance.below(operations + 1);
      for (std::uint32_t i = 0; i < whole; ++i) after.apply(dirty_[i]);
      if (whole < operations) {
        after.apply_torn(dirty_[whole], 50);
        if (chance.below(2) == 0) after.resize(dirty_[whole].size);
      }
      break;
    }
    case cut::keeps_some: {
      // Varies from nearly all to nearly none: a fixed half would make both rare.
      const auto percent = 1 + chance.below(99);
      for (const auto& entry : dirty_) after.apply_torn(entry, percent);
      const auto size = chance.below(operations + 1);
      if (size > 0) after.resize(dirty_[size - 1].size);
      break;
    }
  }
  return after.finish(chance.below(2) == 0);
}

}  // namespace sluice::jobs::testing
