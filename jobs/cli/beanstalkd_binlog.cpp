#include "jobs/cli/beanstalkd_binlog.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace sluice::jobs::cli {
namespace {

namespace fs = std::filesystem;

// Matches binlog.1, binlog.2 and so on.
bool is_binlog(std::string_view name) {
  constexpr std::string_view prefix = "binlog.";
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return false;
  return std::ranges::all_of(name.substr(prefix.size()),
                             [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

void_result check_no_binlog(const std::string& folder) {
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) {
    const std::string name = at->path().filename().string();
    if (!is_binlog(name)) continue;
    return error{
        error_code::wrong_state,
        "the folder " + folder + " has a binlog of beanstalkd (" + name +
            "), whose jobs cannot be read: start beanstalkd on the folder and drain it, or "
            "use another folder with -b; to start here without these jobs, or after "
            "draining, move the files binlog.* away"};
  }
  return done{};
}

}  // namespace sluice::jobs::cli
