// `sluice beanstalkd`, for scripts that start beanstalkd.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "jobs/cli/arguments.hpp"
#include "jobs/cli/testing/program.hpp"
#include "jobs/cli/user_change.hpp"
#include "jobs/net/testing/socket_wire.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::jobs::cli::beanstalkd_test {
namespace {

using namespace std::chrono_literals;
using jobs::testing::socket_wire;
using sluice::testing::eventually;
using testing::ended;
using testing::program;
using testing::run_sluice;
using testing::start_options;
using testing::temporary_folder;
using testing::text_of;

std::variant<arguments, no_command> parse(std::vector<const char*> words) {
  words.insert(words.begin(), {"sluice", "beanstalkd"});
  return parse_arguments(static_cast<int>(words.size()), words.data());
}

serve_arguments parse_serve(std::vector<const char*> words) {
  const auto parsed = parse(std::move(words));
  if (const auto* none = std::get_if<no_command>(&parsed)) {
    ADD_FAILURE() << none->text;
    return {};
  }
  return std::get<serve_arguments>(std::get<arguments>(parsed));
}

server_options options(std::vector<const char*> words) {
  return parse_serve(std::move(words)).server;
}

// Returns the port once the server listens.
std::uint16_t port_in(const std::string& file, const program& of) {
  eventually([&] { return !text_of(file).empty() || of.has_ended(); }, "a server that listens");
  const std::string text = text_of(file);
  EXPECT_TRUE(text.starts_with("beanstalk ")) << text << of.err();
  return text.empty() ? std::uint16_t{0} : static_cast<std::uint16_t>(std::stoul(text.substr(10)));
}

TEST(Beanstalkd, ListensOnLoopbackAndKeepsJobsInMemoryByDefault) {
  const auto args = parse_serve({});
  EXPECT_EQ(args.server.beanstalk.listen, (listen_address{"127.0.0.1", 11300}));
  EXPECT_TRUE(args.server.memory);
  EXPECT_FALSE(args.server.serves_http);
  EXPECT_FALSE(args.server.faktory.is_on());
  EXPECT_FALSE(args.server.beanstalk.open);
  EXPECT_EQ(args.server.beanstalk.job_bytes_max, 65'535U);
  EXPECT_EQ(args.server.log.level, log_level::warn);
  EXPECT_TRUE(args.quiet);
}

TEST(Beanstalkd, AcceptsAnAddressBeyondLoopback) {
  EXPECT_EQ(options({"-l", "0.0.0.0", "-p", "11301"}).beanstalk.listen,
            (listen_address{"0.0.0.0", 11301}));
  EXPECT_TRUE(options({"-l0.0.0.0"}).beanstalk.open);
  EXPECT_EQ(options({"-l", "::1", "-p12"}).beanstalk.listen, (listen_address{"::1", 12}));
  EXPECT_FALSE(options({"-l", "::1"}).beanstalk.open);
  const auto local = options({"-l", "unix:/run/b.sock"}).beanstalk;
  EXPECT_FALSE(local.listen);
  EXPECT_EQ(local.socket, "/run/b.sock");
  EXPECT_TRUE(std::holds_alternative<no_command>(parse({"-l", "nowhere.example.com"})));
}

TEST(Beanstalkd, SyncsAsConfigured) {
  const auto defaults = options({"-b", "/some/where"});
  EXPECT_FALSE(defaults.memory);
  EXPECT_EQ(defaults.data, "/some/where");
  EXPECT_EQ(defaults.sync, sync_mode::interval);
  EXPECT_EQ(defaults.sync_interval, 50ms);
  EXPECT_EQ(options({"-b", "/x", "-f0"}).sync, sync_mode::full);
  EXPECT_EQ(options({"-b", "/x", "-f", "250"}).sync_interval, 250ms);
  EXPECT_EQ(options({"-b", "/x", "-F"}).sync, sync_mode::off);
}

TEST(Beanstalkd, AppliesTheLastFlagAboutSyncs) {
  EXPECT_EQ(options({"-b", "/x", "-F", "-f", "0"}).sync, sync_mode::full);
  EXPECT_EQ(options({"-b", "/x", "-F", "-f0"}).sync, sync_mode::full);
  EXPECT_EQ(options({"-b", "/x", "-F", "-f", "250"}).sync, sync_mode::interval);
  EXPECT_EQ(options({"-b", "/x", "-F", "-f", "250"}).sync_interval, 250ms);
  EXPECT_EQ(options({"-b", "/x", "-f", "0", "-F"}).sync, sync_mode::off);
  EXPECT_EQ(options({"-b", "/x", "-F", "-f0", "-F"}).sync, sync_mode::off);
  EXPECT_EQ(options({"-F", "-f0", "-F", "-b", "/x", "-f", "0", "-V"}).sync, sync_mode::full);
}

TEST(Beanstalkd, TakesTheOtherFlags) {
  const auto args = parse_serve({"-z", "131072", "-s", "4096", "-c", "-n", "-u", "nobody", "-V"});
  EXPECT_EQ(args.server.beanstalk.job_bytes_max, 131'072U);
  EXPECT_EQ(args.server.beanstalk.binlog_max, 4096U);
  EXPECT_EQ(args.user, "nobody");
  EXPECT_EQ(args.server.log.level, log_level::info);
  EXPECT_EQ(options({"-VV"}).log.level, log_level::debug);
  EXPECT_EQ(options({"-p1", "-p", "2"}).beanstalk.listen->port, 2) << "the last one";
  const auto http = options({"--http", ":8000"});
  EXPECT_TRUE(http.serves_http);
  EXPECT_EQ(http.listen, (listen_address{"127.0.0.1", 8000}));
  const auto version = parse({"-v"});
  EXPECT_TRUE(std::holds_alternative<version_arguments>(std::get<arguments>(version)));
  EXPECT_EQ(options({"-z", "0"}).beanstalk.job_bytes_max, 0U) << "empty jobs only";
  EXPECT_TRUE(std::holds_alternative<no_command>(parse({"-x"})));
}

TEST(Beanstalkd, ReducesATooLargeJobSizeToTheLargest) {
  const auto args = options({"-l", "127.0.0.1", "-z", "4194304"});
  EXPECT_EQ(args.beanstalk.job_bytes_max, 4'194'304U);
  EXPECT_TRUE(args.warnings.empty());
  for (const char* more : {"4194305", "1073741824"}) {
    const auto capped = options({"-l", "127.0.0.1", "-z", more});
    EXPECT_EQ(capped.beanstalk.job_bytes_max, 4'194'304U);
    ASSERT_EQ(capped.warnings.size(), 1U);
    EXPECT_NE(capped.warnings[0].find("4194304 bytes"), std::string::npos) << capped.warnings[0];
  }
}

TEST(Beanstalkd, ReducesATooLongSyncIntervalToTheLongest) {
  const auto args = options({"-l", "127.0.0.1", "-b", "/x", "-f", "3600000"});
  EXPECT_EQ(args.sync_interval, 1h);
  EXPECT_TRUE(args.warnings.empty());
  const auto capped = options({"-l", "127.0.0.1", "-b", "/x", "-f", "86400000"});
  EXPECT_EQ(capped.sync, sync_mode::interval);
  EXPECT_EQ(capped.sync_interval, 1h);
  ASSERT_EQ(capped.warnings.size(), 1U);
  EXPECT_NE(capped.warnings[0].find("-f 86400000"), std::string::npos) << capped.warnings[0];
}

TEST(Beanstalkd, AcceptsOnlyEmptyJobsWithASizeOfZero) {
  const temporary_folder folder;
  const std::string file = folder.file("port");
  program server({"beanstalkd", "-p", "0", "-z", "0", "--port-file", file});
  socket_wire wire(port_in(file, server));
  wire.send("put 0 0 60 1\r\nx\r\nput 0 0 60 0\r\n\r\n");
  EXPECT_EQ(wire.line(), "JOB_TOO_BIG");
  EXPECT_EQ(wire.line(), "INSERTED 1");
}

TEST(Beanstalkd, WarnsAboutDifferencesFromBeanstalkd) {
  const temporary_folder folder;
  const auto log_of = [&](std::vector<std::string> more) {
    const std::string file = folder.file("port");
    more.insert(more.begin(), {"beanstalkd", "-p", "0", "--port-file", file});
    program server(more);
    EXPECT_NE(port_in(file, server), 0);
    EXPECT_EQ(::unlink(file.c_str()), 0);
    server.signal(SIGTERM);
    return server.wait().err;
  };
  const std::string loopback_only =
      " warn  listening on loopback only; use -l 0.0.0.0 for other machines\n";
  const std::string defaults = log_of({"-z", "5000000"});
  EXPECT_NE(defaults.find(loopback_only), std::string::npos) << defaults;
  EXPECT_NE(defaults.find(" warn  -z 5000000 is larger "), std::string::npos) << defaults;
  const std::string quiet = log_of({"-l", "127.0.0.1"});
  EXPECT_EQ(quiet.find("loopback only"), std::string::npos) << quiet;
  EXPECT_EQ(quiet.find("-z"), std::string::npos) << quiet;
}

TEST(Beanstalkd, IsStartedByItsName) {
  const std::vector<const char*> words = {"/usr/local/bin/beanstalkd", "-p", "7"};
  const auto parsed = parse_arguments(static_cast<int>(words.size()), words.data());
  ASSERT_TRUE(std::holds_alternative<arguments>(parsed));
  EXPECT_EQ(std::get<serve_arguments>(std::get<arguments>(parsed)).server.beanstalk.listen->port,
            7);

  const temporary_folder folder;
  const std::string link = folder.file("beanstalkd");
  ASSERT_EQ(::symlink(SLUICE_PROGRAM, link.c_str()), 0);
  const ended end = program({"-v"}, {.called = link}).wait();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_TRUE(end.out.starts_with("sluice ")) << end.out;
}

TEST(Beanstalkd, KeepsJobsInItsFolderAndLogsNothing) {
  const temporary_folder folder;
  const std::string file = folder.file("port");
  const std::vector<std::string> words = {"beanstalkd",        "-p",  "0",           "-b",
                                          folder.file("data"), "-f0", "--port-file", file};
  {
    program server(words);
    socket_wire wire(port_in(file, server));
    wire.send("put 7 0 60 5\r\nhello\r\n");
    EXPECT_TRUE(wire.line().starts_with("INSERTED "));
    server.signal(SIGTERM);
    const ended end = server.wait();
    EXPECT_EQ(end.code, 0);
    EXPECT_EQ(end.out, "");
    EXPECT_EQ(end.err.find(" info  listening"), std::string::npos) << end.err;
  }
  ASSERT_EQ(::unlink(file.c_str()), 0);
  program server(words);
  socket_wire wire(port_in(file, server));
  wire.send("reserve-with-timeout 5\r\n");
  EXPECT_TRUE(wire.line().starts_with("RESERVED "));
  EXPECT_EQ(wire.bytes(5), "hello");
}

// Its jobs would be silently ignored.
TEST(Beanstalkd, DoesNotStartOnABinlogOfBeanstalkd) {
  const temporary_folder folder;
  const std::string data = folder.file("data");
  ASSERT_EQ(::mkdir(data.c_str(), 0700), 0);
  const std::string binlog = data + "/binlog.12";
  std::ofstream(binlog) << "jobs";
  const ended refused = run_sluice({"beanstalkd", "-p", "0", "-b", data});
  EXPECT_EQ(refused.code, 7) << refused.err;
  for (const char* const part : {"binlog.12", "of beanstalkd", "drain", "another folder", "move"}) {
    EXPECT_NE(refused.err.find(part), std::string::npos) << part << ": " << refused.err;
  }
  EXPECT_NE(::access((data + "/jobs.db").c_str(), F_OK), 0);
  EXPECT_EQ(text_of(binlog), "jobs");

  ASSERT_EQ(::rename(binlog.c_str(), folder.file("binlog.12").c_str()), 0);
  std::ofstream(data + "/binlog.old") << "is not a binlog name";
  const std::string file = folder.file("port");
  program server({"beanstalkd", "-p", "0", "-b", data, "--port-file", file});
  EXPECT_NE(port_in(file, server), 0);
}

TEST(Beanstalkd, EndsWithoutWaitingForWorkers) {
  const temporary_folder folder;
  const std::string file = folder.file("port");
  program server({"beanstalkd", "-p", "0", "-V", "--port-file", file});
  socket_wire wire(port_in(file, server));
  wire.send("put 7 0 600 1\r\nx\r\nreserve\r\n");
  EXPECT_TRUE(wire.line().starts_with("INSERTED "));
  EXPECT_TRUE(wire.line().starts_with("RESERVED "));
  server.signal(SIGTERM);
  const ended end = server.wait();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_NE(end.err.find(" grace=0s"), std::string::npos) << end.err;
}

TEST(Beanstalkd, DrainsOnASignalAndListensOnASocket) {
  const temporary_folder folder;
  const std::string path = folder.file("socket");
  program server({"beanstalkd", "-V", "-l", "unix:" + path});
  eventually([&] { return server.err().find("listening") != std::string::npos; });
  socket_wire wire(path);
  ASSERT_TRUE(wire.connected());
  server.signal(SIGUSR1);
  eventually([&] { return server.err().find("draining") != std::string::npos; });
  wire.send("put 7 0 60 1\r\nx\r\n");
  EXPECT_EQ(wire.line(), "DRAINING");
}

TEST(UserChange, DoesNothingForTheCurrentUserAndFailsForAnother) {
  const passwd* const me = ::getpwuid(::geteuid());
  if (me != nullptr) {
    const auto unchanged = user_change::begin(me->pw_name);
    ASSERT_TRUE(unchanged);
    EXPECT_TRUE(unchanged->finish());
  }
  const auto none = user_change::begin("no-such-user-here");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, error_code::not_found);
  EXPECT_NE(none.error().message.find("no-such-user-here"), std::string::npos);
  if (::geteuid() != 0) {
    const auto root = user_change::begin("root");
    ASSERT_FALSE(root);
    EXPECT_EQ(root.error().code, error_code::forbidden);
  }
}

TEST(UserChange, IsPermanentAsRoot) {
  if (::geteuid() != 0 || ::getpwnam("nobody") == nullptr) {
    GTEST_SKIP() << "needs root and a user nobody";
  }
  const temporary_folder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  const std::string path = folder.file("data");
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  const uid_t nobody = ::getpwnam("nobody")->pw_uid;
  ASSERT_EQ(::chown(path.c_str(), nobody, ::getpwnam("nobody")->pw_gid), 0);
  program server({"beanstalkd", "-p", "0", "-V", "-u", "nobody", "-b", path});
  eventually(
      [&] { return server.err().find("listening") != std::string::npos || server.has_ended(); });
  struct stat made {};
  ASSERT_EQ(::stat((path + "/jobs.db").c_str(), &made), 0) << server.err();
  EXPECT_EQ(made.st_uid, nobody);
}

// Returns a free privileged port, or zero.
std::uint16_t free_low_port() {
  for (std::uint16_t port = 1023; port > 511; --port) {
    const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool is_free = ::bind(probe, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
    ::close(probe);
    if (is_free) return port;
  }
  return 0;
}

// The user ids of each thread of a process, from /proc.
std::set<std::string> users_of(pid_t process) {
  std::set<std::string> users;
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::ifstream in(task.path() / "status");
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("Uid:") || line.starts_with("Gid:") || line.starts_with("CapPrm:")) {
        users.insert(line);
      }
    }
  }
  return users;
}

TEST(UserChange, BindsAsRootFirst) {
  if (::geteuid() != 0 || ::getpwnam("nobody") == nullptr) {
    GTEST_SKIP() << "needs root and a user nobody";
  }
  const std::uint16_t port = free_low_port();
  ASSERT_NE(port, 0);
  const std::string id = std::to_string(::getpwnam("nobody")->pw_uid);
  const std::string group = std::to_string(::getpwnam("nobody")->pw_gid);
  const std::set<std::string> nobody_alone = {
      "Uid:\t" + id + "\t" + id + "\t" + id + "\t" + id,
      "Gid:\t" + group + "\t" + group + "\t" + group + "\t" + group, "CapPrm:\t0000000000000000"};
  program server(
      {"beanstalkd", "-l", "127.0.0.1", "-p", std::to_string(port), "-V", "-u", "nobody"});
  eventually(
      [&] { return server.err().find("listening") != std::string::npos || server.has_ended(); });
  eventually([&] { return server.has_ended() || users_of(server.pid()) == nobody_alone; },
             "a server that is nobody's in every thread");
  EXPECT_FALSE(server.has_ended()) << server.err();
  socket_wire wire(port);
  wire.send("put 7 0 60 1\r\nx\r\n");
  EXPECT_EQ(wire.line(), "INSERTED 1");
}

// The C library changes the threads by signals, and does not report a signal that could not be
// sent.
TEST(UserChange, FailsIfAThreadWouldStayRoot) {
  if (::geteuid() != 0 || ::getpwnam("nobody") == nullptr) {
    GTEST_SKIP() << "needs root and a user nobody";
  }
  rlimit defaults{};
  ASSERT_EQ(::getrlimit(RLIMIT_SIGPENDING, &defaults), 0);
  rlimit none = defaults;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_SIGPENDING, &none), 0);
  program server({"beanstalkd", "-l", "127.0.0.1", "-p", "0", "-V", "-u", "nobody"});
  ASSERT_EQ(::setrlimit(RLIMIT_SIGPENDING, &defaults), 0);
  eventually([&] { return server.has_ended(); }, "a server that does not serve as root");
  EXPECT_NE(server.err().find("cannot switch to user nobody"), std::string::npos) << server.err();
}

TEST(UserChange, CreatesAPrivilegedSocketAndOwnsIt) {
  if (::geteuid() != 0 || ::getpwnam("nobody") == nullptr) {
    GTEST_SKIP() << "needs root and a user nobody";
  }
  const temporary_folder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  const std::string path = folder.file("socket");
  program server({"beanstalkd", "-l", "unix:" + path, "-V", "-u", "nobody"});
  struct stat made {};
  eventually([&] {
    return server.has_ended() ||
           (::stat(path.c_str(), &made) == 0 && made.st_uid == ::getpwnam("nobody")->pw_uid);
  });
  EXPECT_FALSE(server.has_ended()) << server.err();
  socket_wire wire(path);
  EXPECT_TRUE(wire.connected());
}

}  // namespace
}  // namespace sluice::jobs::cli::beanstalkd_test
