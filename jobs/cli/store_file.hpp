#pragma once

// The file of a store, from what a person names: the server's data folder, or the file itself.

#include <filesystem>
#include <string>

namespace sluice::jobs::cli {

inline std::string store_file(const std::string& path) {
  std::error_code ignored;  // what cannot be looked at is taken for a file, and refused as such
  return std::filesystem::is_directory(path, ignored) ? path + "/jobs.db" : path;
}

}  // namespace sluice::jobs::cli
