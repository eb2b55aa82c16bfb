#include "sluice/base/unique_function.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace sluice::unique_function_test {
namespace {

using function = unique_function<void()>;

static_assert(sizeof(function) == 48);
static_assert(std::is_nothrow_move_constructible_v<function>);
static_assert(std::is_nothrow_move_assignable_v<function>);
static_assert(!std::is_copy_constructible_v<function>);
static_assert(!std::is_constructible_v<function, int>, "not callable");
static_assert(!std::is_constructible_v<unique_function<int()>, void (*)()>, "gives no int");
static_assert(std::is_constructible_v<function, int (*)()>, "a result may be ignored");

// Counts its objects and its allocations; `Bytes` makes it small or large.
template <std::size_t Bytes>
struct counted {
  static inline int live = 0;
  static inline int allocations = 0;
  static void* operator new(std::size_t size) {
    ++allocations;
    return std::malloc(size);
  }
  static void* operator new(std::size_t, void* at) noexcept { return at; }
  static void operator delete(void* at) noexcept { std::free(at); }
  static void operator delete(void*, void*) noexcept {}

  explicit counted(int& calls_) : calls(&calls_) { ++live; }
  counted(counted&& from) noexcept : calls(from.calls) { ++live; }
  counted(const counted& from) : calls(from.calls) { ++live; }
  ~counted() { --live; }
  void operator()() { ++*calls; }

  int* calls;
  std::array<std::byte, Bytes - sizeof(int*)> rest{};
};

TEST(unique_function_test, CallsTheHeldObjectOnEveryCall) {
  int calls = 0;
  function f = [&calls, own = 0]() mutable { calls += ++own; };
  f();
  f();
  EXPECT_EQ(calls, 1 + 2) << "the held object keeps its state between calls";
}

TEST(unique_function_test, HoldsMoveOnlyObjects) {
  unique_function<int()> f = [p = std::make_unique<int>(7)] { return *p; };
  unique_function<int()> g = std::move(f);
  EXPECT_FALSE(f);
  EXPECT_EQ(g(), 7);
}

TEST(unique_function_test, PassesArgumentsAndResultsThrough) {
  unique_function<std::unique_ptr<int>(std::unique_ptr<int>, int)> add =
      [](std::unique_ptr<int> p, int n) {
        *p += n;
        return p;
      };
  EXPECT_EQ(*add(std::make_unique<int>(40), 2), 42);
  int there = 1;
  unique_function<int&(int&)> same = [](int& x) -> int& { return x; };
  EXPECT_EQ(&same(there), &there);
}

struct number {
  int value;
  int get() const { return value; }
};
int plain() { return 5; }

TEST(unique_function_test, HoldsFunctionsAndMembers) {
  unique_function<int()> by_name = plain;
  unique_function<int()> by_pointer = &plain;
  unique_function<int(const number&)> member = &number::get;
  unique_function<int(const number&)> field = &number::value;
  EXPECT_EQ(by_name() + by_pointer() + member({10}) + field({100}), 120);
}

TEST(unique_function_test, IsEmptyIfItsSourceWasEmpty) {
  EXPECT_FALSE(function());
  EXPECT_FALSE(function(nullptr));
  void (*no_function)() = nullptr;
  EXPECT_FALSE(function(no_function));
  int (number::*no_member)() const = nullptr;
  EXPECT_FALSE((unique_function<int(const number&)>(no_member)));
  EXPECT_FALSE(function(std::function<void()>()));
  EXPECT_FALSE(function(unique_function<int()>()));
  EXPECT_TRUE(function([] {}));
}

template <std::size_t Bytes>
void expect_moves_and_dies(int allocations) {
  using held = counted<Bytes>;
  held::allocations = 0;
  int calls = 0;
  {
    function f = held(calls);
    EXPECT_EQ(held::live, 1);
    function g = std::move(f);
    EXPECT_FALSE(f);
    g();
    f = std::move(g);
    f();
    EXPECT_EQ(held::live, 1) << "a move destroys the source's object";
    f = held(calls);
    EXPECT_EQ(held::live, 1) << "the previous object is destroyed";
    function& same = f;
    f = std::move(same);
    f();
    f.reset();
    EXPECT_EQ(held::live, 0);
    EXPECT_FALSE(f);
    f.reset();
    const held original(calls);
    f = function(original);
    EXPECT_EQ(held::live, 2) << "an lvalue is copied";
  }
  EXPECT_EQ(held::live, 0);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(held::allocations, allocations);
}

TEST(unique_function_test, SmallObjectsAreHeldWithoutAllocating) {
  expect_moves_and_dies<16>(0);
  expect_moves_and_dies<function::inline_bytes>(0);
}

TEST(unique_function_test, LargeObjectsAreAllocatedOnce) {
  expect_moves_and_dies<48>(3);  // three objects were constructed
  expect_moves_and_dies<4096>(3);
}

TEST(unique_function_test, OverAlignedObjectsAreHeldAligned) {
  struct alignas(64) aligned {
    bool* ok;
    void operator()() const { *ok = reinterpret_cast<std::uintptr_t>(this) % 64 == 0; }
  };
  bool ok = false;
  function f = aligned{&ok};
  function g = std::move(f);
  g();
  EXPECT_TRUE(ok);
}

// Its move may throw, so it is allocated on the heap and never moved again.
struct throws_when_moved {
  explicit throws_when_moved(int& left) : until_throw(&left) {}
  throws_when_moved(throws_when_moved&& from) : until_throw(from.until_throw) { count(); }
  throws_when_moved(const throws_when_moved& from) : until_throw(from.until_throw) { count(); }
  void count() const {
    if (--*until_throw == 0) throw std::runtime_error("move");
  }
  void operator()() const {}
  int* until_throw;
};

TEST(unique_function_test, AnObjectWhoseMoveThrowsIsMovedInOnceAndNeverAgain) {
  int left = 100;
  function f = throws_when_moved(left);
  EXPECT_EQ(left, 99);
  function g = std::move(f);
  function h;
  h = std::move(g);
  h();
  EXPECT_EQ(left, 99);
}

TEST(unique_function_test, AnExceptionOfTheCopyGoesToTheCaller) {
  int left = 1;
  EXPECT_THROW(function(throws_when_moved(left)), std::runtime_error);
  left = 1;
  int calls = 0;
  function f = [&] { ++calls; };
  const throws_when_moved original(left);
  EXPECT_THROW(f = function(original), std::runtime_error);
  f();
  EXPECT_EQ(calls, 1) << "the previous object is unchanged";
}

TEST(unique_function_test, AnExceptionReachesTheCallerAndTheFunctionStaysCallable) {
  int calls = 0;
  function f = [&] {
    if (++calls == 1) throw std::runtime_error("once");
  };
  EXPECT_THROW(f(), std::runtime_error);
  f();
  EXPECT_EQ(calls, 2);
}

TEST(unique_function_test, DestroysTheHeldObjectWithItself) {
  auto text = std::make_shared<std::string>("kept");
  const std::weak_ptr<std::string> held_text = text;
  {
    function f = [text = std::move(text)] { EXPECT_EQ(*text, "kept"); };
    f();
    EXPECT_FALSE(held_text.expired());
  }
  EXPECT_TRUE(held_text.expired());
}

TEST(unique_function_DeathTest, CallingAnEmptyOneIsABrokenContract) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(function()(), "unique_function: expected to hold a function when it is called");
  EXPECT_DEATH(
      {
        function f = [] {};
        function g = std::move(f);
        f();
      },
      "to hold a function when it is called");
}

}  // namespace
}  // namespace sluice::unique_function_test
