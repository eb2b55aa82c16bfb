#include "jobs/cli/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace sluice::jobs::cli {
namespace {

bool is_terminal(std::FILE* file) {
  return ::isatty(::fileno(file)) == 1;
}

bool has_colours() {
  const char* no = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return (no == nullptr || *no == '\0') && (term == nullptr || std::strcmp(term, "dumb") != 0);
}

result<std::string> read_stream(std::FILE* from, const std::string& name, std::size_t bytes_max) {
  std::string text;
  std::array<char, 65536> part;
  for (;;) {
    const std::size_t n = std::fread(part.data(), 1, part.size(), from);
    text.append(part.data(), n);
    if (text.size() > bytes_max) {
      return error{error_code::too_large,
                   name + " is larger than the limit of " + std::to_string(bytes_max) + " bytes"};
    }
    if (n < part.size()) break;
  }
  if (std::ferror(from) != 0) {
    return error{error_code::io_error, "cannot read " + name + ": " + std::strerror(errno)};
  }
  return text;
}

void write(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
}

}  // namespace

console::console(streams s)
    : in_(s.in),
      out_(s.out),
      err_(s.err),
      interactive_(is_terminal(s.in) && is_terminal(s.err)),
      err_is_terminal_(is_terminal(s.err)),
      out_style_{is_terminal(s.out) && has_colours()},
      err_style_{err_is_terminal_ && has_colours()} {}

std::size_t console::columns() const noexcept {
  winsize size{};
  constexpr std::size_t columns_default = 80;
  if (!err_is_terminal_ || ::ioctl(::fileno(err_), TIOCGWINSZ, &size) != 0) return columns_default;
  return size.ws_col >= 20 ? size.ws_col : columns_default;
}

void console::print(std::string_view text) const {
  write(out_, text);
}

void console::line(std::string_view text) const {
  write(out_, text);
  write(out_, "\n");
}

void console::note(std::string_view text) const {
  write(err_, text);
  write(err_, "\n");
}

void console::progress(std::string_view text) const {
  if (!err_is_terminal_) return;
  write(err_, "\r\033[K");
  write(err_, text);
  std::fflush(err_);
}

exit_code console::complain(exit_code code, std::string_view message) const {
  note(err_style_.red("sluice:") + " " + std::string(message));
  return code;
}

exit_code console::complain(const error& why) const {
  return complain(exit_code_for(why.code), why.message);
}

bool console::confirms(std::string_view question) const {
  write(err_, question);
  write(err_, " [y/N] ");
  std::fflush(err_);
  std::array<char, 64> answer{};
  if (std::fgets(answer.data(), static_cast<int>(answer.size()), in_) == nullptr) return false;
  return answer[0] == 'y' || answer[0] == 'Y';
}

result<std::string> console::read_all(std::size_t bytes_max) const {
  return read_stream(in_, "standard input", bytes_max);
}

void_result console::flush() const {
  if (std::fflush(out_) == 0 && std::ferror(out_) == 0) return done{};
  return error{error_code::io_error,
               std::string("cannot write to standard output: ") + std::strerror(errno)};
}

result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  if (file == nullptr) {
    return error{errno == ENOENT ? error_code::not_found : error_code::io_error,
                 "cannot open " + path + ": " + std::strerror(errno)};
  }
  return read_stream(file.get(), path, bytes_max);
}

}  // namespace sluice::jobs::cli
