#pragma once

// A new folder for the files of one test or run. Its destructor deletes it with its contents.
//
// If the disk matters, as in a benchmark that waits for fsync, pass program_folder(): it is on the
// disk of the checkout, whereas the system's folder for temporary files is in memory on many
// machines.
//
//     const temporary_folder folder;
//     open(folder.file("jobs.db"));

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "sluice/base/check.hpp"

namespace sluice::testing {

// Returns the folder of the running program.
inline std::filesystem::path program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

class temporary_folder {
 public:
  temporary_folder() : temporary_folder(std::filesystem::temp_directory_path()) {}
  explicit temporary_folder(const std::filesystem::path& in) {
    path_ = (in / "sluice-").string() + std::string(6, 'X');
    check(::mkdtemp(path_.data()) != nullptr, "temporary_folder", "a folder that can be written");
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;  // a leftover folder is no reason to fail
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const noexcept { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace sluice::testing
