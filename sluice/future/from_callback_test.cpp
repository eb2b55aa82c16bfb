#include "sluice/future/from_callback.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "sluice/future/testing/tracked.hpp"

namespace sluice::testing::from_callback_test {
namespace {

class from_callback_test : public leak_checked {
 protected:
  // A typical API: keeps the callback and calls it later.
  void start(std::function<void(int)> done) { on_value = std::move(done); }
  void start_error_first(std::function<void(std::error_code, std::string)> done) {
    on_result = std::move(done);
  }
  std::function<void(int)> on_value;
  std::function<void(std::error_code, std::string)> on_result;
};

TEST_F(from_callback_test, TheCallIsTheResult) {
  auto f = from_callback<int>([&](auto done) { start(done); });
  EXPECT_FALSE(f.is_ready());
  std::jthread([&] { on_value(3); }).join();
  EXPECT_EQ(f.get(), 3);
}

TEST_F(from_callback_test, ACallbackMayBeCalledBeforeTheStartReturns) {
  EXPECT_EQ(from_callback<int>([](auto done) { done(1); }).get(), 1);
  from_callback<void>([](auto done) { done(); }).get();
  EXPECT_EQ(from_callback<std::string>([](auto done) { done(std::size_t{2}, 'x'); }).get(), "xx");
  EXPECT_EQ(*from_callback<std::unique_ptr<int>>([](auto done) {
               done(std::make_unique<int>(4));
             }).get(),
            4);
}

TEST_F(from_callback_test, ASetErrorArgumentFailsTheFuture) {
  const auto fetch = [&] {
    return from_callback<std::string>([&](auto done) { start_error_first(done); });
  };
  auto good = fetch();
  on_result({}, "text");
  EXPECT_EQ(good.get(), "text");
  auto bad = fetch();
  on_result(std::make_error_code(std::errc::timed_out), "");
  try {
    bad.get();
    FAIL();
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), std::errc::timed_out);
  }
  auto nothing = from_callback<void>([](auto done) { done(std::error_code()); });
  nothing.get();
  auto failed = from_callback<void>([](auto done) {
    done(std::make_exception_ptr(std::runtime_error("x")));
  });
  EXPECT_THROW(failed.get(), std::runtime_error);
  auto first = from_callback<int>([](auto done) {
    done(std::make_exception_ptr(std::runtime_error("x")), 1);
  });
  EXPECT_THROW(first.get(), std::runtime_error);
}

TEST_F(from_callback_test, AnExceptionAloneFailsIt) {
  auto f = from_callback<int>([](auto done) {
    done(std::make_exception_ptr(std::runtime_error("x")));
  });
  EXPECT_THROW(f.get(), std::runtime_error);
}

TEST_F(from_callback_test, DestroyedUncalledItIsABrokenPromise) {
  auto f = from_callback<int>([&](auto done) { start(done); });
  EXPECT_FALSE(f.is_ready());
  on_value = nullptr;
  try {
    f.get();
    FAIL();
  } catch (const future_error& e) {
    EXPECT_EQ(e.why(), future_error::broken_promise);
  }
}

TEST_F(from_callback_test, TheFirstOfSeveralCallsCounts) {
  auto f = from_callback<tracked>([](auto done) {
    auto copy = done;
    copy(1);
    done(2);
    done.fail(std::make_exception_ptr(std::runtime_error("x")));
  });
  EXPECT_EQ(f.get().value, 1);
  auto g = from_callback<int>([&](auto done) { start(done); });
  on_value(1);
  EXPECT_EQ(g.get(), 1);
  on_value(2);  // much later: the future is gone
}

TEST_F(from_callback_test, AnExceptionOfTheStartIsTheResultIfNoneIsSet) {
  auto f = from_callback<int>([](auto) { throw std::runtime_error("start"); });
  EXPECT_THROW(f.get(), std::runtime_error);
  auto g = from_callback<int>([](auto done) {
    done(1);
    throw std::runtime_error("after");
  });
  EXPECT_EQ(g.get(), 1);
}

TEST_F(from_callback_test, ACancelReachesTheApi) {
  std::stop_token asked;
  auto f = from_callback<int>([&](auto done) {
             asked = done.stop_token();
             start(done);
           }).then([](int n) { return n; });
  f.cancel();
  EXPECT_TRUE(asked.stop_requested());
  on_value(1);
  EXPECT_EQ(f.get(), 1);
}

TEST_F(from_callback_test, AValueThatIsAnErrorCodeIsAValue) {
  const auto code = std::make_error_code(std::errc::io_error);
  EXPECT_EQ(from_callback<std::error_code>([&](auto done) { done(code); }).get(), code);
}

}  // namespace
}  // namespace sluice::testing::from_callback_test
