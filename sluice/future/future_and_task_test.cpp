// Futures and tasks in one program: their headers are compatible, and each awaits the other.
#include <gtest/gtest.h>

#include <stop_token>
#include <string>

#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/from_callback.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/scope.hpp"
#include "sluice/future/shared_future.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/task_combinators.hpp"
#include "sluice/future/testing/tracked.hpp"
#include "sluice/future/when_all.hpp"
#include "sluice/future/when_any.hpp"

namespace sluice::testing::future_and_task_test {
namespace {

class future_and_task_test : public leak_checked {};

task<int> plus_one(future<int> f) { co_return co_await std::move(f) + 1; }

task<int> both_kinds(promise<int>& p) {
  auto [a, b] = co_await when_all(plus_one(p.get_future()), plus_one(make_ready_future(10)));
  auto gathered = when_all(make_ready_future(a), make_ready_future());
  auto [c, nothing] = co_await std::move(gathered);
  static_cast<void>(nothing);
  co_return b + c;
}

TEST_F(future_and_task_test, WhenAllIsForEitherKind) {
  promise<int> p;
  p.set_value(1);
  EXPECT_EQ(sync_wait(both_kinds(p)), 13);
}

task<std::string> why_it_ended(future<tracked> f) {
  try {
    co_await std::move(f);
    co_return "value";
  } catch (const future_error& e) {
    co_return to_string(e.why());
  }
}

TEST_F(future_and_task_test, AStoppedTaskCancelsTheFutureItAwaits) {
  promise<tracked> p;
  const auto asked = p.stop_token();
  const std::stop_callback answer(asked, [&] { p.set_value(1); });
  manual_executor later;
  auto f = spawn(later, why_it_ended(p.get_future()));
  later.run_all();
  EXPECT_FALSE(asked.stop_requested());
  f.cancel();
  later.run_all();  // the task resumes on its executor and ends there
  EXPECT_TRUE(asked.stop_requested());
  EXPECT_EQ(f.get(), "cancelled");
}

}  // namespace
}  // namespace sluice::testing::future_and_task_test
