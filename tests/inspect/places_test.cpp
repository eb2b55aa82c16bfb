// Reports of a lock taken through a guard show the user's code, with the optimization that this
// file is compiled with. CMakeLists.txt compiles it with -O0 and -O2, and names the test suites.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>

#include "sluice/inspect/inspect.hpp"
#include "sluice/inspect/testing/looking.hpp"
#include "sluice/sync/fair_mutex.hpp"
#include "sluice/sync/lock_guard.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/shared_mutex.hpp"

namespace places_test {
namespace {

using namespace std::chrono_literals;
namespace inspect = sluice::inspect;

// The line of each lock is that of its function.
template <class Lock>
[[gnu::noinline]] void by_lock_guard(Lock& m) { const std::lock_guard hold(m); }
constexpr int lock_guard_line = __LINE__ - 1;
template <class Lock>
[[gnu::noinline]] void by_unique_lock(Lock& m) { const std::unique_lock hold(m); }
constexpr int unique_lock_line = __LINE__ - 1;
template <class Lock>
[[gnu::noinline]] void by_scoped_lock(Lock& m) { const std::scoped_lock hold(m); }
constexpr int scoped_lock_line = __LINE__ - 1;
template <class Lock>
[[gnu::noinline]] void by_timed_lock(Lock& m) { const std::unique_lock hold(m, 1h); }
constexpr int timed_lock_line = __LINE__ - 1;
template <class Lock>
[[gnu::noinline]] void by_two_locks(Lock& m) { Lock other; const std::scoped_lock hold(m, other); }
constexpr int two_locks_line = __LINE__ - 1;
[[gnu::noinline]] void by_shared_lock(sluice::shared_mutex& m) { const std::shared_lock hold(m); }
constexpr int shared_lock_line = __LINE__ - 1;
template <class Lock>
[[gnu::noinline]] void by_our_lock_guard(Lock& m) { const sluice::lock_guard hold(m); }
constexpr int our_lock_guard_line = __LINE__ - 1;

// Returns the source lines that addr2line finds for "prog+0x12", including inlined functions.
std::string lines_of(const std::string& text) {
  const auto plus = text.rfind("+0x");
  if (plus == std::string::npos) return "";
  const std::string address = text.substr(plus + 1, text.find(')', plus) - plus - 1);
  const std::string command =
      "addr2line -i -e /proc/" + std::to_string(::getpid()) + "/exe " + address;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(::popen(command.c_str(), "r"),
                                                            &::pclose);
  std::string all;
  std::array<char, 256> some{};
  while (out != nullptr && std::fgets(some.data(), some.size(), out.get()) != nullptr) {
    all += some.data();
  }
  return all;
}

class PLACES_TEST : public ::testing::Test {
 protected:
  // Returns the place of the wait when `take` acquires the lock, which is held meanwhile.
  template <class Lock, class Take>
  std::string place_of_wait(Lock& m, Take take) {
    m.lock();
    std::jthread waits([&] { take(m); });
    const auto wait = sluice::testing::the_wait_on(&m);
    m.unlock();
    return wait.at ? inspect::to_string(*wait.at) : "unknown";
  }
  void expect_user_code(const std::string& place, const std::string& function, int line) {
    EXPECT_NE(place.find("::" + function), std::string::npos) << place;
    if (::system("addr2line --version >/dev/null 2>&1") != 0) return;
    EXPECT_NE(lines_of(place).find("places_test.cpp:" + std::to_string(line)), std::string::npos)
        << place << "\n" << lines_of(place);
  }

  const inspect::enabled on_{{.lock_order = false}};
};

template <class Lock>
class GUARD_PLACES_TEST : public PLACES_TEST {};
using locks = ::testing::Types<sluice::mutex, sluice::fair_mutex, sluice::shared_mutex>;
TYPED_TEST_SUITE(GUARD_PLACES_TEST, locks);

TYPED_TEST(GUARD_PLACES_TEST, AWaitByAGuardOfTheStandardLibraryShowsTheUsersCode) {
  TypeParam m;
  const auto shows = [&](void (*take)(TypeParam&), const char* function, int line) {
    this->expect_user_code(this->place_of_wait(m, take), function, line);
  };
  shows(&by_lock_guard<TypeParam>, "by_lock_guard", lock_guard_line);
  shows(&by_unique_lock<TypeParam>, "by_unique_lock", unique_lock_line);
  shows(&by_scoped_lock<TypeParam>, "by_scoped_lock", scoped_lock_line);
  shows(&by_timed_lock<TypeParam>, "by_timed_lock", timed_lock_line);
  shows(&by_two_locks<TypeParam>, "by_two_locks", two_locks_line);
}

TYPED_TEST(GUARD_PLACES_TEST, AHoldByAGuardOfTheStandardLibraryShowsTheUsersCode) {
  TypeParam m;
  const std::lock_guard hold(m);
  const int line = __LINE__ - 1;
  const auto holds = inspect::holds();
  ASSERT_EQ(holds.size(), 1U);
  this->expect_user_code(inspect::to_string(holds[0].at), "", line);
}

TYPED_TEST(GUARD_PLACES_TEST, AGuardOfTheLibraryHasTheLineItself) {
  TypeParam m;
  const std::string place = this->place_of_wait(m, &by_our_lock_guard<TypeParam>);
  const std::string end = "places_test.cpp:" + std::to_string(our_lock_guard_line);
  EXPECT_TRUE(place.ends_with(end)) << place;
  const sluice::lock_guard hold(m);
  const int line = __LINE__ - 1;
  const auto holds = inspect::holds();
  ASSERT_EQ(holds.size(), 1U);
  EXPECT_TRUE(inspect::to_string(holds[0].at).ends_with(":" + std::to_string(line)));
}

TEST_F(PLACES_TEST, AWaitToReadShowsTheUsersCode) {
  sluice::shared_mutex m;
  expect_user_code(place_of_wait(m, &by_shared_lock), "by_shared_lock", shared_lock_line);
}

TEST_F(PLACES_TEST, ACallWithoutAGuardHasTheLineItself) {
  sluice::mutex m;
  const int line = __LINE__ + 1;
  const auto place = place_of_wait(m, [](sluice::mutex& l) { l.lock(); l.unlock(); });
  EXPECT_TRUE(place.ends_with("places_test.cpp:" + std::to_string(line))) << place;
}

}  // namespace
}  // namespace places_test
