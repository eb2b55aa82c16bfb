#pragma once

// Conformance tests of every actor_store. A kind opens the store:
//   struct my_kind {
//     std::unique_ptr<actor_store> open();   // with the same states each time; one store at a time
//     static constexpr bool keeps = true;    // states outlive the store
//   };

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "sluice/actor/actor_store.hpp"

namespace sluice::testing {

template <class Kind>
class actor_store_suite : public ::testing::Test {
 protected:
  void SetUp() override { store_ = kind_.open(); }
  void save(const std::string& key, const std::string& state) {
    store_->save("room", key, state).get();
  }
  std::optional<std::string> load(const std::string& key) {
    return store_->load("room", key).get();
  }

  Kind kind_;
  std::unique_ptr<actor_store> store_;
};
TYPED_TEST_SUITE_P(actor_store_suite);

TYPED_TEST_P(actor_store_suite, LoadsNothingThatWasNeverSaved) {
  EXPECT_EQ(this->load("lobby"), std::nullopt);
}

TYPED_TEST_P(actor_store_suite, LoadsTheLastSavedState) {
  this->save("lobby", "one");
  this->save("lobby", "two");
  EXPECT_EQ(this->load("lobby"), "two");
}

TYPED_TEST_P(actor_store_suite, AnEmptyStateIsNotNone) {
  this->save("lobby", "");
  EXPECT_EQ(this->load("lobby"), "");
}

TYPED_TEST_P(actor_store_suite, TakesAnyBytes) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  for (const std::string& key : {std::string(), std::string("\0", 1), std::string("\0a", 2), all,
                                 std::string("'; --"), std::string("\xff\xfe")}) {
    this->save(key, all + key);
  }
  EXPECT_EQ(this->load(all), all + all);
  EXPECT_EQ(this->load(""), all);
  EXPECT_EQ(this->load(std::string("\0", 1)), all + std::string("\0", 1));
  EXPECT_EQ(this->load(std::string("\0a", 2)), all + std::string("\0a", 2));
  EXPECT_EQ(this->load("\xff\xfe"), all + "\xff\xfe");
}

TYPED_TEST_P(actor_store_suite, TakesALargeState) {
  const std::string large(5'000'000, 'x');
  this->save("lobby", large);
  EXPECT_TRUE(this->load("lobby") == large);
}

TYPED_TEST_P(actor_store_suite, TypesAndKeysAreSeparate) {
  this->store_->save("a", "bc", "1").get();
  this->store_->save("ab", "c", "2").get();
  EXPECT_EQ(this->store_->load("a", "bc").get(), "1");
  EXPECT_EQ(this->store_->load("ab", "c").get(), "2");
  this->store_->remove("a", "bc").get();
  EXPECT_EQ(this->store_->load("ab", "c").get(), "2");
}

TYPED_TEST_P(actor_store_suite, ARemovedStateIsGone) {
  this->save("lobby", "one");
  this->store_->remove("room", "lobby").get();
  EXPECT_EQ(this->load("lobby"), std::nullopt);
  this->store_->remove("room", "lobby").get();  // without a state: no effect
}

TYPED_TEST_P(actor_store_suite, CallsForOneKeyTakeEffectInTheirOrder) {
  std::vector<future<void>> done;
  std::vector<future<std::optional<std::string>>> seen;
  for (int i = 0; i < 500; ++i) {
    done.push_back(this->store_->save("room", "lobby", std::to_string(i)));
    seen.push_back(this->store_->load("room", "lobby"));
    if (i % 7 == 0) done.push_back(this->store_->remove("room", "lobby"));
    if (i % 7 == 0) seen.push_back(this->store_->load("room", "lobby"));
  }
  std::size_t at = 0;
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(seen[at++].get(), std::to_string(i));
    if (i % 7 == 0) {
      EXPECT_EQ(seen[at++].get(), std::nullopt);
    }
  }
  for (auto& f : done) f.get();
}

TYPED_TEST_P(actor_store_suite, ManyThreadsMaySaveAndLoad) {
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([this, t] {
        for (int i = 0; i < 100; ++i) {
          const std::string key = std::to_string(t) + "-" + std::to_string(i);
          this->save(key, key);
          EXPECT_EQ(this->load(key), key);
        }
      });
    }
  }
  EXPECT_EQ(this->load("3-99"), "3-99");
}

TYPED_TEST_P(actor_store_suite, SavedStatesOutliveTheStore) {
  if constexpr (TypeParam::keeps) {
    this->save("lobby", "one");
    this->save("hall", "two");
    this->store_->remove("room", "hall").get();
    auto not_waited_for = this->store_->save("room", "attic", "three");
    this->store_.reset();
    not_waited_for.get();
    this->store_ = this->kind_.open();
    EXPECT_EQ(this->load("lobby"), "one");
    EXPECT_EQ(this->load("hall"), std::nullopt);
    EXPECT_EQ(this->load("attic"), "three");
  }
}

REGISTER_TYPED_TEST_SUITE_P(actor_store_suite, LoadsNothingThatWasNeverSaved,
                            LoadsTheLastSavedState, AnEmptyStateIsNotNone, TakesAnyBytes,
                            TakesALargeState, TypesAndKeysAreSeparate, ARemovedStateIsGone,
                            CallsForOneKeyTakeEffectInTheirOrder, ManyThreadsMaySaveAndLoad,
                            SavedStatesOutliveTheStore);

}  // namespace sluice::testing
