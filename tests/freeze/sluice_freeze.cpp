// Runs a program and stops random threads of it for a while each, by ptrace: schedules that a busy
// machine would make. docs/internals/freezing.md
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tests/freeze/plan.hpp"

namespace sluice::freezing {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t looks_max = 32;  // reads of /proc for one decision
constexpr int misused = 2;
constexpr int not_started = 127;

constexpr std::string_view usage =
    "usage: sluice_freeze --seed N [options] PROGRAM [ARGS...]\n"
    "\n"
    "Runs PROGRAM and stops random threads of it for a while each. Ends as PROGRAM ends.\n"
    "\n"
    "  --seed N           seed of the decisions\n"
    "  --longest-ms M     longest freeze, 1 to 10000 (300)\n"
    "  --share PERCENT    share of the threads that may be frozen at once, 1 to 90 (50)\n"
    "  --children on|off  freeze also processes that PROGRAM starts (on)\n"
    "  --verbose          print the counts also when PROGRAM succeeds\n"
    "  --plan COUNT       print the first COUNT decisions of the seed and run nothing\n";

struct options {
  std::optional<std::uint64_t> seed;
  milliseconds longest{300};
  std::uint64_t share = 50;
  bool children = true;
  bool verbose = false;
  std::uint64_t plan = 0;
  char** program = nullptr;  // and its arguments, ended by a null
};

struct counts {
  std::size_t threads = 0;
  std::size_t freezes = 0;
  std::chrono::microseconds longest{0};
  std::size_t most_at_once = 0;
};

enum class state {
  running,
  wanted,     // PTRACE_INTERRUPT was sent, the stop is still to be reported
  frozen,     // until `end`
  listening,  // stopped by SIGSTOP or the like, until SIGCONT
};

struct thread {
  state is = state::running;
  int calls = 0;    // number of system-call stops before the freeze; 0: not planned
  decision plan{};  // while wanted, or while calls > 0
  clock::time_point end{};
};

// Fails with ESRCH if the thread was killed meanwhile. waitpid reports that, so no caller checks.
long trace(__ptrace_request request, pid_t tid, int data = 0) {
  return ::ptrace(request, tid, nullptr, static_cast<std::intptr_t>(data));
}

// The letter in /proc: R for running, S for blocked, Z for ended.
char kernel_state(pid_t tid) {
  std::ifstream file("/proc/" + std::to_string(tid) + "/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t name_end = text.rfind(") ");
  return name_end == std::string::npos ? 'Z' : text[name_end + 2];
}

bool is_process(pid_t tid) {
  return ::syscall(SYS_tgkill, tid, tid, 0) == 0;
}

class freezer {
 public:
  explicit freezer(const options& o) : options_(o), plan_(*o.seed, o.longest) {}

  // Fails with the error of ptrace. The signals of `waited_for` are blocked; the program gets the
  // mask `inherited`.
  int start(const sigset_t& waited_for, const sigset_t& inherited);
  // Blocks until the program ends. Returns its wait status.
  int run();

  bool has_program() const { return has_program_; }
  int interrupted_by() const { return interrupted_by_; }
  const counts& made() const { return counts_; }

 private:
  int trace_options() const;
  void on_stop(pid_t tid, int status);
  void on_event(pid_t tid, thread& t, int event);
  void on_interrupt(pid_t tid, thread& t);
  void on_call(pid_t tid, thread& t);
  void resume(pid_t tid, const thread& t, int signal = 0);

  void decide(clock::time_point now);
  void interrupt_a_thread();
  bool can_freeze() const;
  std::size_t count(state is) const;
  void freeze(thread& t);
  void thaw(clock::time_point now);
  void wait();

  const options& options_;
  plan plan_;
  counts counts_;
  sigset_t waited_for_{};
  std::map<pid_t, thread> threads_;
  pid_t main_ = 0;
  bool has_program_ = false;  // false until exec
  int interrupted_by_ = 0;
  decision next_{};
  clock::time_point next_at_{};
};

int freezer::start(const sigset_t& waited_for, const sigset_t& inherited) {
  waited_for_ = waited_for;
  std::array<int, 2> gate{};
  if (::pipe2(gate.data(), O_CLOEXEC) != 0) return errno;
  main_ = ::fork();
  if (main_ < 0) return errno;
  if (main_ == 0) {
    ::close(gate[1]);
    char ignored = 0;
    const bool is_traced = ::read(gate[0], &ignored, 1) == 1;
    if (!is_traced) ::_exit(not_started);
    ::sigprocmask(SIG_SETMASK, &inherited, nullptr);
    ::execvp(options_.program[0], options_.program);
    std::fprintf(stderr, "sluice_freeze: cannot run %s: %s\n", options_.program[0],
                 std::strerror(errno));
    ::_exit(not_started);
  }
  // An ignored SIGCHLD does not report stops. The program keeps the inherited action.
  ::signal(SIGCHLD, SIG_DFL);
  const int error =
      trace(PTRACE_SEIZE, main_, trace_options() | PTRACE_O_EXITKILL) == 0 ? 0 : errno;
  if (error == 0) {
    threads_.try_emplace(main_);
    ++counts_.threads;
    if (::write(gate[1], "", 1) != 1) ::kill(main_, SIGKILL);
  }
  ::close(gate[0]);
  ::close(gate[1]);
  if (error != 0) ::waitpid(main_, nullptr, 0);
  return error;
}

int freezer::trace_options() const {
  const int with_children = options_.children ? PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK : 0;
  return PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD | with_children;
}

int freezer::run() {
  next_ = plan_.next();
  for (;;) {
    int status = 0;
    const pid_t tid = ::waitpid(-1, &status, __WALL | WNOHANG);
    if (tid > 0 && WIFSTOPPED(status)) {
      on_stop(tid, status);
    } else if (tid == main_) {
      return status;  // the kernel detaches from processes that are left, see on_stop
    } else if (tid > 0) {
      threads_.erase(tid);
    }
    const auto now = clock::now();
    thaw(now);
    decide(now);
    if (tid == 0) wait();
  }
}

void freezer::on_stop(pid_t tid, int status) {
  const auto [at, is_new] = threads_.try_emplace(tid);
  thread& t = at->second;
  const int signal = WSTOPSIG(status);
  const int event = status >> 16;
  if (is_new) {
    ++counts_.threads;
    // Without PTRACE_O_EXITKILL: processes that the program leaves behind outlive the freezer.
    // Their threads inherit the options.
    if (is_process(tid)) trace(PTRACE_SETOPTIONS, tid, trace_options());
    const decision d = plan_.next();
    if (d.at_start && can_freeze()) {
      t.is = state::wanted;
      t.plan = d;
    }
  }
  if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) {
    t = {.is = state::listening};
    trace(PTRACE_LISTEN, tid);
  } else if (event != 0) {
    on_event(tid, t, event);
  } else if (signal == (SIGTRAP | 0x80)) {
    on_call(tid, t);
  } else {
    resume(tid, t, signal);
  }
}

void freezer::on_event(pid_t tid, thread& t, int event) {
  if (event == PTRACE_EVENT_STOP) {
    on_interrupt(tid, t);
    return;
  }
  if (event == PTRACE_EVENT_EXEC) {
    // The thread that called exec has taken the id of the process. Its own end is not reported.
    unsigned long former = 0;
    ::ptrace(PTRACE_GETEVENTMSG, tid, nullptr, &former);
    if (static_cast<pid_t>(former) != tid) threads_.erase(static_cast<pid_t>(former));
    t = {};
    has_program_ = true;
  }
  resume(tid, t);
}

// A thread that is not wanted stops here as well: after SIGCONT, and when it is new.
void freezer::on_interrupt(pid_t tid, thread& t) {
  const bool is_wanted = std::exchange(t.is, state::running) == state::wanted;
  if (is_wanted) t.calls = t.plan.calls;
  if (is_wanted && t.calls == 0) {
    freeze(t);
  } else {
    resume(tid, t);
  }
}

void freezer::on_call(pid_t tid, thread& t) {
  if (t.calls > 0 && --t.calls == 0 && can_freeze()) {
    freeze(t);
  } else {
    resume(tid, t);
  }
}

void freezer::resume(pid_t tid, const thread& t, int signal) {
  // Every stop cancels an interrupt that has not stopped the thread yet.
  if (t.is == state::wanted) trace(PTRACE_INTERRUPT, tid);
  trace(t.calls > 0 ? PTRACE_SYSCALL : PTRACE_CONT, tid, signal);
}

void freezer::decide(clock::time_point now) {
  if (now < next_at_) return;
  if (threads_.size() > 1 && can_freeze()) interrupt_a_thread();
  next_ = plan_.next();
  next_at_ = now + next_.gap;
}

// A running thread is in the middle of something, so it comes first. A blocked thread is left alone
// under even seeds: epoll_wait and others return EINTR after a stop, and a program that then checks
// again recovers from a lost wake-up.
void freezer::interrupt_a_thread() {
  auto at = std::next(threads_.begin(), static_cast<std::ptrdiff_t>(next_.pick % threads_.size()));
  auto chosen = threads_.end();
  for (std::size_t n = std::min(threads_.size(), looks_max); n > 0; --n) {
    const char kernel = at->second.is == state::running ? kernel_state(at->first) : '-';
    if (kernel == 'R' || (kernel == 'S' && *options_.seed % 2 == 1 && chosen == threads_.end())) {
      chosen = at;
    }
    if (kernel == 'R' || (chosen != threads_.end() && next_.calls > 0)) break;
    if (++at == threads_.end()) at = threads_.begin();
  }
  if (chosen == threads_.end()) return;
  chosen->second = {.is = state::wanted, .plan = next_};
  trace(PTRACE_INTERRUPT, chosen->first);
}

std::size_t freezer::count(state is) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(threads_, [is](const auto& t) { return t.second.is == is; }));
}

// At most the share, and never the last thread.
bool freezer::can_freeze() const {
  const std::size_t held = count(state::frozen) + count(state::wanted) + 1;
  return held < threads_.size() && held * 100 <= threads_.size() * options_.share;
}

void freezer::freeze(thread& t) {
  t.is = state::frozen;
  t.end = clock::now() + t.plan.length;
  ++counts_.freezes;
  counts_.longest = std::max(counts_.longest, t.plan.length);
  counts_.most_at_once = std::max(counts_.most_at_once, count(state::frozen));
}

void freezer::thaw(clock::time_point now) {
  for (auto& [tid, t] : threads_) {
    if (t.is != state::frozen || t.end > now) continue;
    t = {};
    resume(tid, t);
  }
}

// Until a thread stops or ends, a freeze ends or the next decision is due.
void freezer::wait() {
  auto until = threads_.size() > 1 ? next_at_ : clock::time_point::max();
  for (const auto& [tid, t] : threads_) {
    if (t.is == state::frozen) until = std::min(until, t.end);
  }
  int signal = 0;
  if (until == clock::time_point::max()) {
    signal = ::sigwaitinfo(&waited_for_, nullptr);
  } else {
    const auto left = std::max(clock::duration::zero(), until - clock::now());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout{seconds.count(), std::chrono::nanoseconds(left - seconds).count()};
    signal = ::sigtimedwait(&waited_for_, nullptr, &timeout);
  }
  if (signal > 0 && signal != SIGCHLD) {
    interrupted_by_ = signal;
    for (const auto& [tid, t] : threads_) {
      if (is_process(tid)) ::kill(tid, SIGKILL);
    }
  }
}

template <class Number>
bool read(std::string_view text, Number least, Number most, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= least &&
         number <= most;
}

// Returns the name of the option that is wrong, or an empty string.
std::string parse(char** words, options& o) {
  constexpr auto any = std::numeric_limits<std::uint64_t>::max();
  for (; *words != nullptr; ++words) {
    const std::string name = *words;
    if (!name.starts_with("--")) break;
    if (name == "--verbose") {
      o.verbose = true;
      continue;
    }
    if (*++words == nullptr) return name;
    const std::string_view value = *words;
    std::uint64_t number = 0;
    if (name == "--seed" && read<std::uint64_t>(value, 0, any, number)) {
      o.seed = number;
    } else if (name == "--longest-ms" && read<std::uint64_t>(value, 1, 10'000, number)) {
      o.longest = milliseconds(number);
    } else if (name == "--share" && read<std::uint64_t>(value, 1, 90, number)) {
      o.share = number;
    } else if (name == "--plan" && read<std::uint64_t>(value, 1, 1'000'000, number)) {
      o.plan = number;
    } else if (name == "--children" && (value == "on" || value == "off")) {
      o.children = value == "on";
    } else {
      return name;
    }
  }
  o.program = words;
  if (!o.seed) return "--seed";
  return *words == nullptr && o.plan == 0 ? "PROGRAM" : "";
}

void print_plan(const options& o) {
  plan decisions(*o.seed, o.longest);
  for (std::uint64_t n = 0; n < o.plan; ++n) {
    const decision d = decisions.next();
    std::printf("after %lld us: thread %llu, %d stops at calls, for %lld us%s\n",
                static_cast<long long>(d.gap.count()), static_cast<unsigned long long>(d.pick),
                d.calls, static_cast<long long>(d.length.count()),
                d.at_start ? ", also of a new thread" : "");
  }
}

// As a shell reads it.
std::string quoted(std::string_view word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

void report(const options& o, char** command, const counts& made, int status) {
  const bool has_failed = status != 0;
  if (!has_failed && !o.verbose) return;
  std::string text = std::string("freeze: ") + o.program[0];
  text += (has_failed ? " failed under seed " : " passed under seed ") + std::to_string(*o.seed);
  if (has_failed) {
    text += "; run again with:";
    for (char** word = command; *word != nullptr; ++word) text += " " + quoted(*word);
    text += "\nfreeze: ";
    text += WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                : "exit code " + std::to_string(WEXITSTATUS(status));
  }
  text += "; " + std::to_string(made.threads) + " threads seen, " + std::to_string(made.freezes) +
          " freezes, longest " + std::to_string(made.longest.count() / 1000) + " ms, at most " +
          std::to_string(made.most_at_once) + " at once\n";
  std::fputs(text.c_str(), stderr);
}

// Ends this process as the program ended.
int end_by(int signal) {
  ::prctl(PR_SET_DUMPABLE, 0);  // the program has written its own core
  ::signal(signal, SIG_DFL);
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, signal);
  ::raise(signal);
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  return 128 + signal;
}

int run(char** words) {
  options o;
  if (words[1] != nullptr && std::string_view(words[1]) == "--help") {
    std::fputs(usage.data(), stdout);
    return 0;
  }
  if (const std::string wrong = parse(words + 1, o); !wrong.empty()) {
    std::fprintf(stderr, "sluice_freeze: %s is missing or has a wrong value\n%s", wrong.c_str(),
                 usage.data());
    return misused;
  }
  if (o.plan > 0) {
    print_plan(o);
    return 0;
  }
  sigset_t waited_for;
  sigset_t inherited;
  ::sigemptyset(&waited_for);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (signal == SIGCHLD || now.sa_handler != SIG_IGN) ::sigaddset(&waited_for, signal);
  }
  ::sigprocmask(SIG_BLOCK, &waited_for, &inherited);

  freezer f(o);
  if (const int error = f.start(waited_for, inherited); error != 0) {
    std::fprintf(stderr,
                 "sluice_freeze: ptrace is not permitted (%s): run without another tracer such as "
                 "gdb or strace, set kernel.yama.ptrace_scope to 1 or 0, or give the container the "
                 "capability SYS_PTRACE\n",
                 std::strerror(error));
    return misused;
  }
  const int status = f.run();
  if (f.interrupted_by() != 0) return end_by(f.interrupted_by());
  if (f.has_program()) report(o, words, f.made(), status);
  return WIFSIGNALED(status) ? end_by(WTERMSIG(status)) : WEXITSTATUS(status);
}

}  // namespace
}  // namespace sluice::freezing

int main(int, char** words) {
  return sluice::freezing::run(words);
}
