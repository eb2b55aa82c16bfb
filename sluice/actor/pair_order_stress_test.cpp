// Messages from one sender to one receiver are begun in the order in which they were sent, with
// every overflow policy, every way to send, and every way to handle them.
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

// The receiver's observations, which outlive its states. Used only in its turns, except the
// atomics.
struct pair_record {
  // Senders continue until this many messages are handled.
  const std::uint64_t wanted = testing::effort(testing::test_name(), "messages",
                                               {.ci = 5'000, .full = 20'000, .sanitized = 500});
  bool is_enough() const { return handled >= wanted; }

  std::array<std::uint64_t, pair_senders> last{};
  std::atomic<std::uint64_t> sent{0};  // and accepted
  std::atomic<std::uint64_t> handled{0};
  std::uint64_t thrown = 0;
  std::uint64_t put_aside = 0;
  std::uint64_t broken = 0;  // numbers that did not increase
};

class ordered_receiver : public actor<ordered_receiver, numbered> {
 public:
  explicit ordered_receiver(pair_record* record) : record_(*record) {}

  // From time to time it stashes messages, and then unstashes all; or it throws.
  void on(numbered m) {
    if (aside_ > 0) {
      check(static_cast<bool>(stash(m)), "test", "capacity in the stash");
      ++record_.put_aside;
      if (--aside_ == 0) unstash_all();
      return;
    }
    if (++seen_ % 50 == 0) {
      aside_ = 5;
      check(static_cast<bool>(stash(m)), "test", "capacity in the stash");
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

inline task<> send_all(ref<ordered_receiver> receiver, std::size_t sender, pair_record& record) {
  for (std::uint64_t n = 1; !record.is_enough(); ++n) {
    numbered m{sender, n};
    auto sending = receiver.async_send(m);
    const status outcome = co_await sending;
    if (outcome) ++record.sent;
    if (!outcome || n % 8 == 0)
      co_await this_task::yield();  // for policies that never block senders
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
  void send_from_thread(const ref<ordered_receiver>& receiver, std::size_t sender, how_sent call) {
    for (std::uint64_t n = 1; !record.is_enough(); ++n) {
      const numbered m{sender, n};
      const status outcome = call == how_sent::send ? receiver.send(m) : receiver.try_send(m);
      if (outcome) ++record.sent;
      if (!outcome || n % 8 == 0)
        std::this_thread::yield();  // for policies that never block senders
    }
  }
  void send_everything(const ref<ordered_receiver>& receiver, how_sent call) {
    std::vector<std::jthread> threads;
    std::vector<future<void>> tasks;
    for (std::size_t sender = 0; sender < pair_senders; ++sender) {
      if (call == how_sent::async_send) {
        tasks.push_back(spawn(pool, send_all(receiver, sender, record)));
      } else {
        threads.emplace_back(
            [this, &receiver, sender, call] { send_from_thread(receiver, sender, call); });
      }
    }
    for (auto& t : tasks) t.get();
  }

  pair_record record;
  work_stealing_pool pool{{.threads = 2}};
};

TEST_P(pair_order_test, TheNumbersOfEachSenderIncrease) {
  const auto [when_full, call] = GetParam();
  testing::stress s;
  actor_system_stats end;
  {
    actor_system system(pool, quiet());
    actor_options o;
    o.mailbox.capacity = 8;
    o.mailbox.overflow = when_full;
    const auto receiver = system.spawn_with<ordered_receiver>(o, &record);
    send_everything(receiver, call);
    EXPECT_TRUE(system.shutdown({}));
    end = system.stats();
  }
  s.did(record.handled);
  EXPECT_EQ(record.broken, 0U);
  EXPECT_GT(record.thrown, 0U);
  EXPECT_GT(record.put_aside, 0U);
  // A message dropped by drop_newest was not accepted; a message dropped by the other two was.
  const std::uint64_t turned_away = when_full == overflow::drop_newest ? end.dropped : 0;
  EXPECT_EQ(record.handled + end.dead_letters, record.sent + turned_away);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<overflow, how_sent>>& p) {
  static constexpr const char* calls[] = {"send", "try_send", "async_send"};
  const auto [when_full, call] = p.param;
  return std::string(to_string(when_full)) + "_" + calls[static_cast<std::size_t>(call)];
}

INSTANTIATE_TEST_SUITE_P(
    all, pair_order_test,
    ::testing::Combine(::testing::Values(overflow::block, overflow::reject, overflow::drop_newest,
                                         overflow::drop_oldest, overflow::latest),
                       ::testing::Values(how_sent::send, how_sent::try_send, how_sent::async_send)),
    &name_of);

}  // namespace
}  // namespace sluice::pair_order_stress_test
