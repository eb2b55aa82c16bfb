#pragma once

// A fresh folder for the files of one run, gone with everything in it when it ends.
//
// It is made beside the benchmark's own program: on the disk of the checkout, and not in /tmp,
// which is memory on many machines and would make every sync free.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

class temporary_folder {
 public:
  temporary_folder() {
    const auto beside = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    std::string name = (beside / "run.").string() + std::string(6, 'X');
    if (::mkdtemp(name.data()) == nullptr) fail("cannot make a folder like " + name);
    path_ = name;
  }
  ~temporary_folder() {
    std::error_code ignored;  // a leftover folder is no reason to lose the figures
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace sluice::bench
