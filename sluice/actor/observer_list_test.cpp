#include "sluice/actor/observer_list.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "sluice/actor/actor_test_kit.hpp"

namespace sluice::observer_list_test {
namespace {

struct add {
  int n;
};
class adder : public actor<adder, add> {
 public:
  void on(add m) {
    sum_ += m.n;
    if (m.n > 0) (void)self().send(add{0});
  }

 private:
  int sum_ = 0;
};

class numbers final : public actor_observer {
 public:
  numbers(unsigned bits, std::uint64_t first) : bits_(bits), next_(first) {}
  unsigned note_bits() const noexcept override { return bits_; }
  std::uint64_t sent(actor_id, actor_id, std::string_view) noexcept override {
    given.push_back(next_);
    return next_++;
  }
  void begun(actor_id, std::string_view, std::uint64_t note) noexcept override {
    begins.push_back(note);
  }
  void handled(actor_id, std::string_view, std::uint64_t note) noexcept override {
    ends.push_back(note);
  }
  std::vector<std::uint64_t> given, begins, ends;

 private:
  const unsigned bits_;
  std::uint64_t next_;
};

TEST(observer_list_test, EachObserverGetsItsOwnNotesBack) {
  numbers a(24, 1);
  numbers none(0, 99);
  numbers b(40, 0xff'0000'0001);
  observer_list all({&a, &none, &b});
  EXPECT_EQ(all.note_bits(), 64U);
  actor_system_options o;
  o.observer = &all;
  actor_test_kit kit(std::move(o));
  const auto one = kit.spawn<adder>();
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(one.send(add{i}));
  kit.settle();
  ASSERT_EQ(a.given.size(), 6U);
  EXPECT_EQ(a.begins, a.given);
  EXPECT_EQ(a.ends, a.given);
  EXPECT_EQ(b.begins, b.given);
  EXPECT_EQ(b.ends, b.given);
  EXPECT_EQ(none.begins, std::vector<std::uint64_t>(6, 0));
}

TEST(observer_list_test, MoreThan64NoteBitsAreABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  numbers a(32, 1);
  numbers b(33, 1);
  EXPECT_DEATH(observer_list({&a, &b}), "note_bits of at most 64 in total");
}

}  // namespace
}  // namespace sluice::observer_list_test
