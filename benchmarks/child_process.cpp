#include "benchmarks/child_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>

namespace sluice::bench {

namespace {

std::string joined(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

std::string read_all(int from) {
  std::string text;
  std::array<char, 256> part{};
  for (;;) {
    const ssize_t n = ::read(from, part.data(), part.size());
    if (n > 0) {
      text.append(part.data(), static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      return text;
    }
  }
}

}  // namespace

pid_t start_child(const std::vector<std::string>& command, child_files files) {
  std::vector<char*> arguments;
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));  // posix_spawn does not write to it
  }
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, files.out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, files.err, STDERR_FILENO);
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    fail("cannot start " + joined(command) + ": " + std::strerror(error));
  }
  return child;
}

double run_child(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    fail(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  const pid_t child = start_child(command, {.out = ends[1]});
  ::close(ends[1]);
  const std::string text = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fail(joined(command) + " ended with an error");
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value <= 0) {
    fail(joined(command) + " printed '" + text + "' where a number was expected");
  }
  return value;
}

std::string built_peer(const std::string& file) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "peers" / file;
}

std::vector<std::string> java_peer(const std::string& main_class) {
  return {"java", "-cp", built_peer("java_peer.jar"), main_class};
}

measure child_run(std::vector<std::string> program, peer_run run) {
  program.insert(program.end(), {run.workload, std::to_string(run.producers),
                                 std::to_string(run.consumers), std::to_string(run.capacity)});
  return [program = std::move(program)](const settings& s) {
    std::vector<std::string> command = program;
    const auto duration = std::chrono::duration_cast<std::chrono::milliseconds>(s.run_time);
    command.push_back(std::to_string(duration.count()));
    return run_child(command);
  };
}

}  // namespace sluice::bench
