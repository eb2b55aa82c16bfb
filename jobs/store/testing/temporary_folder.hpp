#pragma once

// A fresh folder for the files of one test, gone with all that is in it at the end.

#include <cstdlib>
#include <filesystem>
#include <string>

#include "sluice/base/check.hpp"

namespace sluice::jobs::testing {

class temporary_folder {
 public:
  temporary_folder() {
    path_ = (std::filesystem::temp_directory_path() / "sluice-test-XXXXXX").string();
    check(::mkdtemp(path_.data()) != nullptr, "test", "a temporary folder");
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const noexcept { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace sluice::jobs::testing
