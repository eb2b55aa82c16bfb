#include "jobs/store/sqlite/detail/file_watch.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::detail::file_watch_test {
namespace {

class file_watch_test : public ::testing::Test {
 protected:
  file_watch_test() {
    write(path, "12345");
    watch.add(path);
    watch.add(log);
    EXPECT_EQ(loss(), "");
  }
  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::app) << bytes;
  }
  std::string loss(std::uint64_t log_bytes = 0) {
    return watch.find_loss({log, log_bytes}).value_or("");
  }

  sluice::testing::temporary_folder folder;
  const std::string path = folder.file("a");
  const std::string log = folder.file("a-log");
  file_watch watch;
};

TEST_F(file_watch_test, AGrowingFileIsNoLoss) {
  write(path, "6");
  EXPECT_EQ(loss(), "");
}

TEST_F(file_watch_test, ADeletedFileIsALoss) {
  std::filesystem::remove(path);
  EXPECT_EQ(loss(), path + " was deleted");
}

TEST_F(file_watch_test, AnotherFileOfTheSameNameAndContentIsALoss) {
  const std::string copy = folder.file("copy");
  std::filesystem::copy_file(path, copy);
  std::filesystem::rename(copy, path);
  EXPECT_EQ(loss(), path + " was replaced by another file");
}

TEST_F(file_watch_test, ATruncatedFileIsALoss) {
  write(path, "67");
  EXPECT_EQ(loss(), "");
  std::filesystem::resize_file(path, 6);
  EXPECT_EQ(loss(), path + " was truncated: it has 6 of at least 7 bytes");
}

TEST_F(file_watch_test, AFileThatIsCreatedLaterIsWatchedFromThenOn) {
  write(log, "123456");
  EXPECT_EQ(loss(), "");
  std::filesystem::resize_file(log, 4);
  EXPECT_EQ(loss(4), "") << "this one may get shorter";
  EXPECT_NE(loss(5), "");
  std::filesystem::remove(log);
  EXPECT_EQ(loss(), log + " was deleted");
}

}  // namespace
}  // namespace sluice::jobs::detail::file_watch_test
