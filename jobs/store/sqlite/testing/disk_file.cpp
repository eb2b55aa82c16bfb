#include "jobs/store/sqlite/testing/disk_file.hpp"

#include <algorithm>
#include <cstring>

namespace sluice::jobs::testing {

std::size_t disk_file::read(void* to, std::size_t count, std::uint64_t offset) const noexcept {
  if (offset >= seen_.size()) return 0;
  const auto there = std::min<std::uint64_t>(count, seen_.size() - offset);
  std::memcpy(to, seen_.data() + offset, there);
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
  // Only what is dirty: what a failed sync has made the system forget is not stored by a later one.
  for (const auto& it : dirty_) {
    stored_.resize(it.size);
    const auto from = it.first_sector * sector_bytes;
    if (from >= stored_.size()) continue;
    const auto count = std::min<std::uint64_t>(it.sectors.size(), stored_.size() - from);
    std::memcpy(stored_.data() + from, it.sectors.data(), count);
  }
  dirty_.clear();
}

void disk_file::revert_dirty() {
  seen_ = stored_;
  dirty_.clear();
}

void disk_file::corrupt(std::uint64_t offset, std::size_t count, random& chance) {
  for (auto at = offset; at < offset + count; ++at) {
    const auto flip = static_cast<char>(1 + chance.below(255));  // never zero: it does change
    if (at < seen_.size()) seen_[at] = static_cast<char>(seen_[at] ^ flip);
    if (at < stored_.size()) stored_[at] = static_cast<char>(stored_[at] ^ flip);
  }
}

// Puts together what is on the disk when the power comes back.
class disk_file::aftermath {
 public:
  aftermath(const disk_file& before, random& chance)
      : chance_(chance), size_(before.stored_.size()) {
    auto largest = before.stored_.size();
    for (const auto& it : before.dirty_) largest = std::max<std::size_t>(largest, it.size);
    bytes_ = before.stored_;
    bytes_.resize(sectors_of(largest) * sector_bytes);
    arrived_.assign(sectors_of(largest), false);
    std::fill_n(arrived_.begin(), sectors_of(before.stored_.size()), true);
  }

  void apply(const operation& it) {
    apply_sectors(it, [] { return true; });
    size_ = it.size;
  }
  // Each sector with a probability of `percent`; the size is left to whoever calls.
  void apply_torn(const operation& it, std::uint32_t percent) {
    apply_sectors(it, [&] { return chance_.below(100) < percent; });
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
  void apply_sectors(const operation& it, Chosen chosen) {
    const bool cuts_off = it.sectors.empty();
    const auto end =
        cuts_off ? arrived_.size() : it.first_sector + it.sectors.size() / sector_bytes;
    for (auto sector = it.first_sector; sector < end; ++sector) {
      if (!chosen()) continue;
      const auto from = sector * sector_bytes;
      if (cuts_off) {
        const auto kept = it.zero_from > from ? it.zero_from - from : 0;
        std::memset(bytes_.data() + from + kept, 0, sector_bytes - kept);
      } else {
        const auto at = (sector - it.first_sector) * sector_bytes;
        std::memcpy(bytes_.data() + from, it.sectors.data() + at, sector_bytes);
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
  std::vector<bool> arrived_;  // by sector: something is known to have been stored there
};

disk_file disk_file::after_power_cut(random& chance) const {
  return after_power_cut(chance, static_cast<cut>(chance.below(4)));
}

disk_file disk_file::after_power_cut(random& chance, cut how) const {
  aftermath after(*this, chance);
  const auto operations = static_cast<std::uint32_t>(dirty_.size());
  switch (how) {
    case cut::loses_all:
      break;
    case cut::keeps_all:
      for (const auto& it : dirty_) after.apply(it);
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
      // Now nearly all arrives, now nearly nothing: a fixed half would make both rare.
      const auto percent = 1 + chance.below(99);
      for (const auto& it : dirty_) after.apply_torn(it, percent);
      const auto size = chance.below(operations + 1);
      if (size > 0) after.resize(dirty_[size - 1].size);
      break;
    }
  }
  return after.finish(chance.below(2) == 0);
}

}  // namespace sluice::jobs::testing
