#include "examples/burst/settings.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace burst::settings_test {
namespace {

command read(std::vector<const char*> arguments) {
  return read_command_line(arguments);
}

void expect_refused(std::vector<const char*> arguments, const char* because) {
  const command c = read(arguments);
  EXPECT_EQ(c.exit_code, 2);
  EXPECT_NE(c.print.find(because), std::string::npos) << c.print;
}

TEST(BurstSettings, AreFiftyThousandTasksInHalfASecondForEightWorkersByDefault) {
  const command c = read({});
  EXPECT_FALSE(c.exit_code.has_value());
  EXPECT_EQ(c.run_with.tasks, 50'000U);
  EXPECT_EQ(c.run_with.workers, 8U);
  EXPECT_EQ(c.run_with.arrival, std::chrono::milliseconds(500));
  EXPECT_EQ(c.run_with.policies.size(), 5U);
}

TEST(BurstSettings, TakeValuesAfterASpaceOrAnEqualsSign) {
  const command c = read({"--tasks", "10", "--seconds=0.25", "--policy", "latest", "--json"});
  EXPECT_FALSE(c.exit_code.has_value()) << c.print;
  EXPECT_EQ(c.run_with.tasks, 10U);
  EXPECT_EQ(c.run_with.arrival, std::chrono::milliseconds(250));
  EXPECT_EQ(c.run_with.policies, std::vector{sluice::overflow::latest});
  EXPECT_EQ(c.run_with.output, output::json);
}

TEST(BurstSettings, LetOtherArgumentsOverruleQuickWhereverItStands) {
  EXPECT_EQ(read({"--tasks", "2000", "--quick"}).run_with.tasks, 2'000U);
  EXPECT_EQ(read({"--quick", "--tasks", "2000"}).run_with.tasks, 2'000U);
  EXPECT_LT(read({"--quick"}).run_with.idle, settings{}.idle);
}

TEST(BurstSettings, NameTheFaultOfAValue) {
  expect_refused({"--workers", "0"}, "--workers takes a whole number from 1 to 1000, not '0'");
  expect_refused({"--workers", "-3"}, "not '-3'");
  expect_refused({"--tasks", "12x"}, "not '12x'");
  expect_refused({"--tasks", ""}, "not ''");
  expect_refused({"--tasks", "99999999999999999999999"}, "from 1 to 10000000");
  expect_refused({"--capacity="}, "--capacity takes a whole number");
  expect_refused({"--seconds", "nan"}, "--seconds takes a number from 0.001 to 60, not 'nan'");
  expect_refused({"--seconds", "1e9"}, "not '1e9'");
  expect_refused({"--policy", "panic"}, "takes one of block, reject, drop_newest");
}

TEST(BurstSettings, NameTheArgumentThatIsUnknownOrLacksItsValue) {
  expect_refused({"--colour"}, "unknown argument '--colour'");
  expect_refused({"--json=yes"}, "unknown argument '--json=yes'");
  expect_refused({"50000"}, "unknown argument '50000'");
  expect_refused({"--tasks"}, "--tasks needs a value");
}

TEST(BurstSettings, PrintHelpWithSuccess) {
  EXPECT_EQ(read({"--help"}).exit_code, 0);
  EXPECT_NE(read({"--help"}).print.find("--capacity"), std::string::npos);
}

}  // namespace
}  // namespace burst::settings_test
