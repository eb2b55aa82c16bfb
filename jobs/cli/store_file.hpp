#pragma once

// Returns the store's file for a path given by the user: the server's data folder, or the file
// itself.

#include <filesystem>
#include <string>

namespace sluice::jobs::cli {

inline std::string store_file(const std::string& path) {
  std::error_code ignored;  // an inaccessible path is treated as a file, and rejected as such
  return std::filesystem::is_directory(path, ignored) ? path + "/jobs.db" : path;
}

}  // namespace sluice::jobs::cli
