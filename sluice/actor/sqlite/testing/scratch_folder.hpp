#pragma once

// A folder for the files of one test, gone with it.

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "sluice/base/check.hpp"

namespace sluice::testing {

class scratch_folder {
 public:
  scratch_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice_actor_XXXXXX").string();
    check(::mkdtemp(name.data()) != nullptr, "test", "a folder for temporary files");
    path_ = name;
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace sluice::testing
