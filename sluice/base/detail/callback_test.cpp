#include "sluice/base/detail/callback.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::callback_test {
namespace {

using namespace sluice::detail;

using on_error = std::function<void(std::exception_ptr)>;

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

const auto broken = [](int) { throw std::runtime_error("disk full"); };

class callback_test : public ::testing::Test {
 protected:
  callback_test() { ::testing::internal::CaptureStderr(); }
  static std::string written() { return ::testing::internal::GetCapturedStderr(); }
};

TEST_F(callback_test, IsCalledWithItsArguments) {
  std::vector<int> seen;
  const auto note = [&](int n) { seen.push_back(n); };
  call_back("on_drop of queue", "mail", note, 7);
  EXPECT_EQ(seen, std::vector{7});
  EXPECT_EQ(written(), "");
}

TEST_F(callback_test, AnExceptionIsWrittenToStandardError) {
  call_back("on_drop of queue", "mail", broken, 1);
  const auto worse = [] { throw 1; };
  call_back("on_retry", {}, worse);
  EXPECT_EQ(written(),
            "sluice: on_drop of queue 'mail' threw: disk full\n"
            "sluice: on_retry threw: not a std::exception\n");
}

TEST_F(callback_test, AnExceptionGoesToOnErrorIfPresent) {
  std::vector<std::string> errors;
  on_error handler = [&](const std::exception_ptr& error) { errors.push_back(text_of(error)); };
  call_back_or_report(handler, "on_drop of router", "desk", broken, 1);
  EXPECT_EQ(errors, std::vector<std::string>{"disk full"});
  EXPECT_EQ(written(), "");
  ::testing::internal::CaptureStderr();
  handler = nullptr;
  call_back_or_report(handler, "on_drop of router", "desk", broken, 1);
  EXPECT_EQ(written(), "sluice: on_drop of router 'desk' threw: disk full\n");
}

TEST_F(callback_test, NeitherErrorIsLostWhenOnErrorThrows) {
  const on_error handler = [](const std::exception_ptr&) { throw std::runtime_error("no log"); };
  call_back_or_report(handler, "on_drop of router", "desk", broken, 1);
  EXPECT_EQ(written(),
            "sluice: on_drop of router 'desk' threw: disk full\n"
            "sluice: on_error of 'desk' threw: no log\n");
}

}  // namespace
}  // namespace sluice::callback_test
