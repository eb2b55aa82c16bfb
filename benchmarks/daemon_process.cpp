#include "benchmarks/daemon_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "benchmarks/child_process.hpp"

namespace sluice::bench {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

int open_to_write(const fs::path& file) {
  const int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (opened < 0) fail("cannot write " + file.string());
  return opened;
}

constexpr std::chrono::minutes patience{1};  // for a start or an end
constexpr std::chrono::microseconds poll_interval{200};

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

double memory_mb(pid_t pid, std::string_view field) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(field)) return std::stod(line.substr(field.size())) / 1024;
  }
  fail("/proc/PID/status has no field for the memory of the server");
}

}  // namespace

daemon_process::daemon_process(const std::vector<std::string>& command, fs::path log, end ending,
                               const std::function<bool()>& is_up)
    : log_(std::move(log)), ending_(ending), kill_([this] {
        if (pid_ == 0) return;
        ::kill(pid_, SIGKILL);
        std::cerr << "log of the server:\n" << text_of(log_) << std::flush;
      }) {
  const int out = open_to_write(log_);
  pid_ = start_child(command, {.out = out, .err = out});
  ::close(out);
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (!is_up()) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = 0;
      fail(command[0] + " ended at once; its log:\n" + text_of(log_));
    }
    if (std::chrono::steady_clock::now() > give_up) {
      fail(command[0] + " did not listen within a minute");
    }
    std::this_thread::sleep_for(poll_interval);
  }
}

void daemon_process::kill() {
  ::kill(pid_, SIGKILL);
  wait_for(pid_);
  pid_ = 0;
}

daemon_process::~daemon_process() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGTERM);
  const auto give_up = std::chrono::steady_clock::now() + patience;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > give_up) {
      fail("the server did not end within a minute after SIGTERM");
    }
    std::this_thread::sleep_for(poll_interval);
  }
  pid_ = 0;
  if (ending_ == end::must_be_clean && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
    fail("the server ended with an error; its log:\n" + text_of(log_));
  }
}

double daemon_process::cpu_us() const {
  double ns = 0;
  bool has_times = false;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(pid_) + "/task")) {
    std::ifstream in(task.path() / "schedstat");
    double of_thread = 0;
    if (!(in >> of_thread)) continue;
    ns += of_thread;
    has_times = true;
  }
  if (!has_times) fail("this kernel has no /proc/PID/task/*/schedstat to read CPU times from");
  return ns / 1e3;
}

double daemon_process::resident_mb() const {
  return memory_mb(pid_, "VmRSS:");
}

double daemon_process::peak_mb() const {
  return memory_mb(pid_, "VmHWM:");
}

}  // namespace sluice::bench
