#include "sluice/sync/snapshot.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/base/testing/test_name.hpp"

namespace snapshot_test {
namespace {

using sluice::snapshot;
using sluice::testing::eventually;

// A value of many equal words, so that a torn value is detected. It counts its live instances, so
// that a leak and a double destruction are detected.
class tally {
 public:
  explicit tally(std::uint64_t n) noexcept {
    words_.fill(n);
    ++alive;
  }
  tally(const tally& other) noexcept : words_(other.words_) { ++alive; }
  tally& operator=(const tally&) = delete;
  ~tally() {
    words_.fill(~std::uint64_t{0});
    --alive;
  }

  void set(std::uint64_t n) noexcept { words_.fill(n); }
  std::uint64_t value() const noexcept { return words_[0]; }
  bool whole() const noexcept {
    return std::ranges::all_of(words_, [&](auto word) { return word == words_[0]; }) &&
           words_[0] != ~std::uint64_t{0};
  }

  static inline std::atomic<std::int64_t> alive{0};

 private:
  std::array<std::uint64_t, 16> words_;
};

static_assert(!std::is_copy_constructible_v<snapshot<int>>);
static_assert(std::is_nothrow_copy_constructible_v<snapshot<int>::view>);
static_assert(std::is_nothrow_move_constructible_v<snapshot<int>::view>);
static_assert(std::is_same_v<decltype(*std::declval<snapshot<int>::view&>()), const int&>);
static_assert(noexcept(std::declval<const snapshot<int>&>().load()));

TEST(Snapshot, LoadReturnsTheInitialValueAsVersionOne) {
  const snapshot<std::string> name("first");
  const auto seen = name.load();
  EXPECT_EQ(*seen, "first");
  EXPECT_EQ(seen->size(), 5U);
  EXPECT_EQ(seen.version(), 1U);
  EXPECT_EQ(name.version(), 1U);
}

TEST(Snapshot, PublishReplacesTheValueAndNumbersTheVersions) {
  snapshot<std::string> name("first");
  EXPECT_EQ(name.publish("second"), 2U);
  EXPECT_EQ(name.publish("third"), 3U);
  EXPECT_EQ(*name.load(), "third");
  EXPECT_EQ(name.load().version(), 3U);
  EXPECT_EQ(name.version(), 3U);
}

TEST(Snapshot, AViewKeepsItsVersionWhileOthersArePublished) {
  snapshot<std::string> name("first");
  const auto old = name.load();
  name.publish("second");
  name.publish("third");
  EXPECT_EQ(*old, "first");
  EXPECT_EQ(old.version(), 1U);
}

TEST(Snapshot, AViewOutlivesTheSnapshot) {
  auto name = std::make_unique<snapshot<tally>>(tally(7));
  const auto last = name->load();
  name.reset();
  EXPECT_TRUE(last->whole());
  EXPECT_EQ(last->value(), 7U);
}

TEST(Snapshot, AReplacedVersionIsDestroyedWithItsLastView) {
  snapshot<tally> box(tally(1));
  auto first = box.load();
  auto copy = first;
  box.publish(tally(2));
  EXPECT_EQ(tally::alive, 2);
  first = {};
  EXPECT_EQ(tally::alive, 2);
  EXPECT_EQ(copy->value(), 1U);
  copy = {};
  EXPECT_EQ(tally::alive, 1);
  box.publish(tally(3));
  EXPECT_EQ(tally::alive, 1) << "a version without views is destroyed when it is replaced";
}

TEST(Snapshot, ViewsCopyMoveAndAssign) {
  snapshot<tally> box(tally(1));
  {
    auto a = box.load();
    auto b = a;
    auto c = std::move(a);
    EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): moved from means empty
    b = c;
    auto& alias = b;
    b = alias;
    EXPECT_TRUE(b);
    EXPECT_EQ(b->value(), 1U);
    box.publish(tally(2));
    b = box.load();
    EXPECT_EQ(b->value(), 2U);
    EXPECT_EQ(tally::alive, 2);
  }
  EXPECT_EQ(tally::alive, 1);
}

TEST(Snapshot, UpdateWorksOnACopyOfTheNewestValue) {
  snapshot<std::vector<int>> list({1, 2});
  const auto before = list.load();
  EXPECT_EQ(list.update([](std::vector<int>& next) { next.push_back(3); }), 2U);
  EXPECT_EQ(*before, (std::vector<int>{1, 2}));
  EXPECT_EQ(*list.load(), (std::vector<int>{1, 2, 3}));
}

TEST(Snapshot, AnUpdateThatThrowsPublishesNothing) {
  snapshot<std::vector<int>> list({1});
  EXPECT_THROW(list.update([](std::vector<int>& next) {
    next.push_back(2);
    throw std::runtime_error("no");
  }),
               std::runtime_error);
  EXPECT_EQ(*list.load(), std::vector<int>{1});
  EXPECT_EQ(list.version(), 1U);
  EXPECT_EQ(list.publish({5}), 2U) << "the writers' lock was given back";
}

TEST(Snapshot, TakesValuesThatOnlyMove) {
  snapshot<std::unique_ptr<int>> box(std::make_unique<int>(1));
  box.publish(std::make_unique<int>(2));
  EXPECT_EQ(**box.load(), 2);
}

TEST(Snapshot, RefreshLoadsOnlyNewVersions) {
  snapshot<int> number(10);
  snapshot<int>::view view;
  EXPECT_TRUE(number.refresh(view)) << "an empty view is always out of date";
  EXPECT_FALSE(number.refresh(view));
  number.publish(11);
  EXPECT_TRUE(number.refresh(view));
  EXPECT_EQ(*view, 11);
  EXPECT_FALSE(number.refresh(view));
}

TEST(Snapshot, MoreViewsAtOnceThanTheCountInTheWordCanHold) {
  constexpr std::size_t views = 200'000;  // the word counts to 65,535
  {
    snapshot<tally> box(tally(1));
    std::vector<snapshot<tally>::view> held;
    held.reserve(views);
    while (held.size() < views) held.push_back(box.load());
    box.publish(tally(2));
    EXPECT_EQ(tally::alive, 2);
    while (held.size() > 1) held.pop_back();
    EXPECT_EQ(tally::alive, 2) << "one view of the old version is left";
    EXPECT_TRUE(held.front()->whole());
    EXPECT_EQ(held.front()->value(), 1U);
    held.clear();
    EXPECT_EQ(tally::alive, 1);
  }
  EXPECT_EQ(tally::alive, 0);
}

TEST(Snapshot, EndsCleanlyAtEveryNumberOfLoadsAroundATransfer) {
  // 32,768 loads move the count; the version must end exactly once on either side of that.
  for (const int loads : {0, 1, 32'766, 32'767, 32'768, 32'769, 65'535, 65'536, 65'537}) {
    {
      snapshot<tally> box(tally(1));
      for (int i = 0; i < loads; ++i) EXPECT_TRUE(box.load());
      const auto kept = box.load();
      box.publish(tally(2));
      EXPECT_EQ(tally::alive, 2) << loads;
      EXPECT_TRUE(kept->whole());
    }
    EXPECT_EQ(tally::alive, 0) << loads;
  }
}

TEST(Snapshot, AReaderIsNotBlockedByAWriterInTheMiddleOfAnUpdate) {
  snapshot<int> number(1);
  std::atomic<bool> updating{false};
  std::atomic<bool> go_on{false};
  std::jthread writer([&] {
    number.update([&](int& next) {
      next = 2;
      updating = true;
      eventually([&] { return go_on.load(); });
    });
  });
  eventually([&] { return updating.load(); });
  EXPECT_EQ(*number.load(), 1);  // would hang here if readers took the writers' lock
  EXPECT_EQ(number.version(), 1U);
  go_on = true;
  writer.join();
  EXPECT_EQ(*number.load(), 2);
}

TEST(SnapshotStress, ReadersSeeWholeVersionsInOrderAndNothingLeaks) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 77);
  constexpr int readers = 3;
  constexpr int writers = 2;
  constexpr int loads = 50'000;
  std::atomic<std::uint64_t> publications{0};
  {
    snapshot<tally> box(tally(1));
    std::atomic<int> reading{readers};
    std::vector<std::jthread> crew;
    for (int w = 0; w < writers; ++w) {
      crew.emplace_back([&] {
        // The value is the version's own number, because writers take turns.
        for (int n = 0; reading > 0 || n < 1000; ++n) {
          box.update([](tally& next) { next.set(next.value() + 1); });
          ++publications;
        }
      });
    }
    for (int r = 0; r < readers; ++r) {
      crew.emplace_back([&, r] {
        sluice::random random(seed + static_cast<std::uint64_t>(r));
        std::vector<snapshot<tally>::view> kept(8);
        std::uint64_t newest = 0;
        for (int n = 0; n < loads; ++n) {
          auto seen = box.load();
          ASSERT_TRUE(seen->whole());
          ASSERT_EQ(seen->value(), seen.version());
          ASSERT_GE(seen.version(), newest) << "went back in time";
          newest = seen.version();
          auto& place = kept[random.below(8)];
          if (place) {
            ASSERT_TRUE(place->whole());
            ASSERT_EQ(place->value(), place.version());
          }
          switch (random.below(4)) {
            case 0: place = std::move(seen); break;
            case 1: place = kept[random.below(8)]; break;
            case 2: box.refresh(place); break;
            default: break;
          }
        }
        --reading;
      });
    }
    crew.clear();
    EXPECT_EQ(box.version(), 1 + publications);
    EXPECT_EQ(box.load()->value(), 1 + publications) << "an update was lost";
    EXPECT_EQ(tally::alive, 1);
  }
  EXPECT_EQ(tally::alive, 0);
  std::printf("%llu publications, %d loads, seed %llu\n",
              static_cast<unsigned long long>(publications.load()), readers * loads,
              static_cast<unsigned long long>(seed));
}

// The word alone, which here moves its count at every third load instead of every 32,768th.
// Versions are kept to the end, so that an early end is detected, and memory is not reused.
class short_word {
 public:
  explicit short_word(std::size_t versions) : versions_(versions), word_(make_all()) {}

  struct version : sluice::detail::version_base {
    using version_base::version_base;
    std::atomic<bool> ended{false};
  };

  version* hold() { return static_cast<version*>(word_.hold()); }

  void release(version* held) {
    EXPECT_FALSE(held->ended) << "ended while held";
    change(*held, -1);
  }

  // Returns false if no version is left.
  bool replace() {
    const auto next = at_ + 1;
    const bool more = next < versions_.size();
    change(*versions_[at_], word_.replace(more ? versions_[next].get() : nullptr) -
                                sluice::detail::version_base::not_retired);
    at_ = next;
    return more;
  }

  std::size_t ends() const { return ends_; }
  std::size_t replaced() const { return at_; }

 private:
  void change(version& held, std::int64_t by) {
    if (!held.change_holders(by)) return;
    EXPECT_FALSE(held.ended.exchange(true)) << "ended twice";
    ++ends_;
  }

  version* make_all() {
    for (auto& place : versions_) place = std::make_unique<version>(1);
    return versions_.front().get();
  }

  std::vector<std::unique_ptr<version>> versions_;
  std::size_t at_ = 0;  // the writer's
  std::atomic<std::size_t> ends_{0};
  sluice::detail::version_word<3> word_;
};

TEST(SnapshotStress, HoldersAreCountedRightWhileTransfersRaceWithReplacements) {
  const std::uint64_t seed = sluice::testing::seed(sluice::testing::test_name(), 4242);
  constexpr int readers = 3;
  constexpr int loads = 100'000;
  constexpr std::size_t versions = 100'000;
  short_word current(versions);
  std::atomic<int> reading{readers};
  {
    std::vector<std::jthread> crew;
    for (int r = 0; r < readers; ++r) {
      crew.emplace_back([&, r] {
        sluice::random random(seed + static_cast<std::uint64_t>(r));
        std::array<short_word::version*, 4> kept{};
        for (int n = 0; n < loads; ++n) {
          auto& place = kept[random.below(4)];
          if (place != nullptr) current.release(place);
          place = current.hold();
        }
        for (auto* const place : kept) {
          if (place != nullptr) current.release(place);
        }
        --reading;
      });
    }
    sluice::random random(seed);
    while (reading > 0 && current.replaced() + 1 < versions) {
      current.replace();
      for (auto pauses = random.below(64); pauses > 0; --pauses) sluice::seam::pause();
    }
  }
  const auto replacements = current.replaced();
  while (current.replace()) {}
  EXPECT_EQ(current.ends(), versions);
  std::printf("%zu replacements, %d loads, seed %llu\n", replacements, readers * loads,
              static_cast<unsigned long long>(seed));
}

TEST(SnapshotDeathTest, ReadingAnEmptyViewIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const snapshot<int>::view nothing;
        std::printf("%d", *nothing);
      },
      "sluice::snapshot::view.*expected a view that holds a version");
}

TEST(SnapshotDeathTest, PublishingFromInsideAnUpdateIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        snapshot<int> number(1);
        number.update([&](int&) { number.publish(2); });
      },
      "not to be locked again by the thread that holds it");
}

}  // namespace
}  // namespace snapshot_test
