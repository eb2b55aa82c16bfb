// What one sender sends to one receiver is begun in the order in which it was sent, whatever the
// mailbox does when it is full, however it is sent, and whatever the receiver does with it.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "sluice/actor/actor_system.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::pair_order_stress_test {

constexpr std::size_t pair_senders = 3;

struct numbered {
  std::size_t sender;
  std::uint64_t n;
};

// What the receiver has seen; outlives its states. Its turns alone touch it, but for the atomics.
struct pair_record {
  // Senders go on until so many are handled.
  const std::uint64_t wanted = testing::effort(testing::test_name(), "messages",
                                               {.ci = 5'000, .full = 20'000, .sanitized = 500});
  bool is_enough() const { return handled >= wanted; }

  std::array<std::uint64_t, pair_senders> last{};
  std::atomic<std::uint64_t> sent{0};  // and taken
  std::atomic<std::uint64_t> handled{0};
  std::uint64_t thrown = 0;
  std::uint64_t put_aside = 0;
  std::uint64_t broken = 0;  // numbers that did not rise
};

class ordered_receiver : public actor<ordered_receiver, numbered> {
 public:
  explicit ordered_receiver(pair_record* to) : record_(*to) {}

  // From time to time it puts aside what comes, and then takes it all back; or it throws.
  void on(numbered m) {
    if (aside_ > 0) {
      check(static_cast<bool>(stash(m)), "test", "room in the stash");
      ++record_.put_aside;
      if (--aside_ == 0) unstash_all();
      return;
    }
    if (++seen_ % 50 == 0) {
      aside_ = 5;
      check(static_cast<bool>(stash(m)), "test", "room in the stash");
      return;
    }
    if (m.n <= record_.last[m.sender]) ++record_.broken;
    record_.last[m.sender] = m.n;
    if (++record_.handled % 97 == 0) {
      ++record_.thrown;
      throw std::runtime_error("now and then");
    }
  }

 private:
  pair_record& record_;
  int aside_ = 0;
  std::uint64_t seen_ = 0;
};

enum class how_sent : std::uint8_t { send, try_send, async_send };

inline task<> send_all(ref<ordered_receiver> to, std::size_t sender, pair_record& record) {
  for (std::uint64_t n = 1; !record.is_enough(); ++n) {
    numbered m{sender, n};
    auto sending = to.async_send(m);
    const status how = co_await sending;
    if (how) ++record.sent;
    if (!how || n % 8 == 0) co_await this_task::yield();  // where nobody is made to wait
  }
}

namespace {

class pair_order_test : public ::testing::TestWithParam<std::tuple<overflow, how_sent>> {
 protected:
  static actor_system_options quiet() {
    actor_system_options o;
    o.top.restarts_max = 1'000'000;
    o.on_failure = [](const actor_failure&) {};
    return o;
  }
  void send_from_thread(const ref<ordered_receiver>& to, std::size_t sender, how_sent call) {
    for (std::uint64_t n = 1; !record.is_enough(); ++n) {
      const numbered m{sender, n};
      const status how = call == how_sent::send ? to.send(m) : to.try_send(m);
      if (how) ++record.sent;
      if (!how || n % 8 == 0) std::this_thread::yield();  // where nobody is made to wait
    }
  }
  void send_everything(const ref<ordered_receiver>& to, how_sent call) {
    std::vector<std::jthread> threads;
    std::vector<future<void>> tasks;
    for (std::size_t sender = 0; sender < pair_senders; ++sender) {
      if (call == how_sent::async_send) {
        tasks.push_back(spawn(pool, send_all(to, sender, record)));
      } else {
        threads.emplace_back([this, &to, sender, call] { send_from_thread(to, sender, call); });
      }
    }
    for (auto& t : tasks) t.get();
  }

  pair_record record;
  work_stealing_pool pool{{.threads = 2}};
};

TEST_P(pair_order_test, TheNumbersOfEachSenderRise) {
  const auto [when_full, how] = GetParam();
  testing::stress s;
  actor_system_stats end;
  {
    actor_system system(pool, quiet());
    actor_options o;
    o.mailbox.capacity = 8;
    o.mailbox.overflow = when_full;
    const auto to = system.spawn_with<ordered_receiver>(o, &record);
    send_everything(to, how);
    EXPECT_TRUE(system.shutdown_within({}));
    end = system.stats();
  }
  s.did(record.handled);
  EXPECT_EQ(record.broken, 0U);
  EXPECT_GT(record.thrown, 0U);
  EXPECT_GT(record.put_aside, 0U);
  // What drop_newest turns away was not taken; what the other two drop was.
  const std::uint64_t turned_away = when_full == overflow::drop_newest ? end.dropped : 0;
  EXPECT_EQ(record.handled + end.dead_letters, record.sent + turned_away);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<overflow, how_sent>>& p) {
  static constexpr const char* calls[] = {"send", "try_send", "async_send"};
  const auto [when_full, how] = p.param;
  return std::string(to_string(when_full)) + "_" + calls[static_cast<std::size_t>(how)];
}

INSTANTIATE_TEST_SUITE_P(
    all, pair_order_test,
    ::testing::Combine(::testing::Values(overflow::block, overflow::reject, overflow::drop_newest,
                                         overflow::drop_oldest, overflow::latest),
                       ::testing::Values(how_sent::send, how_sent::try_send, how_sent::async_send)),
    &name_of);

}  // namespace
}  // namespace sluice::pair_order_stress_test
