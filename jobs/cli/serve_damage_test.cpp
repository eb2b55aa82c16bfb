// The real program on a store that is damaged, deleted or replaced while it runs: reported once,
// every push and lease refused with the reason, and an exit code that systemd does not restart.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "jobs/cli/testing/expect_has.hpp"
#include "jobs/cli/testing/program.hpp"
#include "jobs/client/client.hpp"
#include "jobs/net/testing/socket_wire.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::jobs::cli::serve_damage_test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using jobs::testing::socket_wire;
using sluice::testing::eventually;
using testing::ended;
using testing::run_sluice;
using testing::server_program;
using testing::temporary_folder;
using testing::text_of;

std::size_t times_in(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

class ServeDamage : public ::testing::Test {
 protected:
  const temporary_folder folder_;
  const std::string file_ = folder_.file("data/jobs.db");

  static client connect(const server_program& server) {
    return std::move(*client::open({.url = server.url()}));
  }
  static std::string status_of_readyz(const server_program& server) {
    const std::string& url = server.url();
    socket_wire wire(static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
    wire.send("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    return wire.line();
  }

  // From the loss of the store to the end of the server.
  void expect_refusals(server_program& server, const std::string& reason) {
    eventually([&] { return server.itself().err().find("store fails") != std::string::npos; });
    client c = connect(server);
    // Longer than the second after which an outage, unlike damage, is probed.
    const auto until = std::chrono::steady_clock::now() + 2500ms;
    do {
      const auto pushed = c.push({.kind = "k"});
      ASSERT_FALSE(pushed);
      EXPECT_EQ(pushed.error().code, error_code::corrupt);
      EXPECT_HAS(pushed.error().message, reason);
      const auto leased = c.lease({.queues = {"default"}}, deadline::after(30s));
      ASSERT_FALSE(leased);
      EXPECT_EQ(leased.error().code, error_code::corrupt);
      EXPECT_HAS(leased.error().message, reason);
    } while (std::chrono::steady_clock::now() < until);
    EXPECT_EQ(status_of_readyz(server), "HTTP/1.1 503 Service Unavailable");
    server.itself().signal(SIGUSR2);
    eventually([&] { return server.itself().err().find("restart rejected") != std::string::npos; });
    const ended end = server.stop();
    EXPECT_EQ(end.code, 7) << end.err;
    EXPECT_EQ(times_in(end.err, "store fails"), 1U) << end.err;
    EXPECT_EQ(times_in(end.err, "works again"), 0U) << end.err;
  }

  // Three jobs, then what the operator does to the files.
  void expect_lost(const std::function<void()>& lose, const std::string& reason) {
    server_program server(folder_, {"--quiet"});
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(connect(server).push({.kind = "k"}));
    lose();
    expect_refusals(server, reason);
    const ended check = run_sluice({"check", file_ + ".saved"});
    EXPECT_EQ(check.code, 0) << check.out << check.err;
    EXPECT_HAS(check.out, "3 jobs");
  }
};

TEST_F(ServeDamage, ADeletedFileIsReportedOnceAndItsJobsAreSaved) {
  expect_lost([&] { fs::remove(file_); }, "jobs.db was deleted");
}

TEST_F(ServeDamage, AFileThatWasReplacedByItsCopyIsReportedOnceAndItsJobsAreSaved) {
  expect_lost(
      [&] {
        fs::copy_file(file_, file_ + ".copy");
        fs::rename(file_ + ".copy", file_);
      },
      "jobs.db was replaced");
}

TEST_F(ServeDamage, ADeletedLockIsReportedOnceAndItsJobsAreSaved) {
  expect_lost([&] { fs::remove(file_ + ".lock"); }, "jobs.db.lock was deleted");
}

TEST_F(ServeDamage, ALogThatWasCutIsReportedOnce) {
  server_program server(folder_, {"--quiet"});
  ASSERT_TRUE(connect(server).push({.kind = "k"}));
  fs::resize_file(file_ + "-wal", 0);
  expect_refusals(server, "jobs.db-wal");
}

TEST_F(ServeDamage, ADeletionJustBeforeTheStopIsReportedByTheStop) {
  server_program server(folder_, {"--quiet"});
  ASSERT_TRUE(connect(server).push({.kind = "k"}));
  fs::remove(file_);
  const ended end = server.stop();
  EXPECT_EQ(end.code, 7) << end.err;
  EXPECT_HAS(end.err, "jobs.db was deleted");
  EXPECT_TRUE(fs::exists(file_ + ".saved"));
}

TEST_F(ServeDamage, AFlippedByteOfAPageIsReportedOnceWhenItIsRead) {
  constexpr int jobs = 6000;  // more than a window, so that the page is not read at the start
  constexpr int damaged = 4500;
  {
    server_program server(folder_, {"--quiet"});
    std::string lines;
    for (int i = 0; i < jobs; ++i) {
      lines += R"({"kind":"k","args":{"mark":"number )" + std::to_string(i) + "\"}}\n";
    }
    const ended pushed = server.run({"push", "--ndjson", "-", "--quiet"}, {.input = lines});
    ASSERT_EQ(pushed.code, 0) << pushed.err;
    ASSERT_EQ(server.stop().code, 0);
  }
  std::string bytes = text_of(file_);
  const std::size_t at = bytes.find("\"number " + std::to_string(damaged) + "\"");
  ASSERT_NE(at, std::string::npos);
  {
    // The first byte of the page: its type.
    std::fstream f(file_, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(static_cast<std::streamoff>(at / 4096 * 4096));
    f.put(static_cast<char>(bytes[at / 4096 * 4096] ^ 0x40));
  }
  server_program server(folder_, {"--quiet"});
  client c = connect(server);
  for (;;) {
    const auto leased = c.lease({.queues = {"default"}, .max = 100}, deadline::after(30s));
    if (!leased) {
      EXPECT_EQ(leased.error().code, error_code::corrupt) << leased.error().message;
      break;
    }
    ASSERT_LE(leased->front().job->id, static_cast<job_id>(jobs));
  }
  expect_refusals(server, "malformed");
}

}  // namespace
}  // namespace sluice::jobs::cli::serve_damage_test
