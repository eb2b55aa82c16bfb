#include "jobs/worker/process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <latch>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/temporary_folder.hpp"
#include "sluice/sync/testing/cpu_time.hpp"

namespace sluice::jobs::process_test {
namespace {

using namespace std::chrono_literals;
using sluice::testing::eventually;

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

bool has_children() {
  return !(waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD);
}

bool is_alive(pid_t pid) {
  // A zombie whose parent has exited is reaped by init, and is not alive.
  std::ifstream stat_file("/proc/" + std::to_string(pid) + "/stat");
  std::string number;
  std::string name;
  std::string state;
  return (stat_file >> number >> name >> state) && state != "Z";
}

// Runs commands in a temporary folder and checks that no child process is left.
class Process : public ::testing::Test {
 protected:
  ~Process() override { EXPECT_FALSE(has_children()) << "a child was not reaped"; }

  job_context& context(job_spec spec = {.kind = "test"}) {
    auto made = std::make_shared<job>();
    made->id = 42;
    made->spec = std::move(spec);
    contexts_.push_back(
        std::make_unique<job_context>(leased_job{.job = std::move(made), .key = 1, .attempt = 3}));
    return *contexts_.back();
  }
  job_outcome run(const std::string& command, job_spec spec = {.kind = "test"}) {
    return shell(command).run(context(std::move(spec)));
  }
  process_command shell(const std::string& command) {
    options_.directory = folder_.path();
    return process_command::shell(command, options_).value();
  }
  std::string read(const std::string& file) const {
    std::ifstream in(folder_.file(file));
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  // A command reports its start by writing its process id.
  pid_t wait_for_pid(const std::string& file) const {
    eventually([&] { return read(file).ends_with('\n'); }, "the command to start");
    return std::stoi(read(file));
  }

  sluice::testing::temporary_folder folder_;
  process_options options_;
  std::vector<std::unique_ptr<job_context>> contexts_;
};

// ---- inputs and outputs of a command

TEST_F(Process, PassesTheArgumentsOnStandardInput) {
  EXPECT_EQ(run("cat", {.kind = "test", .args = {R"({"to":"ada"})"}}).result,
            payload{R"({"to":"ada"})"});
}

TEST_F(Process, PassesTheRestInTheEnvironment) {
  options_.environment = {{"EXTRA", "more"}};
  const auto done =
      run(R"(echo "$SLUICE_JOB_ID $SLUICE_JOB_KIND $SLUICE_JOB_QUEUE $SLUICE_JOB_ATTEMPT )"
          R"($SLUICE_JOB_METADATA $SLUICE_JOB_TIME_LIMIT_MS $SLUICE_JOB_ARGS_TYPE $EXTRA")",
          {.queue = "q",
           .kind = "test",
           .args = {"x", content_type::bytes},
           .time_limit = 5s,
           .metadata = R"({"a":1})"});
  EXPECT_EQ(decode<std::string>(*done.result).value(), R"(42 test q 3 {"a":1} 5000 bytes more)");
}

TEST_F(Process, LogsStandardErrorAndParsesProgress) {
  job_context& ctx = context();
  const auto done = shell("echo a >&2; echo 'sluice:progress 40 of it' >&2; printf b >&2").run(ctx);
  EXPECT_FALSE(done.failed);
  const auto notes = ctx.notes().take();
  EXPECT_EQ(notes.lines, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(notes.progress, (progress{40, "of it"}));
}

TEST_F(Process, LeavesProgressOutOfTheMessageOfAFailure) {
  const auto failed = run("echo 'sluice:progress 40' >&2; echo broken >&2; exit 3");
  EXPECT_EQ(failed.failed->message, "exit code 3: broken");
}

TEST_F(Process, LogsNothingWhenConfigured) {
  options_.standard_error = process_options::errors::kept_for_failure;
  job_context& ctx = context();
  const auto failed = shell("echo 'sluice:progress 40' >&2; echo broken >&2; exit 3").run(ctx);
  EXPECT_EQ(failed.failed->message, "exit code 3: broken");
  const auto notes = ctx.notes().take();
  EXPECT_TRUE(notes.lines.empty());
  EXPECT_EQ(notes.progress, (progress{40, ""}));
}

TEST_F(Process, KeepsJsonAsJsonTextAsAStringAndOtherOutputAsBytes) {
  EXPECT_EQ(run(R"(echo ' {"n": 1.10} ')").result, payload{R"( {"n": 1.10})"});
  EXPECT_EQ(run("echo 42").result, payload{"42"});
  EXPECT_EQ(run("echo two words").result, payload{R"("two words")"});
  EXPECT_EQ(run("printf 'a\\nb\\n\\n'").result, payload{R"("a\nb\n")"});
  EXPECT_EQ(run("printf '\\377\\000x'").result,
            (payload{std::string("\xFF\0x", 3), content_type::bytes}));
  EXPECT_EQ(run("true").result, std::nullopt);
  EXPECT_EQ(run("echo").result, std::nullopt);
}

TEST_F(Process, KeepsNoOutputWhenConfigured) {
  options_.standard_output = process_options::output::ignored;
  const auto done = run("echo 42; head -c 300000 /dev/zero");
  EXPECT_FALSE(done.failed);
  EXPECT_EQ(done.result, std::nullopt);
}

TEST_F(Process, FailsWithTheExitCodeAndTheEndOfStandardError) {
  const auto done = run("echo starting >&2; echo 'no such file: a.png' >&2; exit 3");
  ASSERT_TRUE(done.failed);
  EXPECT_EQ(done.failed->type, "exit_code");
  EXPECT_EQ(done.failed->message, "exit code 3: starting\nno such file: a.png");
  EXPECT_FALSE(done.failed->for_good);
}

TEST_F(Process, NamesTheSignalThatEndedTheCommand) {
  const auto done = run("kill -SEGV $$");
  ASSERT_TRUE(done.failed);
  EXPECT_EQ(done.failed->type, "signal");
  EXPECT_TRUE(done.failed->message.starts_with("signal SIGSEGV")) << done.failed->message;
}

TEST_F(Process, KeepsOnlyTheEndOfALongStandardErrorAndMakesItUtf8) {
  options_.error_tail_bytes = 16;
  const auto done =
      run("head -c 100000 /dev/zero | tr '\\0' 'x' >&2; "
          "printf 'the \\377 end' >&2; exit 1");
  ASSERT_TRUE(done.failed);
  EXPECT_EQ(done.failed->message, "exit code 1: ...xxxxxxxthe \xEF\xBF\xBD end");
}

TEST_F(Process, FailsWhenTheOutputIsTooLargeAndDoesNotBlockTheCommand) {
  options_.output_bytes_max = 1000;
  const auto done = run("head -c 1000000 /dev/zero; echo written > done.txt");
  ASSERT_TRUE(done.failed);
  EXPECT_EQ(done.failed->type, "output_too_large");
  EXPECT_EQ(read("done.txt"), "written\n");
}

TEST_F(Process, TakesLargeArgumentsAndResults) {
  const std::string text = "\"" + std::string(limits::args_bytes_max - 2, 'a') + "\"";
  EXPECT_EQ(run("cat", {.kind = "test", .args = {text}}).result, payload{text});
}

TEST_F(Process, AcceptsACommandThatDoesNotReadItsInput) {
  const std::string text(1 << 20, ' ');
  EXPECT_FALSE(run("exec <&-; echo 1", {.kind = "test", .args = {text}}).failed);
  EXPECT_FALSE(run("head -c 1 > /dev/null", {.kind = "test", .args = {text}}).failed);
}

TEST_F(Process, RunsAProgramWithoutAShell) {
  auto command = process_command::program({"printf", "%s", R"(["$HOME"])"});
  ASSERT_TRUE(command);
  EXPECT_EQ(command->describe(), R"(printf %s ["$HOME"])");
  EXPECT_EQ(command->run(context()).result, payload{R"(["$HOME"])"});
}

// ---- missing commands

TEST_F(Process, RejectsAMissingProgram) {
  const auto missing = process_command::program({"no-such-program-here"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, error_code::not_found);
  EXPECT_TRUE(missing.error().message.starts_with("no program \"no-such-program-here\" in PATH"))
      << missing.error().message;
  EXPECT_FALSE(process_command::program({folder_.file("nothing")}));
  EXPECT_FALSE(process_command::program({folder_.path()}));  // a folder
  EXPECT_FALSE(process_command::program({}));
  EXPECT_FALSE(process_command::program({""}));
}

TEST_F(Process, RejectsAMissingOrInvalidShellCommand) {
  const auto missing = process_command::shell("no-such-program-here --flag");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, error_code::not_found);
  EXPECT_NE(missing.error().message.find("\"no-such-program-here\""), std::string::npos);
  const auto broken = process_command::shell("if true; then");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, error_code::invalid);
  EXPECT_FALSE(process_command::shell("  "));
  EXPECT_TRUE(process_command::shell("X=1 true"));
  EXPECT_TRUE(process_command::shell("(exit 0)"));
  EXPECT_TRUE(process_command::shell("while read line; do echo $line; done"));
}

TEST_F(Process, FailsWhenTheProgramWasRemoved) {
  const std::string file = folder_.file("tool");
  std::ofstream(file) << "#!/bin/sh\nexit 0\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  const auto command = process_command::program({file}).value();
  std::filesystem::remove(file);
  const auto done = command.run(context());
  ASSERT_TRUE(done.failed);
  EXPECT_EQ(done.failed->type, "start");
  EXPECT_EQ(done.failed->message, "cannot start " + file + ": No such file or directory");
}

// ---- stopping

TEST_F(Process, StopsTheWholeGroup) {
  manual_time time;  // never reaches SIGKILL
  options_.time = &time;
  auto& ctx = context();
  job_outcome done;
  const auto command = shell("sleep 1000 & echo $! > child; echo $$ > pid; wait");
  std::jthread running([&] { done = command.run(ctx); });
  wait_for_pid("pid");
  const pid_t child = wait_for_pid("child");
  ctx.request_stop(stop_reason::cancelled);
  running.join();
  ASSERT_TRUE(done.failed);
  EXPECT_EQ(done.failed->message, "signal SIGTERM");
  eventually([&] { return !is_alive(child); }, "the command's own child to end");
}

TEST_F(Process, KillsACommandThatDoesNotStop) {
  manual_time time;
  options_.time = &time;
  auto& ctx = context();
  job_outcome done;
  const auto command = shell(
      "trap 'echo asked >> asked' TERM; echo $$ > pid; "
      "while :; do sleep 0.01; done");
  std::jthread running([&] { done = command.run(ctx); });
  wait_for_pid("pid");
  ctx.request_stop(stop_reason::time_limit);
  eventually([&] { return read("asked") == "asked\n"; }, "SIGTERM to arrive");
  eventually([&] { return time.timers().pending() == 1; });
  time.advance(5s);
  running.join();
  ASSERT_TRUE(done.failed);
  // The shell itself may report its own child.
  EXPECT_TRUE(done.failed->message.starts_with("signal SIGKILL")) << done.failed->message;
}

TEST_F(Process, KillsTheChildrenOfAStoppedCommand) {
  auto& ctx = context();
  job_outcome done;
  const auto command = shell(
      "(trap '' TERM; echo $$ > /dev/null; "
      "sh -c 'echo $PPID > deaf; exec sleep 1000' ) & "
      "echo $$ > pid; wait");
  std::jthread running([&] { done = command.run(ctx); });
  const pid_t deaf = wait_for_pid("deaf");
  wait_for_pid("pid");
  ctx.request_stop(stop_reason::shutdown);
  running.join();
  EXPECT_TRUE(done.failed);
  eventually([&] { return !is_alive(deaf); }, "the child that ignores SIGTERM to end");
}

TEST_F(Process, EndsAtOnceWhenTheStopPrecedesTheStart) {
  auto& ctx = context();
  ctx.request_stop(stop_reason::cancelled);
  const auto done = shell("exec sleep 1000").run(ctx);
  ASSERT_TRUE(done.failed);
  EXPECT_EQ(done.failed->message, "signal SIGTERM");
}

TEST_F(Process, SucceedsWhenTheStoppedCommandSucceeds) {
  auto& ctx = context();
  job_outcome done;
  const auto command = shell(
      "trap 'echo 1; exit 0' TERM; echo $$ > pid; "
      "while :; do sleep 0.01; done");
  std::jthread running([&] { done = command.run(ctx); });
  wait_for_pid("pid");
  ctx.request_stop(stop_reason::shutdown);
  running.join();
  EXPECT_FALSE(done.failed);
  EXPECT_EQ(done.result, payload{"1"});
}

TEST_F(Process, UsesNoCpuWhileTheCommandRuns) {
  auto& ctx = context();
  const auto command = shell("echo $$ > pid; exec sleep 1000");
  std::jthread running([&] { (void)command.run(ctx); });
  wait_for_pid("pid");
  EXPECT_LT(sluice::testing::least_cpu_time_while_idle(5ms), 5ms);
  ctx.request_stop(stop_reason::cancelled);
}

// ---- a program that cannot get the exit status of its children

// Ignores SIGCHLD, as a parent may have left it: the kernel then reaps children and drops their
// status.
class ignoring_sigchld {
 public:
  ignoring_sigchld() : before_(signal(SIGCHLD, SIG_IGN)) {}
  ~ignoring_sigchld() { signal(SIGCHLD, before_); }

 private:
  void (*before_)(int);
};

TEST_F(Process, FailsWhenTheExitStatusIsUnknown) {
  const auto fails = shell("exit 3");
  const auto succeeds = shell("exit 0");
  const auto waits = shell(
      "trap 'echo 1; exit 0' TERM; echo $$ > pid; "
      "while :; do sleep 0.01; done");
  const ignoring_sigchld ignored;
  // These may be reaped even before they can be watched.
  EXPECT_TRUE(fails.run(context()).failed);
  EXPECT_TRUE(succeeds.run(context()).failed);
  // This one is watched: it ends when its stop is requested.
  auto& ctx = context();
  job_outcome done;
  std::jthread running([&] { done = waits.run(ctx); });
  wait_for_pid("pid");
  ctx.request_stop(stop_reason::shutdown);
  running.join();
  ASSERT_TRUE(done.failed);
  EXPECT_EQ(done.failed->type, "unknown_end");
  EXPECT_TRUE(done.failed->message.starts_with("exit status unknown: No child processes"))
      << done.failed->message;
  EXPECT_FALSE(done.failed->for_good);
}

TEST_F(Process, RejectsAShellCommandWhenTheShellsExitStatusIsUnknown) {
  const ignoring_sigchld ignored;
  const auto unknown = process_command::shell("true");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, error_code::io_error);
}

// ---- cleanup

TEST_F(Process, DoesNotWaitForGrandchildrenThatHoldThePipes) {
  const auto done = run("sleep 1000 & echo $! > child; echo '\"mine\"'");
  const pid_t child = wait_for_pid("child");
  EXPECT_EQ(done.result, payload{R"("mine")"});
  EXPECT_TRUE(is_alive(child));  // not killed after an ordinary end
  kill(child, SIGKILL);
}

TEST_F(Process, LeavesNoDescriptorOpenAndGivesNoneAway) {
  const int leaky = open("/dev/null", O_RDONLY);  // not close-on-exec
  ASSERT_GE(leaky, 0);
  (void)run("true");
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(run("true").failed);
    EXPECT_TRUE(run("exit 1").failed);
  }
  EXPECT_EQ(open_descriptors(), before);
  // 0, 1, 2, and the folder that ls reads.
  const auto listed = run("exec ls /proc/self/fd | tr '\\n' ' '");
  EXPECT_EQ(listed.result.value_or(payload{}).data, R"("0 1 2 3 ")");
  close(leaky);
}

TEST_F(Process, ResetsTheSignalHandlingOfTheCommand) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto was = signal(SIGPIPE, SIG_IGN);
  const auto blocks = run("grep SigBlk /proc/self/status | cut -f2");
  const auto ignores = run("grep SigIgn /proc/self/status | cut -f2");
  signal(SIGPIPE, was);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  const auto has = [](const job_outcome& mask, int number) {
    const auto bits = std::stoull(decode<std::string>(*mask.result).value(), nullptr, 16);
    return (bits >> static_cast<unsigned>(number - 1) & 1U) != 0;
  };
  EXPECT_FALSE(has(blocks, SIGTERM));
  EXPECT_FALSE(has(ignores, SIGPIPE));
}

TEST_F(Process, RunsConcurrentCommands) {
  constexpr int threads = 8;
  constexpr int each = 25;
  const auto command = shell("cat; exit $SLUICE_JOB_ATTEMPT");
  std::latch start(threads);
  std::vector<std::jthread> running;
  atomic<int> right{0};
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      start.arrive_and_wait();
      for (int i = 0; i < each; ++i) {
        auto j = std::make_shared<job>();
        j->spec.args.data = std::to_string(t * each + i);
        const std::uint32_t code = i % 2 == 0 ? 0 : 7;
        job_context ctx(leased_job{.job = j, .key = 1, .attempt = code});
        const auto done = command.run(ctx);
        if (code == 0 ? done.result == j->spec.args
                      : done.failed && done.failed->message == "exit code 7") {
          right.fetch_add(1);
        }
      }
    });
  }
  running.clear();
  EXPECT_EQ(right.load(), threads * each);
}

}  // namespace
}  // namespace sluice::jobs::process_test
