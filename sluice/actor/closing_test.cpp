// The work of a closed actor before it ends.
#include <gtest/gtest.h>

#include <string>

#include "sluice/actor/actor_test_kit.hpp"
#include "sluice/actor/reentrant.hpp"
#include "sluice/future/promise.hpp"

namespace sluice::closing_test {
namespace {

struct fetch {
  using reply = int;
};
struct note {};

// Fetches in a reentrant wait, and has work to do when the result is ready.
class fetcher : public actor<fetcher, fetch, note> {
 public:
  fetcher(promise<int>* source, std::string* log) : source_(*source), log_(*log) {}
  task<int> on(fetch) {
    log_ += "begun ";
    const int got = co_await reentrant(source_.get_future());
    log_ += "fetched ";
    co_return got;
  }
  void on(note) { log_ += "noted "; }
  void stopping() { log_ += "stopping"; }

 private:
  promise<int>& source_;
  std::string& log_;
};

class closing_test : public ::testing::Test {
 protected:
  std::string log;
  promise<int> source;
  actor_test_kit kit;
};

TEST_F(closing_test, AReentrantWaitIsFinishedFirst) {
  const auto f = kit.spawn<fetcher>(&source, &log);
  auto answer = f.ask(fetch{});
  ASSERT_TRUE(f.send(note{}));
  f.close();
  kit.settle();
  EXPECT_EQ(log, "begun noted ");  // it waits, and accepts no messages
  EXPECT_FALSE(f.is_terminated());
  EXPECT_EQ(f.send(note{}), status::closed);

  source.set_value(7);
  kit.settle();
  EXPECT_EQ(log, "begun noted fetched stopping");
  EXPECT_TRUE(f.is_terminated());
  EXPECT_EQ(answer.get(), 7);
}

TEST_F(closing_test, AStopEndsTheWaitOfAClose) {
  const auto f = kit.spawn<fetcher>(&source, &log);
  auto answer = f.ask(fetch{});
  f.close();
  kit.settle();
  EXPECT_FALSE(f.is_terminated());

  f.stop();
  kit.settle();
  EXPECT_TRUE(f.is_terminated());
  EXPECT_EQ(log, "begun stopping");
  EXPECT_THROW((void)answer.get(), future_error);
}

}  // namespace
}  // namespace sluice::closing_test
