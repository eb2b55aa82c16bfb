// Programs for the tests of the freezer, chosen by the first argument.
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

void print_pid(pid_t pid) {
  std::printf("%d\n", static_cast<int>(pid));
  std::fflush(stdout);
}

bool is_stopped_by_tracer(int tid) {
  std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return text.find(") t ") != std::string::npos;
}

// Returns after each thread was stopped for `length` without interruption.
int see_freezes(milliseconds length, int count) {
  std::atomic<bool> done{false};
  for (int n = 0; n < count; ++n) {
    std::atomic<int> tid{0};
    done = false;
    const std::jthread spinning([&] {
      tid = ::gettid();
      while (!done) {
      }
    });
    while (tid == 0) std::this_thread::yield();
    for (auto since = steady_clock::now(); steady_clock::now() - since < length;) {
      if (!is_stopped_by_tracer(tid)) since = steady_clock::now();
    }
    done = true;
  }
  return 0;
}

// Runs `count` threads. Returns after `seen` or more of them were stopped at once, 10 times.
int see_crowds(std::size_t count, std::size_t seen) {
  std::atomic<bool> done{false};
  std::vector<std::atomic<int>> tids(count);
  std::vector<std::jthread> threads;
  for (std::atomic<int>& tid : tids) {
    threads.emplace_back([&] {
      tid = ::gettid();
      while (!done) std::this_thread::yield();
    });
  }
  bool was_seen = false;
  for (int times = 0; times < 10;) {
    const auto stopped = std::ranges::count_if(
        tids, [](const auto& tid) { return tid != 0 && is_stopped_by_tracer(tid); });
    const bool is_seen = static_cast<std::size_t>(stopped) >= seen;
    if (is_seen && !was_seen) ++times;
    was_seen = is_seen;
  }
  done = true;
  return 0;
}

std::atomic<int> handled{0};

// Sends each signal when the one before was handled: none may be lost.
int receive_signals(int count) {
  ::signal(SIGUSR1, [](int) { ++handled; });
  std::atomic<bool> done{false};
  std::atomic<bool> ended{false};
  std::jthread receiver([&] {
    while (!done) ::pause();
    ended = true;
  });
  for (int n = 0; n < count; ++n) {
    ::pthread_kill(receiver.native_handle(), SIGUSR1);
    while (handled.load() <= n) std::this_thread::yield();
  }
  // The receiver may have read `done` already and block afterwards, at any later time.
  done = true;
  while (!ended) {
    ::pthread_kill(receiver.native_handle(), SIGUSR1);
    std::this_thread::yield();
  }
  return 0;
}

// Exit code 0: the child stopped, continued and ended with 5.
int stop_and_continue() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);
    ::_exit(5);
  }
  int status = 0;
  if (::waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status)) return 1;
  ::kill(child, SIGCONT);
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 2;
  return WEXITSTATUS(status) == 5 ? 0 : 3;
}

int exec_from_a_thread(const char* self) {
  std::jthread([self] { ::execl(self, self, "exit", "7", nullptr); }).join();
  return 1;
}

int leave_a_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  print_pid(child);
  return 0;
}

int block() {
  print_pid(::getpid());
  const std::jthread other([] { ::pause(); });
  for (;;) ::pause();
}

int futex(std::atomic<int>& word, int operation, int value, const timespec* limit = nullptr) {
  static_assert(sizeof(std::atomic<int>) == sizeof(int));
  return static_cast<int>(::syscall(SYS_futex, &word, operation, value, limit));
}

// The planted bug: the waiter waits on a word that the waker does not change, so a wake-up between
// its check and its wait is lost. Alone the check is a millisecond earlier than the wake-up.
int lose_a_wake_up(int rounds) {
  std::atomic<int> ready{0};
  std::atomic<int> word{0};
  std::atomic<bool> is_lost{false};
  for (int n = 0; n < rounds && !is_lost; ++n) {
    ready = 0;
    std::atomic<bool> has_started{false};
    const std::jthread waiter([&] {
      const timespec limit{2, 0};
      has_started = true;
      while (ready == 0) {
        const bool is_timeout = futex(word, FUTEX_WAIT, 0, &limit) != 0 && errno == ETIMEDOUT;
        if (is_timeout && ready != 0) is_lost = true;
      }
    });
    while (!has_started) std::this_thread::yield();
    const auto end = steady_clock::now() + milliseconds(1);
    while (steady_clock::now() < end) {
    }
    ready = 1;
    futex(word, FUTEX_WAKE, 1);
  }
  return is_lost ? 1 : 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string name = count > 1 ? words[1] : "";
  const int number = count > 2 ? std::atoi(words[2]) : 0;
  if (name == "exit") return number;
  if (name == "raise") return ::raise(number);
  if (name == "copy") {
    std::cout << std::cin.rdbuf();
    std::cerr << "copied\n";
    return std::cout.good() ? 0 : 1;
  }
  if (name == "freezes") return see_freezes(milliseconds(number), std::atoi(words[3]));
  if (name == "crowds") {
    return see_crowds(static_cast<std::size_t>(number), std::strtoul(words[3], nullptr, 10));
  }
  if (name == "signals") return receive_signals(number);
  if (name == "stop") return stop_and_continue();
  if (name == "exec") return exec_from_a_thread(words[0]);
  if (name == "leave") return leave_a_child();
  if (name == "block") return block();
  if (name == "race") return lose_a_wake_up(number);
  std::fprintf(stderr, "unknown subject '%s'\n", name.c_str());
  return 64;
}
