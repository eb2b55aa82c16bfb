// Litmus tests: outcomes that the C++ memory model allows are found, forbidden ones are not.

#include <gtest/gtest.h>

#include <array>
#include <bitset>
#include <initializer_list>
#include <thread>

#include "sluice/base/atomic.hpp"
#include "sluice/base/race_checked.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/sim/explore.hpp"

namespace sluice::sim::memory_model_test {
namespace {

using reads = std::array<int, 4>;  // the values read by the threads of a program: 0, 1 or 2

constexpr std::size_t index_of(const reads& r) {
  std::size_t index = 0;
  for (const int one : r) index = index * 3 + static_cast<std::size_t>(one);
  return index;
}

class outcomes {
 public:
  // Runs every schedule of a program, with every stale value.
  template <class F>
  explicit outcomes(F program, unsigned preemptions = 4) {
    const auto r = explore({.search = search::exhaustive,
                            .schedules = 0,
                            .preemptions = preemptions,
                            .stale_reads = 4},
                           [&] {
                             reads read{};
                             program(read);
                             seen_.set(index_of(read));
                           });
    EXPECT_FALSE(r.failed()) << r.text();
    EXPECT_TRUE(r.complete);
    std::printf("%llu schedules\n", static_cast<unsigned long long>(r.schedules));
  }
  bool has(reads r) const { return seen_.test(index_of(r)); }

 private:
  std::bitset<81> seen_;
};

struct orders {
  std::memory_order store;
  std::memory_order load;
};

outcomes store_buffering(orders o) {
  return outcomes([o](reads& read) {
    atomic<int> x{0};
    atomic<int> y{0};
    std::jthread one([&] {
      x.store(1, o.store);
      read[0] = y.load(o.load);
    });
    y.store(1, o.store);
    read[1] = x.load(o.load);
    one.join();
  });
}

TEST(MemoryModel, AStoreMayBeReorderedWithALaterLoadOfAnotherObject) {
  EXPECT_TRUE(store_buffering({relaxed, relaxed}).has({0, 0}));
  EXPECT_TRUE(store_buffering({release, acquire}).has({0, 0}));
  EXPECT_FALSE(store_buffering({seq_cst, seq_cst}).has({0, 0}));
  EXPECT_TRUE(store_buffering({seq_cst, acquire}).has({0, 0}));
  EXPECT_TRUE(store_buffering({seq_cst, seq_cst}).has({0, 1}));
  EXPECT_TRUE(store_buffering({seq_cst, seq_cst}).has({1, 1}));
}

template <class F, class G>
outcomes store_buffering_with(F fence_of_one, G fence_of_two) {
  return outcomes([&](reads& read) {
    atomic<int> x{0};
    atomic<int> y{0};
    std::jthread one([&] {
      x.store(1, relaxed);
      fence_of_one();
      read[0] = y.load(relaxed);
    });
    y.store(1, relaxed);
    fence_of_two();
    read[1] = x.load(relaxed);
    one.join();
  });
}

TEST(MemoryModel, FencesKeepAStoreBeforeALaterLoad) {
  const auto strong = [] { atomic_fence(seq_cst); };
  const auto half = [] { atomic_fence(acq_rel); };
  const auto none = [] {};
  EXPECT_FALSE(store_buffering_with(strong, strong).has({0, 0}));
  EXPECT_TRUE(store_buffering_with(strong, none).has({0, 0}));
  EXPECT_TRUE(store_buffering_with(half, half).has({0, 0}));
  EXPECT_FALSE(store_buffering_with(&seam::heavy_barrier, &seam::light_barrier).has({0, 0}));
  EXPECT_TRUE(store_buffering_with(&seam::light_barrier, &seam::light_barrier).has({0, 0}));
}

outcomes message_passing(orders o) {
  return outcomes([o](reads& read) {
    atomic<int> data{0};
    atomic<int> ready{0};
    std::jthread one([&] {
      data.store(1, relaxed);
      ready.store(1, o.store);
    });
    read[0] = ready.load(o.load);
    read[1] = data.load(relaxed);
    one.join();
  });
}

TEST(MemoryModel, ReleaseAndAcquireSynchronize) {
  EXPECT_TRUE(message_passing({relaxed, relaxed}).has({1, 0}));
  EXPECT_TRUE(message_passing({release, relaxed}).has({1, 0}));
  EXPECT_TRUE(message_passing({relaxed, acquire}).has({1, 0}));
  EXPECT_FALSE(message_passing({release, acquire}).has({1, 0}));
  EXPECT_TRUE(message_passing({release, acquire}).has({1, 1}));
  EXPECT_TRUE(message_passing({release, acquire}).has({0, 0}));
}

TEST(MemoryModel, FencesSynchronizeThroughRelaxedAccesses) {
  const auto program = [](std::memory_order before_store, std::memory_order after_load) {
    return outcomes([=](reads& read) {
      atomic<int> data{0};
      atomic<int> ready{0};
      std::jthread one([&] {
        data.store(1, relaxed);
        atomic_fence(before_store);
        ready.store(1, relaxed);
      });
      read[0] = ready.load(relaxed);
      atomic_fence(after_load);
      read[1] = data.load(relaxed);
      one.join();
    });
  };
  EXPECT_FALSE(program(release, acquire).has({1, 0}));
  EXPECT_TRUE(program(acquire, acquire).has({1, 0}));
  EXPECT_TRUE(program(release, release).has({1, 0}));
}

TEST(MemoryModel, ReadsOfOneLocationAreCoherent) {
  const outcomes same_thread([](reads& read) {
    atomic<int> x{0};
    std::jthread one([&] {
      x.store(1, relaxed);
      x.store(2, relaxed);
    });
    read[0] = x.load(relaxed);
    read[1] = x.load(relaxed);
    one.join();
  });
  EXPECT_FALSE(same_thread.has({1, 0}));
  EXPECT_FALSE(same_thread.has({2, 0}));
  EXPECT_FALSE(same_thread.has({2, 1}));
  EXPECT_TRUE(same_thread.has({0, 2}));
  EXPECT_TRUE(same_thread.has({1, 2}));
}

TEST(MemoryModel, ReadsBeforeAReleaseConstrainTheAcquiringThread) {
  const outcomes o(
      [](reads& read) {
        atomic<int> x{0};
        atomic<int> published{0};
        std::jthread writer([&] { x.store(1, relaxed); });
        std::jthread middle([&] {
          read[0] = x.load(relaxed);
          published.store(1, release);
        });
        read[1] = published.load(acquire);
        read[2] = x.load(relaxed);
        writer.join();
        middle.join();
      },
      3);
  EXPECT_FALSE(o.has({1, 1, 0}));
  EXPECT_TRUE(o.has({1, 0, 0}));
  EXPECT_TRUE(o.has({0, 1, 0}));
}

TEST(MemoryModel, AReadModifyWriteContinuesAReleaseSequence) {
  const auto program = [](std::memory_order by_the_middle, bool as_store) {
    return outcomes(
        [=](reads& read) {
          atomic<int> data{0};
          atomic<int> x{0};
          std::jthread first([&] {
            data.store(1, relaxed);
            x.store(1, release);
          });
          std::jthread middle([&] {
            if (!as_store) {
              int one = 1;
              (void)x.compare_exchange_strong(one, 2, by_the_middle, relaxed);
            } else if (x.load(relaxed) == 1) {
              x.store(2, by_the_middle);
            }
          });
          read[0] = x.load(acquire);
          read[1] = data.load(relaxed);
          first.join();
          middle.join();
        },
        3);
  };
  EXPECT_FALSE(program(relaxed, false).has({2, 0}));
  EXPECT_TRUE(program(relaxed, true).has({2, 0}));  // a plain store breaks the sequence
}

TEST(MemoryModel, TwoReadersAgreeOnAnOrderOnlyWithSeqCst) {
  const auto program = [](std::memory_order store, std::memory_order load) {
    return outcomes(
        [=](reads& read) {
          atomic<int> x{0};
          atomic<int> y{0};
          std::jthread one([&] { x.store(1, store); });
          std::jthread two([&] { y.store(1, store); });
          std::jthread reader([&] {
            read[0] = x.load(load);
            read[1] = y.load(load);
          });
          read[2] = y.load(load);
          read[3] = x.load(load);
          one.join();
          two.join();
          reader.join();
        },
        2);
  };
  EXPECT_TRUE(program(release, acquire).has({1, 0, 1, 0}));
  EXPECT_FALSE(program(seq_cst, seq_cst).has({1, 0, 1, 0}));
}

TEST(MemoryModel, AReadModifyWriteReadsTheNewestValue) {
  const outcomes o([](reads& read) {
    atomic<int> x{0};
    std::jthread one([&] { read[0] = x.fetch_add(1, relaxed); });
    read[1] = x.fetch_add(1, relaxed);
    one.join();
  });
  EXPECT_TRUE(o.has({0, 1}));
  EXPECT_TRUE(o.has({1, 0}));
  EXPECT_FALSE(o.has({0, 0}));
}

// The exhaustive search skips equivalent schedules; the random searches do not.
TEST(MemoryModel, RandomAndExhaustiveSchedulesFindTheSame) {
  const auto program = [](reads& read) {
    atomic<int> x{0};
    atomic<int> y{0};
    std::jthread one([&] {
      x.store(1, relaxed);
      read[0] = y.exchange(1, acq_rel);
      x.store(2, release);
    });
    std::jthread two([&] {
      read[1] = x.load(acquire);
      read[2] = y.load(relaxed);
    });
    read[3] = x.exchange(0, acq_rel);
    one.join();
    two.join();
  };
  const outcomes all(program, 3);
  std::bitset<81> at_random;
  const auto r = explore({.schedules = 20'000}, [&] {
    reads read{};
    program(read);
    at_random.set(index_of(read));
  });
  EXPECT_FALSE(r.failed()) << r.text();
  int found = 0;
  for (int a = 0; a < 81; ++a) {
    const reads read{a / 27 % 3, a / 9 % 3, a / 3 % 3, a % 3};
    EXPECT_EQ(all.has(read), at_random.test(static_cast<std::size_t>(a))) << a;
    found += all.has(read) ? 1 : 0;
  }
  EXPECT_GT(found, 6);
}

}  // namespace
}  // namespace sluice::sim::memory_model_test
