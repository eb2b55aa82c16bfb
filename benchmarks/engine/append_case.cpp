// `append_bare`: the limit of the disk. One thread appends the bytes of 1024 jobs (id and
// args) to a file and syncs it, then the bytes of their 1024 acks (id) and syncs again.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>

#include "benchmarks/engine/workloads.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::bench {
namespace {

using clock = std::chrono::steady_clock;

void append_and_sync(int file, const std::string& bytes) {
  if (::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
      ::fdatasync(file) != 0) {
    fail(std::string("append: ") + std::strerror(errno));
  }
}

tally append(seconds duration) {
  const testing::temporary_folder folder(testing::program_folder());
  const std::string path = folder.file("bare.log");
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) fail("cannot make " + path);
  const std::string jobs(bare_batch * (sizeof(std::uint64_t) + args_bytes), 'x');
  const std::string acks(bare_batch * sizeof(std::uint64_t), 'x');
  std::uint64_t done = 0;
  const auto began = clock::now();
  while (clock::now() - began < duration) {
    append_and_sync(file, jobs);
    append_and_sync(file, acks);
    done += bare_batch;
  }
  const seconds took = clock::now() - began;
  ::close(file);
  return {done, took};
}

const registration added{[](suite& s) { s.add("lifecycle", "append_bare", per_second(append)); }};

}  // namespace
}  // namespace sluice::bench
