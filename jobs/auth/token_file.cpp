#include "jobs/auth/token_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

namespace sluice::jobs {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t file_bytes_max = std::size_t{4} << 20;
constexpr mode_t own_only = 0600;

class descriptor {
 public:
  explicit descriptor(int number) noexcept : number_(number) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const noexcept { return number_; }
  bool is_open() const noexcept { return number_ >= 0; }

 private:
  int number_;
};

error cannot(std::string_view action, const std::string& file, int why) {
  std::string text =
      "cannot " + std::string(action) + " the tokens in " + file + ": " + std::strerror(why);
  if (why == EACCES) {
    text += "; it must belong to user " + std::to_string(::geteuid()) + " (chown)";
  }
  return {why == ENOSPC ? error_code::disk_full : error_code::io_error, std::move(text)};
}

std::string octal(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & 07777U));
  return text.data();
}

std::string folder_of(const std::string& file) {
  const std::string folder = fs::path(file).parent_path().string();
  return folder.empty() ? "." : folder;
}

// If root creates a file in another user's folder, changes its owner to that user, as which the
// server runs.
void give_to_owner_of_folder(int file, const std::string& folder) {
  struct stat in {};
  if (::geteuid() != 0 || ::stat(folder.c_str(), &in) != 0) return;
  [[maybe_unused]] const int given = ::fchown(file, in.st_uid, in.st_gid);
}

std::optional<std::string> read_all(int file) {
  std::string text;
  std::array<char, 16384> part{};
  for (;;) {
    const auto n = ::read(file, part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(n));
    if (text.size() > file_bytes_max) {
      errno = EFBIG;
      return std::nullopt;
    }
  }
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const auto n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

std::string token_file_in(const std::string& data_folder) {
  return (fs::path(data_folder) / "tokens.json").string();
}

result<token_set> load_tokens(const std::string& file) {
  const descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in.is_open() && errno == ENOENT) return token_set();
  if (!in.is_open()) return cannot("read", file, errno);
  struct stat found {};
  if (::fstat(in.get(), &found) != 0) return cannot("read", file, errno);
  if (!S_ISREG(found.st_mode)) {
    return error{error_code::invalid, "the token file " + file + " is not a regular file"};
  }
  if ((found.st_mode & 077U) != 0) {
    return error{error_code::invalid, "the token file " + file +
                                          " can be read or changed by other users (mode " +
                                          octal(found.st_mode) + "); run: chmod 600 " + file};
  }
  const auto text = read_all(in.get());
  if (!text) return cannot("read", file, errno);
  auto tokens = token_set::parse(*text);
  if (!tokens) {
    tokens.error().message = "the token file " + file + " is invalid: " + tokens.error().message +
                             "; correct it, or remove the file and create new tokens";
  }
  return tokens;
}

void_result save_tokens(const std::string& file, const token_set& tokens) {
  const std::string unfinished = file + ".new";
  const std::string folder = folder_of(file);
  ::unlink(unfinished.c_str());  // left over from an interrupted write
  {
    const descriptor out(
        ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, own_only));
    if (!out.is_open()) return cannot("write", file, errno);
    give_to_owner_of_folder(out.get(), folder);
    if (!write_all(out.get(), tokens.text()) || ::fsync(out.get()) != 0) {
      const int why = errno;
      ::unlink(unfinished.c_str());
      return cannot("write", file, why);
    }
  }
  if (std::rename(unfinished.c_str(), file.c_str()) != 0) {
    const int why = errno;
    ::unlink(unfinished.c_str());
    return cannot("write", file, why);
  }
  const descriptor in(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!in.is_open() || ::fsync(in.get()) != 0) return cannot("write", file, errno);
  return done{};
}

namespace detail {

result<token_file_lock> token_file_lock::take(const std::string& file) {
  const std::string beside = file + ".lock";
  const int number = ::open(beside.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, own_only);
  if (number < 0) return cannot("change", file, errno);
  give_to_owner_of_folder(number, folder_of(file));
  token_file_lock lock(number);
  while (::flock(number, LOCK_EX) != 0) {
    if (errno != EINTR) return cannot("change", file, errno);
  }
  return lock;
}

token_file_lock::~token_file_lock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace detail
}  // namespace sluice::jobs
