// Actors are killed and restarted by the thousand while several threads send to them and ask them.
// No message is silently lost: each was handled, refused to its sender, or is a dead letter.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/reentrant.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::actor_chaos_test {
namespace {

using namespace std::chrono_literals;

// The sanitizers, which are slow, do not recycle blocks.
constexpr std::size_t bosses = 12;
constexpr std::size_t workers_each = 8;
constexpr std::size_t senders = 4;

struct bits {
  int n;
};
struct slowly {};
struct later {};  // stashed until it is open
struct open_or_shut {};
struct kill_it {
  static constexpr lane in_lane = lane::urgent;
};
struct kill_for_good {};
struct twice {
  using reply = int;
  int n;
};
struct twice_slowly {
  using reply = int;
  int n;
};
struct hire_again {
  std::size_t slot;
};
struct worker_ended {};

class for_good : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
class no_matter : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
class too_much : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct tally {
  std::atomic<std::uint64_t> sent{0};     // sends and asks, refused or not
  std::atomic<std::uint64_t> refused{0};  // full, or no capacity in time
  std::atomic<std::uint64_t> handled{0};
  std::atomic<std::uint64_t> asks{0};
  std::atomic<std::uint64_t> asks_refused{0};
  std::atomic<std::uint64_t> asks_handled{0};
  std::atomic<std::uint64_t> answers{0};
  std::atomic<std::uint64_t> no_answers{0};  // the asker got terminated or dropped
  std::atomic<std::uint64_t> dead_asks{0};   // reported as dead letters

  void count(status outcome) {
    ++sent;
    if (outcome == status::full || outcome == status::timed_out) ++refused;
  }
};

class worker;

// The actor in each slot.
class table {
 public:
  ref<worker> at(std::size_t slot) {
    const std::lock_guard hold(mutex_);
    return all_[slot];
  }
  void put(std::size_t slot, ref<worker> r) {
    const std::lock_guard hold(mutex_);
    std::swap(all_[slot], r);
  }

 private:
  std::mutex mutex_;
  std::vector<ref<worker>> all_ = std::vector<ref<worker>>(bosses * workers_each);
};

class worker : public actor<worker, bits, slowly, later, open_or_shut, kill_it, kill_for_good,
                            twice, twice_slowly> {
 public:
  worker(tally* counts, table* workers, std::size_t slot)
      : counts_(*counts), workers_(*workers), slot_(slot) {
    static std::atomic<std::uint64_t> made{0};
    if (++made % 64 == 0) throw std::runtime_error("not this time");
  }
  void on(bits m) {
    ++counts_.handled;
    if (m.n <= 0) return;
    const ref<worker> next = workers_.at((slot_ + 7) % (bosses * workers_each));
    if (next) counts_.count(next.try_send(bits{m.n - 1}));
  }
  task<> on(slowly) {
    ++counts_.handled;
    co_await reentrant([]() -> task<> { co_await this_task::yield(); }());
  }
  void on(later m) {
    if (is_open_ || stash(m) == status::full) ++counts_.handled;
  }
  void on(open_or_shut) {
    ++counts_.handled;
    is_open_ = !is_open_;
    if (is_open_) unstash_all();
  }
  void on(kill_it) {
    ++counts_.handled;
    throw std::runtime_error("killed");
  }
  void on(kill_for_good) {
    ++counts_.handled;
    throw for_good("killed for good");
  }
  int on(twice t) {
    ++counts_.handled;
    ++counts_.asks_handled;
    if (t.n % 16 == 0) throw std::runtime_error("killed by a question");
    if (t.n % 16 == 1) throw no_matter("the state is intact");
    if (t.n % 64 == 2) throw too_much("for its boss as well");
    return 2 * t.n;
  }
  task<int> on(twice_slowly t) {
    ++counts_.handled;
    ++counts_.asks_handled;
    co_await this_task::yield();
    co_return 2 * t.n;
  }

 private:
  tally& counts_;
  table& workers_;
  const std::size_t slot_;
  bool is_open_ = false;
};

// From a coroutine.
task<> send_slowly(ref<worker> target, tally& counts) {
  bits m{1};
  auto sending = target.async_send(m);
  counts.count(co_await sending);
}

class boss : public actor<boss, hire_again, worker_ended, kill_it> {
 public:
  boss(tally* counts, table* workers, std::size_t number)
      : counts_(*counts), workers_(*workers), number_(number) {
    for (std::size_t i = 0; i < workers_each; ++i) hire(number_ * workers_each + i);
  }
  void on(hire_again h) {
    ++counts_.handled;
    if (workers_.at(h.slot).is_terminated()) hire(h.slot);
  }
  void on(worker_ended) { ++counts_.handled; }
  void on(kill_it) {
    ++counts_.handled;
    throw std::runtime_error("the boss is killed");
  }

 private:
  void hire(std::size_t slot) {
    constexpr overflow policies[] = {overflow::block, overflow::reject, overflow::drop_newest,
                                     overflow::drop_oldest, overflow::latest};
    actor_options o;
    o.mailbox.capacity = 4;
    o.mailbox.stash_capacity = 3;
    o.mailbox.overflow = policies[slot % 5];
    for (;;) {
      try {
        const ref<worker> made = spawn_with<worker>(o, &counts_, &workers_, slot);
        watch(made, [this](const actor_end&) {
          ++counts_.sent;
          return worker_ended{};
        });
        return workers_.put(slot, made);
      } catch (const std::runtime_error&) {
        // Its constructor threw; the next one does not.
      }
    }
  }

  tally& counts_;
  table& workers_;
  const std::size_t number_;
};

supervision strict(strategy kind) {
  supervision s;
  s.strategy = kind;
  s.restarts_max = 1'000'000;
  s.within = 1ms;
  s.decide = [](const std::exception_ptr& e) {
    try {
      std::rethrow_exception(e);
    } catch (const for_good&) {
      return directive::stop;
    } catch (const no_matter&) {
      return directive::resume;
    } catch (const too_much&) {
      return directive::escalate;
    } catch (...) {
      return directive::restart;
    }
  };
  return s;
}

// A sending thread.
class sender {
 public:
  sender(tally& counts, table& workers, const std::vector<ref<boss>>& above, executor& tasks_on,
         sluice::random chance)
      : counts_(counts), workers_(workers), above_(above), tasks_on_(tasks_on), chance_(chance) {}

  void act() {
    const std::size_t slot = chance_.below(bosses * workers_each);
    const ref<worker> target = workers_.at(slot);
    if (target.is_terminated()) {
      counts_.count(above_[slot / workers_each].send(hire_again{slot}));
    }
    switch (chance_.below(16)) {
      case 0:
        return ask(target, twice_slowly{1});
      case 1:
      case 2:
        return ask(target, twice{static_cast<int>(chance_.below(1000))});
      case 3:
      case 4:
      case 5:
        return counts_.count(target.send(kill_it{}));
      case 6:
        return counts_.count(target.send(slowly{}));
      case 7:
        return counts_.count(target.send(bits{0}, 100us));
      case 8:
        return lose_one(slot, target);
      case 9:
        return counts_.count(target.send(bits{3}));
      case 10:
        return counts_.count(target.try_send(later{}));
      case 11:
        return counts_.count(target.try_send(open_or_shut{}));
      case 12:
        sending_.push_back(spawn(tasks_on_, send_slowly(target, counts_)));
        return;
      default:
        return counts_.count(target.try_send(bits{1}));
    }
  }

  void collect_replies() {
    for (auto& f : asked_) hear(std::move(f));
    asked_.clear();
    for (auto& f : sending_) f.get();
    sending_.clear();
  }

 private:
  void lose_one(std::size_t slot, const ref<worker>& target) {
    const ref<boss>& owner = above_[slot / workers_each];
    const auto choice = chance_.below(64);
    if (choice == 0) return counts_.count(owner.send(kill_it{}));
    if (choice < 8) target.stop();
    if (choice >= 8 && choice < 16) target.close();
    if (choice >= 16 && choice < 24) counts_.count(target.send(kill_for_good{}));
    counts_.count(owner.send(hire_again{slot}));
  }
  template <class Q>
  void ask(const ref<worker>& target, Q q) {
    ++counts_.sent;
    ++counts_.asks;
    asked_.push_back(target.ask(q));
    if (asked_.size() >= 64) collect_replies();
  }
  void hear(future<int> f) {
    try {
      (void)f.get();
      ++counts_.answers;
    } catch (const actor_error& e) {
      if (e.why() == actor_error::full) {
        ++counts_.refused;
        ++counts_.asks_refused;
      } else {
        EXPECT_TRUE(e.why() == actor_error::terminated || e.why() == actor_error::dropped)
            << e.what();
        ++counts_.no_answers;
      }
    } catch (const std::runtime_error&) {
      ++counts_.answers;  // the handler threw
    }
  }

  tally& counts_;
  table& workers_;
  const std::vector<ref<boss>>& above_;
  executor& tasks_on_;
  sluice::random chance_;
  std::vector<future<int>> asked_;
  std::vector<future<void>> sending_;
};

class chaos {
 public:
  explicit chaos(testing::stress& s) : stress_(s), system_(pool_, options()) {
    constexpr strategy all[] = {strategy::one_for_one, strategy::one_for_all,
                                strategy::rest_for_one};
    for (std::size_t i = 0; i < bosses; ++i) {
      actor_options o;
      o.mailbox.capacity = 256;
      o.children = strict(all[i % 3]);
      above_.push_back(system_.spawn_with<boss>(o, &counts, &workers_, i));
    }
  }

  void run() {
    std::atomic<bool> stopped{false};
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < senders; ++t) {
      threads.emplace_back([this, t, &stopped] {
        sender thread(counts, workers_, above_, pool_, stress_.generator(t));
        std::uint64_t acts = 0;
        // Some more after the end, so that there are sends to terminated actors.
        for (int after = 0; after < 1000; ++acts) {
          thread.act();
          const actor_system_stats now = system_.stats();
          if (now.restarts >= kills_wanted && now.failures >= kills_wanted) stopped = true;
          if (stopped && after++ == 100) system_.stop();
        }
        thread.collect_replies();
        stress_.did(acts);
      });
    }
    threads.clear();
    system_.stop();
    EXPECT_TRUE(system_.join());
  }

  actor_system_stats stats() const { return system_.stats(); }
  tally counts;
  const std::uint64_t kills_wanted = testing::effort(
      testing::test_name(), "kills", {.ci = 25'000, .full = 100'000, .sanitized = 1'500});

 private:
  actor_system_options options() {
    actor_system_options o;
    o.top = strict(strategy::one_for_one);
    o.top.decide = [below = o.top.decide,
                    n = std::make_shared<std::atomic<int>>(0)](const std::exception_ptr& e) {
      // An exception that is too much for a boss: every other time it is resumed, with its workers.
      const directive action = below(e);
      if (action != directive::escalate) return action;
      return ++*n % 2 == 0 ? directive::resume : directive::restart;
    };
    o.on_failure = [](const actor_failure&) {};
    o.on_dead_letter = [this](const dead_letter& d) {
      if (d.message.find("twice") != std::string_view::npos) ++counts.dead_asks;
    };
    return o;
  }

  testing::stress& stress_;
  table workers_;
  work_stealing_pool pool_{{.threads = 3}};
  actor_system system_;
  std::vector<ref<boss>> above_;
};

TEST(actor_chaos_test, EveryMessageIsHandledRefusedOrADeadLetter) {
  testing::stress s;
  chaos c(s);
  c.run();
  const actor_system_stats end = c.stats();
  const tally& n = c.counts;
  EXPECT_GE(end.restarts, c.kills_wanted);
  EXPECT_GE(end.failures, c.kills_wanted);
  EXPECT_EQ(end.live, 0U);
  EXPECT_EQ(n.sent, n.handled + n.refused + end.dead_letters);
  // The same sum for the questions alone, from both sides.
  EXPECT_EQ(n.asks, n.answers + n.no_answers + n.asks_refused);
  EXPECT_EQ(n.answers, n.asks_handled);
  EXPECT_EQ(n.no_answers, n.dead_asks);
  std::printf(
      "[  CHAOS   ] sent %llu = handled %llu + refused %llu + dead letters %llu; "
      "failures %llu, restarts %llu, spawned %llu\n",
      static_cast<unsigned long long>(n.sent), static_cast<unsigned long long>(n.handled),
      static_cast<unsigned long long>(n.refused), static_cast<unsigned long long>(end.dead_letters),
      static_cast<unsigned long long>(end.failures), static_cast<unsigned long long>(end.restarts),
      static_cast<unsigned long long>(end.spawned));
}

}  // namespace
}  // namespace sluice::actor_chaos_test
