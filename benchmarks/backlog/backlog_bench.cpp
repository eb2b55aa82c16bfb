// ./bench backlog: memory, restart time and CPU time of a server with a backlog or without jobs.
//
// The backlog of 100-byte jobs is pushed once, to a fresh store; every repetition starts a server
// on it. --large adds a backlog of 10 million jobs, which takes a few minutes and 3 GB.
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "benchmarks/harness.hpp"
#include "benchmarks/server/http_crowd.hpp"
#include "benchmarks/server/server_process.hpp"
#include "benchmarks/server/workloads.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

using namespace sluice::bench;

namespace {

using clock = std::chrono::steady_clock;

// A store with `jobs` waiting jobs, filled by the first measurement.
class backlog {
 public:
  explicit backlog(std::uint64_t jobs) : jobs_(jobs) {}

  // Milliseconds from the start of the program until a worker has its first job.
  measure restart_ms() {
    return [this](const settings& s) {
      fill(s);
      return first_lease_ms();
    };
  }

  // The same after the previous server was killed, so that its log is not copied into the file.
  measure restart_killed_ms() {
    return [this](const settings& s) {
      fill(s);
      server_process server(folder_->path());
      work_off(server, part(s));
      server.kill();
      return first_lease_ms();
    };
  }

  // After a restart, with the window full and a part of the backlog leased and acked from it.
  measure resident_mb() {
    return [this](const settings& s) {
      fill(s);
      server_process server(folder_->path());
      work_off(server, part(s));
      return server.resident_mb();
    };
  }

  // Right after the last push of the backlog.
  measure resident_full_mb() {
    return [this](const settings& s) {
      fill(s);
      return resident_after_filling_;
    };
  }

  // The peak while the backlog was pushed.
  measure peak_mb() {
    return [this](const settings& s) {
      fill(s);
      return peak_while_filling_;
    };
  }

 private:
  std::uint64_t size(const settings& s) const { return s.quick ? jobs_ / 1000 : jobs_; }
  std::uint64_t part(const settings& s) const { return size(s) / 50; }

  double first_lease_ms() {
    const server_process server(folder_->path());
    const std::string body = ask(server.port(), "/v1/leases", R"({"wait":"30s"})");
    const std::chrono::duration<double, std::milli> took = clock::now() - server.started();
    expect_equal(numbers_after(body, "lease").size(), 1, "jobs leased after a restart");
    return took.count();
  }

  void fill(const settings& s) {
    if (folder_ != nullptr) return;
    folder_ =
        std::make_unique<sluice::testing::temporary_folder>(sluice::testing::program_folder());
    server_process server(folder_->path());
    push_backlog(server, size(s));
    resident_after_filling_ = server.resident_mb();
    peak_while_filling_ = server.peak_mb();
  }

  std::uint64_t jobs_;
  std::unique_ptr<sluice::testing::temporary_folder> folder_;
  double resident_after_filling_ = 0;
  double peak_while_filling_ = 0;
};

std::uint64_t waiting_leases(const server_process& server) {
  const auto found = numbers_after(ask(server.port(), "/v1/stats", {}), "waiting_leases");
  expect_equal(found.size(), 1, "counts of waiting leases in /v1/stats");
  return found[0];
}

// 8 workers wait in a long poll, and no job is pushed.
double idle_cpu_ms(const settings& s) {
  const sluice::testing::temporary_folder folder(sluice::testing::program_folder());
  server_process server(folder.path());
  // The server's own delivery loop waits for a lease too.
  const std::uint64_t expected = waiting_leases(server) + workers;
  http_crowd crowd(server.port());
  for (int i = 0; i < workers; ++i) {
    auto& c = crowd.connect([](http_crowd::connection&, const http_answer& answer) {
      fail("a waiting worker was answered " + std::to_string(answer.status));
    });
    crowd.post(c, "/v1/leases", R"({"wait":"60s"})");
  }
  const auto give_up = clock::now() + std::chrono::seconds(30);
  crowd.run([&] {
    const std::uint64_t waiting = waiting_leases(server);
    if (waiting >= expected) return true;
    if (clock::now() > give_up) {
      fail("after 30 s the server counts " + std::to_string(waiting) +
           " waiting leases, expected " + std::to_string(expected));
    }
    crowd.wake_at(clock::now() + std::chrono::milliseconds(10));
    return false;
  });
  const double before = server.cpu_us();
  std::this_thread::sleep_for(s.quick ? seconds(0.2) : seconds(10));
  return (server.cpu_us() - before) / 1e3;
}

void declare(suite& s, const std::string& name, std::string summary, std::string unit,
             double limit) {
  s.declare({.name = name,
             .summary = std::move(summary),
             .unit = std::move(unit),
             .direction = better::lower,
             .bars = {below(limit)},
             .repetitions_max = 3});
}

void add_backlog(suite& s, backlog& b, const std::string& size, double mb_max, double ms_max) {
  const std::string jobs = size + " 100-byte jobs waiting: ";
  declare(s, "memory_full_" + size, jobs + "resident memory after the last push", "MB", mb_max);
  declare(s, "memory_peak_" + size, jobs + "peak resident memory while they were pushed", "MB",
          mb_max);
  declare(s, "restart_" + size, jobs + "from the start of the program to the first lease", "ms",
          ms_max);
  declare(s, "restart_killed_" + size, jobs + "the same after it was killed at 2% of the work",
          "ms", ms_max);
  declare(s, "memory_" + size, jobs + "resident memory after a restart and 2% of the work", "MB",
          mb_max);
  s.add("memory_full_" + size, "sluice", b.resident_full_mb());
  s.add("memory_peak_" + size, "sluice", b.peak_mb());
  s.add("restart_" + size, "sluice", b.restart_ms());
  s.add("restart_killed_" + size, "sluice", b.restart_killed_ms());
  s.add("memory_" + size, "sluice", b.resident_mb());
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> arguments;
  bool is_large = false;
  for (int i = 0; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--large") {
      is_large = true;
    } else {
      arguments.push_back(argv[i]);
    }
  }
  suite s("backlog");
  declare(s, "idle_cpu_ms", "CPU of a server with 8 waiting workers in 10 s", "ms", 10);
  s.add("idle_cpu_ms", "sluice", idle_cpu_ms);
  backlog million(1'000'000);
  add_backlog(s, million, "1m", 64, 1000);
  backlog ten_million(10'000'000);
  if (is_large) add_backlog(s, ten_million, "10m", 128, 2000);
  return s.run(static_cast<int>(arguments.size()), arguments.data());
}
