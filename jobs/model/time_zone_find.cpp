// Finds the file of a zone by its name, or suggests a similar name.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include "jobs/model/detail/tzif.hpp"
#include "jobs/model/time_zone.hpp"

namespace sluice::jobs {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t name_bytes_max = 64;
constexpr std::size_t files_looked_at_max = 5000;

error wrong(error_code code, std::string_view name, std::string_view problem) {
  return {code, "time zone '" + std::string(name) + "': " + std::string(problem)};
}

fs::path folder_of(const time_zone::options& where) {
  if (!where.folder.empty()) return where.folder;
  for (const char* variable : {"TZDIR", "ZONEINFO"}) {
    const char* folder = std::getenv(variable);
    if (folder != nullptr && *folder != '\0') return folder;
  }
  return "/usr/share/zoneinfo";
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_name_character(char c) {
  const char l = lower(c);
  return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '+';
}

// Words with slashes between them: a path that cannot leave the folder.
bool is_name(std::string_view name) {
  if (name.empty() || name.size() > name_bytes_max) return false;
  char last = '/';
  for (const char c : name) {
    if (c == '/' ? last == '/' : !is_name_character(c)) return false;
    last = c;
  }
  return last != '/';
}

// Replaces control characters of an invalid name, for terminals and logs.
std::string printable(std::string_view name) {
  std::string shown(name.substr(0, name_bytes_max));
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  if (name.size() > name_bytes_max) shown += "...";
  return shown;
}

// Returns the edit distance; ignores case.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// Returns "Europe/Berlin" for "europe/berlin", "Europe/Berlni" and "Berlin"; empty if no name is
// similar.
std::string near_name(std::string_view name, const fs::path& folder) {
  std::string best;
  std::size_t best_distance = 3;
  std::size_t looked_at = 0;
  std::error_code failed;
  fs::recursive_directory_iterator it(folder, failed);
  for (; !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    if (++looked_at > files_looked_at_max) break;
    const std::string file = it->path().lexically_relative(folder).generic_string();
    if (file == "posix" || file == "right") {  // copies of the same zones
      it.disable_recursion_pending();
      continue;
    }
    std::error_code ignored;
    if (!is_name(file) || !it->is_regular_file(ignored)) continue;
    const std::string_view city = std::string_view(file).substr(file.rfind('/') + 1);
    const std::size_t d = std::min(distance(name, file), distance(name, city));
    if (d < best_distance || (d == best_distance && !best.empty() && file < best)) {
      best_distance = d;
      best = file;
    }
  }
  return best;
}

error not_there(std::string_view name, const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return wrong(error_code::invalid, name,
                 "the folder of time zones '" + folder.string() +
                     "' does not exist: install tzdata, or set TZDIR to the folder");
  }
  const std::string near = near_name(name, folder);
  return wrong(error_code::invalid, name,
               near.empty() ? std::string("unknown zone; names are like Europe/Berlin")
                            : "unknown zone; did you mean '" + near + "'?");
}

}  // namespace

result<time_zone> time_zone::find(std::string_view name) {
  return find(name, {});
}

result<time_zone> time_zone::find(std::string_view name, const options& where) {
  if (name == "UTC" || name == "Etc/UTC") return utc(name);
  if (!is_name(name)) {
    return wrong(error_code::invalid, printable(name),
                 "a name has up to 64 letters, digits, _, - and +, in words with / between, as in "
                 "Europe/Berlin");
  }
  const fs::path folder = folder_of(where);
  const fs::path path = folder / name;
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (fs::is_directory(status)) {
    return wrong(error_code::invalid, name, "this is a region; names are like Europe/Berlin");
  }
  if (!fs::is_regular_file(status)) return not_there(name, folder);
  std::ifstream file(path, std::ios::binary);
  std::string bytes(detail::tzif_bytes_max + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.is_open() || file.bad()) {
    return wrong(error_code::io_error, name, "'" + path.string() + "' cannot be read");
  }
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return read(name, bytes);
}

}  // namespace sluice::jobs
