#include "jobs/store/sqlite/detail/log_scan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "jobs/store/sqlite/detail/log_format.hpp"
#include "jobs/store/sqlite/testing/raw_database.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::detail::log_scan_test {
namespace {

constexpr std::size_t frame_bytes = frame_head_bytes + 4096;

class log_scan_test : public ::testing::Test {
 protected:
  // The log of a database after commits that each have several frames.
  log_scan_test() {
    const std::string path = folder.file("a.db");
    testing::raw_database file(path);
    file.run("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (x)");
    for (int i = 0; i < commits; ++i) file.run("INSERT INTO t VALUES (randomblob(20000))");
    std::ifstream in(path + "-wal", std::ios::binary);
    log.assign(std::istreambuf_iterator<char>(in), {});
    for (std::size_t n = 1; at_frame(n) < log.size(); ++n) {
      if (log.compare(at_frame(n) + at_frame_commit, 4, std::string(4, '\0')) != 0) {
        ends.push_back(n);
      }
    }
  }
  // Frames count from 1.
  static std::size_t at_frame(std::size_t n) { return log_head_bytes + (n - 1) * frame_bytes; }
  void damage(std::size_t frame) { log[at_frame(frame) + frame_head_bytes + 100] ^= 1; }

  bool read(std::span<unsigned char> into, std::uint64_t at) const {
    if (at + into.size() > log.size()) return false;
    std::memcpy(into.data(), log.data() + at, into.size());
    return true;
  }
  std::optional<log_damage> scan() {
    return find_log_damage(
        [this](std::span<unsigned char> into, std::uint64_t at) { return read(into, at); });
  }

  static constexpr int commits = 5;
  sluice::testing::temporary_folder folder;
  std::string log;
  std::vector<std::size_t> ends;  // the last frame of each commit
};

TEST_F(log_scan_test, ASoundLogHasNoDamage) {
  ASSERT_EQ(ends.size(), commits + 1U);
  EXPECT_FALSE(scan());
}

// A power cut during the sync of the last commit may leave its end and not its beginning.
TEST_F(log_scan_test, ACommitWithOnlyItsEndIsNotACertainLoss) {
  const std::size_t first = ends[ends.size() - 2] + 1;
  ASSERT_LT(first, ends.back());
  damage(first);
  const auto found = scan();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->frame, first);
  EXPECT_EQ(found->commits_behind, 1U);
  EXPECT_FALSE(found->is_certain());
  EXPECT_NE(found->describe().find("the last commit is incomplete"), std::string::npos);
}

TEST_F(log_scan_test, TwoCommitsAfterADamagedFrameAreACertainLoss) {
  const std::size_t first = ends[ends.size() - 3] + 1;
  damage(first);
  const auto found = scan();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->frame, first);
  EXPECT_EQ(found->commits_behind, 2U);
  EXPECT_TRUE(found->is_certain());
}

// A failed commit leaves such frames after a shorter commit that overwrote its start.
TEST_F(log_scan_test, CommitsWithInvalidFramesBetweenAreNotACertainLoss) {
  damage(ends[ends.size() - 3] + 1);
  damage(ends[ends.size() - 2] + 1);
  const auto found = scan();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->commits_behind, 2U);
  EXPECT_FALSE(found->is_certain());
}

TEST_F(log_scan_test, AFrameWrittenDuringTheScanIsNotReported) {
  const std::size_t late = ends[1] + 1;
  bool is_written = false;
  const auto found = find_log_damage([&](std::span<unsigned char> into, std::uint64_t at) {
    if (!read(into, at)) return false;
    if (at == at_frame(late) && !std::exchange(is_written, true)) std::ranges::fill(into, 0);
    return true;
  });
  EXPECT_TRUE(is_written);
  EXPECT_FALSE(found);
}

TEST_F(log_scan_test, ALogRestartedDuringTheScanIsNotReported) {
  damage(1);
  int heads = 0;
  const auto found = find_log_damage([&](std::span<unsigned char> into, std::uint64_t at) {
    if (!read(into, at)) return false;
    if (at == 0 && heads++ > 0) into[at_log_salts] ^= 1;
    return true;
  });
  EXPECT_FALSE(found);
}

}  // namespace
}  // namespace sluice::jobs::detail::log_scan_test
