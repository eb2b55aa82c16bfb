#include "benchmarks/server/server_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

#include "benchmarks/child_process.hpp"
#include "benchmarks/harness.hpp"

namespace sluice::bench {
namespace {

namespace fs = std::filesystem;

fs::path program() {
  const fs::path build = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  return build / "jobs" / "cli" / "sluice";
}

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

double memory_mb(pid_t of, std::string_view what) {
  std::ifstream in("/proc/" + std::to_string(of) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(what)) return std::stod(line.substr(what.size())) / 1024;
  }
  fail("/proc/PID/status does not say how much memory the server has");
}

}  // namespace

server_process::server_process(const fs::path& folder, std::vector<std::string> more)
    : log_(folder / "server.log"), started_(std::chrono::steady_clock::now()) {
  const fs::path port_file = folder / "port";
  fs::remove(port_file);
  // No grace: a worker of a bench that holds a lease at the end is gone already.
  std::vector<std::string> command = {program().string(), "serve", "--data",
                                      (folder / "data").string()};
  for (const char* word : {"--port", "0", "--log-level", "warn", "--shutdown-grace", "0s"}) {
    command.emplace_back(word);
  }
  command.insert(command.end(), {"--port-file", port_file.string()});
  command.insert(command.end(), more.begin(), more.end());
  const int nowhere = open_to_write("/dev/null");
  const int log = open_to_write(log_);
  pid_ = start_child(command, {.out = nowhere, .err = log});
  ::close(nowhere);
  ::close(log);
  const auto patience = started_ + std::chrono::minutes(1);
  for (;;) {
    if (const std::string text = text_of(port_file); text.ends_with('\n')) {
      port_ = static_cast<std::uint16_t>(std::stoi(text));
      return;
    }
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = 0;
      fail("the server ended at once; it said:\n" + text_of(log_));
    }
    if (std::chrono::steady_clock::now() > patience) {
      ::kill(pid_, SIGKILL);
      fail("the server did not listen within a minute; it said:\n" + text_of(log_));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void server_process::kill() {
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

server_process::~server_process() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGTERM);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fail("the server did not end well; it said:\n" + text_of(log_));
  }
}

double server_process::cpu_us() const {
  double ns = 0;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(pid_) + "/task")) {
    std::ifstream in(task.path() / "schedstat");
    double of_thread = 0;
    if (in >> of_thread) ns += of_thread;
  }
  if (ns == 0) fail("this kernel has no /proc/PID/task/*/schedstat to read CPU times from");
  return ns / 1e3;
}

double server_process::resident_mb() const {
  return memory_mb(pid_, "VmRSS:");
}

double server_process::peak_mb() const {
  return memory_mb(pid_, "VmHWM:");
}

}  // namespace sluice::bench
