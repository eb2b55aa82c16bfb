// Kills a process that keeps accounts in a file, and checks the acknowledged deposits.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "sluice/actor/keyed_actor.hpp"
#include "sluice/actor/keyed_actors.hpp"
#include "sluice/actor/sqlite/sqlite_actor_store.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/temporary_folder.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/executor/work_stealing_pool.hpp"

namespace sluice::keyed_crash_test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t accounts = 50;

struct deposit {
  using reply = std::uint32_t;
};

class account : public keyed_actor<account, deposit> {
 public:
  task<std::uint32_t> on(deposit) {
    const std::uint32_t balance = ++balance_;
    co_await save_now();
    co_return balance;
  }
  std::string save() const { return std::to_string(balance_); }
  void load(std::string_view s) {
    balance_ = static_cast<std::uint32_t>(std::stoul(std::string(s)));
  }

 private:
  std::uint32_t balance_ = 0;
};

// An acknowledged deposit, as printed by the process.
struct acknowledged {
  std::uint32_t key;
  std::uint32_t balance;
};

// Deposits until it is killed, many at a time, with fewer accounts in memory than there are.
[[noreturn]] void work(const std::string& path, int say, std::uint64_t seed) {
  sqlite_actor_store store(path);
  work_stealing_pool pool({.threads = 2});
  actor_system system(pool);
  keyed_options o;
  o.store = &store;
  o.type = "account";
  o.live_max = 10;
  o.idle = 1ms;
  keyed_actors<account> all(system, std::move(o));
  random dice(seed);
  for (;;) {
    std::vector<std::pair<std::uint32_t, future<std::uint32_t>>> asked;
    for (int i = 0; i < 20; ++i) {
      const std::uint32_t key = dice.below(accounts);
      asked.emplace_back(key, all.of(std::to_string(key)).ask(deposit{}));
    }
    for (auto& [key, answer] : asked) {
      const acknowledged a{key, answer.get()};
      if (::write(say, &a, sizeof(a)) != sizeof(a)) ::_exit(1);
    }
  }
}

TEST(keyed_crash_test, AcknowledgedDepositsOutliveAKill) {
  const std::string name = testing::test_name();
  const std::uint64_t seed = testing::seed(name);
  const int rounds = static_cast<int>(testing::effort(name, "kills", {.ci = 8, .full = 100}));
  const testing::temporary_folder folder;
  const std::string path = folder.file("accounts.db");
  random dice(seed);
  std::vector<std::uint32_t> balances(accounts, 0);
  std::uint32_t deposits = 0;
  for (int round = 0; round < rounds; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(pipe[0]);
      work(path, pipe[1], seed + static_cast<std::uint64_t>(round) + 1);
    }
    ::close(pipe[1]);
    // Killed after some replies; every deposit acknowledged by then counts.
    const std::uint32_t enough = 50 + dice.below(200);
    acknowledged a{};
    for (std::uint32_t n = 0; ::read(pipe[0], &a, sizeof(a)) == sizeof(a); ++n) {
      EXPECT_GT(a.balance, balances[a.key]) << "the balance fell, in account " << a.key;
      balances[a.key] = a.balance;
      ++deposits;
      if (n == enough) ::kill(child, SIGKILL);
    }
    ::close(pipe[0]);
    int wait_status = 0;
    ASSERT_EQ(::waitpid(child, &wait_status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(wait_status)) << "it ended by itself";
    sqlite_actor_store store(path);
    for (std::uint32_t k = 0; k < accounts; ++k) {
      const auto state = store.load("account", std::to_string(k)).get();
      const std::uint32_t there = state ? static_cast<std::uint32_t>(std::stoul(*state)) : 0;
      EXPECT_GE(there, balances[k]) << "account " << k << " after kill " << round;
    }
  }
  std::printf("%u acknowledged\n", deposits);
}

}  // namespace
}  // namespace sluice::keyed_crash_test
