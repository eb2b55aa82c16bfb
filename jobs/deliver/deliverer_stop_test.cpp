// The end of a deliverer, with requests in progress.
#include <gtest/gtest.h>

#include <future>

#include "jobs/deliver/deliverer.hpp"
#include "jobs/deliver/testing/delivery_words.hpp"

namespace sluice::jobs::deliverer_stop_test {
namespace {

using namespace sluice::jobs::testing;

class deliverer_stop_test : public delivery_words {
 protected:
  // Replies after `go`.
  receiver::script held() {
    return [this](const received&) {
      go.wait();
      return answer(200);
    };
  }
  event go;
};

TEST_F(deliverer_stop_test, StopWaitsForRequests) {
  receiver endpoint(held());
  deliver_to(endpoint, 2);
  const ids all = push_some(5, {.keep_for = 1h});
  endpoint.await(2);
  d().close();
  auto stopping = std::async(std::launch::async, [&] { return d().stop(); });
  go.set();
  EXPECT_TRUE(stopping.get());
  EXPECT_EQ(counts().done, 2U);
  EXPECT_EQ(counts().ready, 3U);
  EXPECT_EQ(endpoint.requests().size(), 2U);
}

TEST_F(deliverer_stop_test, StopCancelsUnfinishedRequestsAndReleasesTheirJobs) {
  receiver endpoint(held());
  deliver_to(endpoint, 2);
  const ids all = push_some(5);
  endpoint.await(2);
  EXPECT_EQ(d().stop(deadline::after(1ms)), status::timed_out);
  settle();
  EXPECT_EQ(counts().ready, 5U);
  EXPECT_EQ(counts().running, 0U);
  for (const job_id id : all) EXPECT_EQ(get(id).attempts, 0U);
  EXPECT_EQ(stats_of().given_back, 2U);
  EXPECT_TRUE(d().stop());  // a second time
  go.set();
}

TEST_F(deliverer_stop_test, CloseStopsLeasing) {
  receiver endpoint(held());
  deliver_to(endpoint, 1);
  push_some(3);
  endpoint.await(1);
  d().close();
  EXPECT_EQ(d().drained(deadline::after(0s)), status::timed_out);
  go.set();
  EXPECT_TRUE(d().drained());
  EXPECT_EQ(endpoint.requests().size(), 1U);
  EXPECT_EQ(counts().ready, 2U);
}

TEST_F(deliverer_stop_test, AClosedEngineEndsTheLeasing) {
  receiver endpoint(held());
  deliver_to(endpoint, 1);
  const ids all = push_some(2, {.keep_for = 1h});
  endpoint.await(1);
  e().close();
  go.set();
  EXPECT_TRUE(d().drained());
  EXPECT_EQ(state(all[0]), job_state::done);
  EXPECT_EQ(state(all[1]), job_state::ready);
}

TEST_F(deliverer_stop_test, DestroyedWithRequestsInProgress) {
  receiver endpoint(held());
  deliver_to(endpoint, 4);
  push_some(10);
  endpoint.await(4);
  posts.reset();
  settle();
  EXPECT_EQ(counts().ready, 10U);
  go.set();
}

}  // namespace
}  // namespace sluice::jobs::deliverer_stop_test
