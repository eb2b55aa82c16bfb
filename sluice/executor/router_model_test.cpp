// Workers join and leave while items come in: every item is handled exactly once, and items of one
// key in their order, under every rule. The seed is printed.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/executor/router.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/testing/stress.hpp"

namespace sluice::testing::router_model_test {
namespace {

struct item {
  std::uint32_t key = 0;
  std::uint32_t number = 0;  // within its key, from 0
};

constexpr std::uint32_t keys = 32;
constexpr routing all_rules[] = {routing::round_robin, routing::least_loaded, routing::by_key,
                                 routing::by_priority, routing::work_stealing};

router<item>::options options_for(routing rule, std::size_t capacity) {
  router<item>::options o{.rule = rule, .capacity = capacity, .per_turn = 3};
  if (rule == routing::by_key) o.key = [](const item& i) { return i.key; };
  if (rule == routing::by_priority) o.priority = [](const item& i) { return i.key % 4; };
  return o;
}

// ---- one thread, step by step, against a model made of queues

// The state of the model: the queued items, in the order of each key, and the item of each worker.
class router_model : public ::testing::TestWithParam<routing> {};

TEST_P(router_model, AgreesWithTheModelAfterEveryStep) {
  stress run;
  auto choose = run.generator(0);
  for (int round = 0; round < 40; ++round) {
    router<item> r(options_for(GetParam(), 8));
    struct at_work {
      std::unique_ptr<router<item>::worker> handle;
      std::optional<item> current;
    };
    std::deque<at_work> workers;
    std::map<std::uint32_t, std::deque<std::uint32_t>> queued;  // the model
    std::map<std::uint32_t, std::uint32_t> pushed;
    std::size_t inside = 0;
    const auto begin_checked = [&](at_work& w, const item& got) {
      auto& same_key = queued[got.key];
      if (GetParam() == routing::by_key) {
        ASSERT_EQ(got.number, same_key.front()) << "key " << got.key;
        for (const auto& other : workers) {
          if (&other != &w && other.current.has_value()) {
            ASSERT_NE(other.current->key, got.key) << "two are at one key";
          }
        }
      }
      ASSERT_EQ(std::erase(same_key, got.number), 1u) << "begun twice, or never pushed";
      w.current = got;
      --inside;
    };
    for (int step = 0; step < 400; ++step) {
      switch (choose.below(8)) {
        case 0:
          if (workers.size() < 6) {
            workers.push_back({std::make_unique<router<item>::worker>(r.join()), {}});
          }
          break;
        case 1:
          if (!workers.empty() && choose.below(2) == 0) {
            workers.erase(workers.begin() +
                          choose.below(static_cast<std::uint32_t>(workers.size())));
          }
          break;
        case 2:
        case 3:
        case 4: {
          const auto key = choose.below(keys);
          const item next{key, pushed[key]};
          const auto result = r.try_push(next);
          ASSERT_TRUE(result || result == status::full);
          ASSERT_TRUE(!result || !workers.empty());
          if (result) {
            queued[key].push_back(pushed[key]++);
            ++inside;
          }
          break;
        }
        default: {
          if (workers.empty()) break;
          auto& w = workers[choose.below(static_cast<std::uint32_t>(workers.size()))];
          w.current.reset();
          const auto got = w.handle->try_next();
          if (got) {
            begin_checked(w, *got);
          } else {
            ASSERT_EQ(got.status(), status::empty);
            const bool shared =
                GetParam() == routing::by_priority || GetParam() == routing::work_stealing;
            ASSERT_TRUE(!shared || inside == 0) << "there was something to take";
          }
        }
      }
      ASSERT_EQ(r.stats().queued, inside);
      run.did();
    }
    // One worker is left and gets all remaining items.
    workers.clear();
    workers.push_back({std::make_unique<router<item>::worker>(r.join()), {}});
    r.close();
    while (auto got = workers.front().handle->try_next()) begin_checked(workers.front(), *got);
    EXPECT_EQ(inside, 0u);
    EXPECT_EQ(r.wait_ended(), status::ok);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, router_model, ::testing::ValuesIn(all_rules),
                         [](const auto& rule) { return std::string(to_string(rule.param)); });

// ---- threads

// Handlers on a pool, loops on threads and pushing threads, while others join and leave.
class router_stress : public ::testing::TestWithParam<routing> {
 protected:
  void handled(const item& i) {
    ++times[i.key][i.number];
    if (GetParam() == routing::by_key) {
      // Never two items of a key at once, and in order.
      EXPECT_EQ(inside[i.key].fetch_add(1), 0);
      EXPECT_EQ(last[i.key].fetch_add(1), i.number) << "key " << i.key;
      inside[i.key].fetch_sub(1);
    }
    if (++done == keys * each) all_handled.set();
  }

  static constexpr std::uint32_t each = 300;
  std::array<std::array<std::atomic<int>, each>, keys> times{};
  std::array<std::atomic<int>, keys> inside{};
  std::array<std::atomic<std::uint32_t>, keys> last{};
  std::atomic<std::uint32_t> done{0};
  event all_handled;
};

TEST_P(router_stress, EveryItemIsHandledOnceWhileWorkersJoinAndLeaveUnderLoad) {
  stress run;
  thread_pool pool(3);
  router<item> r(options_for(GetParam(), 4));
  const auto on_pool = [&] {
    return r.join(pool, [this](item& i) { handled(i); });
  };
  {
    auto steady = on_pool();  // there is always one worker
    std::atomic<bool> over{false};
    std::vector<std::jthread> threads;
    for (std::uint32_t pusher = 0; pusher < 4; ++pusher) {
      threads.emplace_back([&, pusher] {  // each has its own keys, so the order is known
        auto choose = run.generator(pusher);
        for (std::uint32_t n = 0; n < each; ++n) {
          for (std::uint32_t key = pusher; key < keys; key += 4) {
            item next{key, n};
            switch (choose.below(3)) {
              case 0:
                while (!r.try_push(next)) std::this_thread::yield();
                break;
              case 1:
                while (!r.push(std::move(next), deadline::after(std::chrono::microseconds(200)))) {
                }
                break;
              default:
                EXPECT_EQ(r.push(next), status::ok);
            }
          }
        }
        run.did(each * keys / 4);
      });
    }
    for (std::uint32_t looper = 0; looper < 2; ++looper) {
      threads.emplace_back([&, looper] {  // joins, works for a while, leaves, joins again
        auto choose = run.generator(10 + looper);
        while (!over) {
          auto w = r.join();
          for (auto left = choose.below(40); left > 0; --left) {
            auto got = w.next(std::chrono::microseconds(300));
            if (got) handled(*got);
          }
        }
      });
    }
    threads.emplace_back([&] {
      auto choose = run.generator(20);
      while (!over) {
        std::vector<router<item>::worker> some;
        for (auto n = 1 + choose.below(3); n > 0; --n) some.push_back(on_pool());
        for (auto n = choose.below(200); n > 0; --n) std::this_thread::yield();
        if (choose.below(2) == 0) some.front().leave();
      }
    });
    all_handled.wait();
    over = true;
    threads.clear();
    r.drain();
  }
  for (const auto& key : times) {
    for (const auto& count : key) EXPECT_EQ(count, 1);
  }
  EXPECT_EQ(r.stats().pushed, keys * each);
  EXPECT_EQ(r.stats().queued, 0u);
}

TEST_P(router_stress, StopUnderLoadReturnsExactlyTheUnhandledItems) {
  stress run;
  thread_pool pool(3);
  for (int round = 0; round < 20; ++round) {
    done = 0;
    for (auto& l : last) l = 0;
    event under_load;
    router<item> r(options_for(GetParam(), 4));
    std::vector<router<item>::worker> workers;
    for (int i = 0; i < 3; ++i) {
      workers.push_back(r.join(pool, [&](item&) {
        if (++done == 51) under_load.set();
      }));
    }
    std::atomic<std::uint32_t> accepted{0};
    std::vector<std::jthread> threads;
    for (std::uint32_t pusher = 0; pusher < 2; ++pusher) {
      threads.emplace_back([&, pusher] {
        for (std::uint32_t n = 0;; ++n) {
          const auto result = r.push(item{pusher, n});
          if (!result) {
            EXPECT_EQ(result, status::closed);
            return;
          }
          ++accepted;
        }
      });
    }
    under_load.wait();
    const auto unstarted = r.stop();
    threads.clear();
    EXPECT_EQ(unstarted.size() + done, accepted);
    run.did(accepted);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, router_stress, ::testing::ValuesIn(all_rules),
                         [](const auto& rule) { return std::string(to_string(rule.param)); });

}  // namespace
}  // namespace sluice::testing::router_model_test
