#include "jobs/store/sqlite/testing/disk_file.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace sluice::jobs::testing::disk_file_test {
namespace {

using cut = disk_file::cut;

std::string contents(const disk_file& file) {
  std::string bytes(file.size(), '\0');
  EXPECT_EQ(file.read(bytes.data(), bytes.size(), 0), bytes.size());
  return bytes;
}

std::string after(const disk_file& file, cut kind, std::uint64_t seed) {
  random chance(seed);
  return contents(file.after_power_cut(chance, kind));
}

// Writes and truncates at random offsets, with a sync now and then; returns the last synced
// contents.
std::string use(disk_file& file, random& chance, int operations) {
  std::string synced;
  for (int i = 0; i < operations; ++i) {
    const auto action = chance.below(10);
    if (action == 0) {
      file.sync();
      synced = contents(file);
    } else if (action == 1) {
      file.truncate(chance.below(6000));
    } else {
      file.write(std::string(1 + chance.below(2000), static_cast<char>('a' + chance.below(26))),
                 chance.below(6000));
    }
  }
  return synced;
}

TEST(disk_file_test, ReadsReturnWrites) {
  disk_file file;
  file.write("hello", 3);
  EXPECT_EQ(contents(file), std::string("\0\0\0hello", 8));
  file.write("J", 3);
  file.truncate(5);
  EXPECT_EQ(contents(file), std::string("\0\0\0Je", 5));
  char beyond = 'x';
  EXPECT_EQ(file.read(&beyond, 1, 5), 0U);
}

TEST(disk_file_test, APowerCutThatLosesAllLeavesTheLastSyncAndOneThatKeepsAllTheContents) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    random chance(seed);
    disk_file file;
    const auto synced = use(file, chance, 40);
    ASSERT_EQ(after(file, cut::loses_all, seed), synced) << "seed " << seed;
    ASSERT_EQ(after(file, cut::keeps_all, seed), contents(file)) << "seed " << seed;
  }
}

TEST(disk_file_test, NoPowerCutChangesSyncedData) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    random chance(seed);
    disk_file file;
    use(file, chance, 20);
    file.sync();
    const auto synced = contents(file);
    ASSERT_EQ(contents(file.after_power_cut(chance)), synced) << "seed " << seed;
  }
}

TEST(disk_file_test, AWriteIsTornOnlyAtSectors) {
  disk_file file;
  file.write(std::string(4096, 'a'), 0);
  file.sync();
  file.write(std::string(4096, 'b'), 0);
  std::set<std::string> outcomes;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const auto left = after(file, cut::keeps_some, seed);
    ASSERT_EQ(left.size(), 4096U);
    for (std::size_t sector = 0; sector < 8; ++sector) {
      const auto part = left.substr(sector * 512, 512);
      ASSERT_EQ(part.find_first_not_of(part[0]), std::string::npos) << "a torn sector";
    }
    outcomes.insert(left);
  }
  EXPECT_GT(outcomes.size(), 50U);
}

TEST(disk_file_test, LaterWritesMaySurviveWithoutEarlierWrites) {
  disk_file file;
  file.write(std::string(1024, 'a'), 0);
  file.sync();
  file.write(std::string(512, 'b'), 0);
  file.write(std::string(512, 'c'), 512);
  std::set<std::string> outcomes;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const auto left = after(file, cut::keeps_some, seed);
    outcomes.insert({left[0], left[512]});
  }
  EXPECT_EQ(outcomes, (std::set<std::string>{"aa", "ba", "ac", "bc"}));
}

TEST(disk_file_test, AnInOrderDiskKeepsNoLaterWriteWithoutTheEarlierWrites) {
  disk_file file;
  file.write(std::string(4096, 'a'), 0);
  file.sync();
  for (std::uint64_t i = 0; i < 8; ++i) file.write(std::string(512, 'x'), i * 512);
  std::set<std::size_t> kept;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const auto left = after(file, cut::keeps_a_start, seed);
    const auto whole = std::min(left.find_first_not_of('x'), left.size());
    EXPECT_EQ(left.find('x', whole), std::string::npos);
    kept.insert(whole / 512);
  }
  EXPECT_EQ(kept.size(), 9U);
}

TEST(disk_file_test, DataThatAFailedSyncForgotIsReadButNeverStored) {
  disk_file file;
  file.write(std::string(512, 'a'), 0);
  file.sync();
  file.write(std::string(512, 'b'), 0);
  file.forget_dirty();
  file.write(std::string(512, 'c'), 512);
  file.sync();
  EXPECT_EQ(contents(file)[0], 'b');
  const auto left = after(file, cut::keeps_all, 1);
  EXPECT_EQ(left[0], 'a');
  EXPECT_EQ(left[512], 'c');
}

TEST(disk_file_test, DataThatAFailedSyncRevertedHasItsOldContents) {
  disk_file file;
  file.write("old", 0);
  file.sync();
  file.write("newer", 0);
  file.revert_dirty();
  EXPECT_EQ(contents(file), "old");
}

TEST(disk_file_test, AGrownFileMayHaveJunkInUnwrittenSectors) {
  disk_file file;
  file.write(std::string(4096, 'a'), 0);
  bool junk = false;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const auto left = after(file, cut::keeps_some, seed);
    junk = junk || left.find_first_not_of(std::string("a\0", 2)) != std::string::npos;
  }
  EXPECT_TRUE(junk);
}

TEST(disk_file_test, EqualSeedsGiveEqualCuts) {
  random chance(7);
  disk_file file;
  use(file, chance, 50);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    random one(seed);
    random two(seed);
    EXPECT_EQ(contents(file.after_power_cut(one)), contents(file.after_power_cut(two)));
  }
}

}  // namespace
}  // namespace sluice::jobs::testing::disk_file_test
