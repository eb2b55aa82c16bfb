#include "sluice/base/detail/thread_id.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace sluice::seam {

std::uint32_t kernel_thread_id() noexcept {
  constinit static thread_local std::uint32_t known = 0;
  if (known == 0) known = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  return known;
}

std::string thread_name(std::uint32_t kernel_id) {
  const std::string path = "/proc/self/task/" + std::to_string(kernel_id) + "/comm";
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 64> text{};
  const auto got = ::read(file, text.data(), text.size());
  ::close(file);
  std::string name(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

}  // namespace sluice::seam
