// Batches, cron entries, progress, logs and events through a real server and back.
#include <gtest/gtest.h>

#include "jobs/client/client.hpp"
#include "jobs/engine/engine.hpp"
#include "jobs/http/http_server.hpp"
#include "jobs/store/memory/memory_store.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::client_groups_test {
namespace {

using namespace std::chrono_literals;

class ClientGroups : public ::testing::Test {
 protected:
  ~ClientGroups() override {
    client_.reset();
    server_.stop();
    engine_->stop();
  }
  client& c() {
    if (!client_) {
      const auto port = server_.start(*engine_);
      EXPECT_TRUE(port) << port.error().message;
      client_.emplace(client::open({.url = "http://127.0.0.1:" + std::to_string(*port)}).value());
    }
    return *client_;
  }
  // Starts Faktory's protocol, with one worker.
  http_server_options with_worker() {
    http_server_options o{.port = 0};
    o.faktory = faktory_port{
        .list =
            [this](const std::string& after, std::size_t) {
              const auto shown = worker_.with([](const faktory_worker& w) { return w; });
              return after < shown.wid ? faktory_worker_page{{shown}, shown.wid}
                                       : faktory_worker_page{};
            },
        .set_state = [this](const std::string& wid,
                            worker_state state) -> std::optional<faktory_worker> {
          const auto known = worker_.lock();
          if (wid != known->wid) return std::nullopt;
          known->state = state;
          return *known;
        }};
    return o;
  }
  leased_job lease() { return c().lease({}).value().front(); }

  std::unique_ptr<engine> engine_ = engine::open(make_memory_store()).value();
  guarded<faktory_worker> worker_{{.wid = "a/b", .labels = {"blue"}, .running = 2}};
  http_server server_{with_worker()};
  std::optional<client> client_;
};

template <class T>
T got(result<T> r) {
  EXPECT_TRUE(r) << r.error().message;
  return r ? *std::move(r) : T{};
}

TEST_F(ClientGroups, PushesABatchAndFollowsIt) {
  batch_spec spec;
  spec.name = "trip";
  spec.jobs = {{.kind = "a", .step = "a"}, {.kind = "b", .after = {{.step = "a"}}}};
  spec.on_success = job_spec{.kind = "done"};
  const auto receipt = got(c().push_batch(spec));
  ASSERT_EQ(receipt.jobs.size(), 2U);
  EXPECT_EQ(got(c().get(receipt.jobs[1])).state, job_state::held);
  EXPECT_EQ(got(c().get_batch(receipt.id)).pending, 2U);
  EXPECT_EQ(got(c().batches()).batches.at(0).name, "trip");
  EXPECT_EQ(got(c().list({.batch = receipt.id})).jobs.size(), 2U);
  EXPECT_EQ(got(c().cancel_batch(receipt.id)), 2U);
  EXPECT_EQ(got(c().get_batch(receipt.id)).state(), batch_state::failed);
  EXPECT_EQ(got(c().retry_batch(receipt.id)), 2U);
  EXPECT_EQ(c().get_batch(4711).error().code, error_code::not_found);

  const auto open = got(c().push_batch({.open = true}));
  EXPECT_FALSE(got(c().close_batch(open.id)).open);
  const auto circle =
      c().push_batch({.jobs = {{.kind = "a", .after = {{.step = "a"}}, .step = "a"}}});
  ASSERT_FALSE(circle);
  EXPECT_NE(circle.error().message.find("form a cycle"), std::string::npos);
}

TEST_F(ClientGroups, KeepsCronEntries) {
  const auto set = got(c().set_cron(
      {.name = "a/b", .schedule = "0 4 * * *", .zone = "Asia/Tokyo", .job = {.kind = "k"}}));
  EXPECT_EQ(set.entry.spec.name, "a/b");
  EXPECT_EQ(set.upcoming.size(), 5U);
  EXPECT_TRUE(got(c().patch_cron("a/b", {.paused = true})).entry.spec.paused);
  EXPECT_EQ(got(c().crons()).size(), 1U);
  EXPECT_EQ(got(c().get_cron("a/b")).entry.spec.zone, "Asia/Tokyo");
  EXPECT_EQ(got(c().get(got(c().run_cron("a/b")).id)).spec.kind, "k");
  EXPECT_TRUE(c().remove_cron("a/b"));
  EXPECT_EQ(c().get_cron("a/b").error().code, error_code::not_found);
  const auto wrong = c().set_cron({.name = "x", .schedule = "61 * * * *", .job = {.kind = "k"}});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("column 1"), std::string::npos) << wrong.error().message;
}

TEST_F(ClientGroups, ReportsProgressAndLogs) {
  const job_id id = got(c().push({.kind = "k"})).id;
  const leased_job l = lease();
  EXPECT_TRUE(c().report(l.ref(), {25, "a quarter"}));
  EXPECT_EQ(got(c().get(id)).progress, (progress{25, "a quarter"}));
  EXPECT_TRUE(c().extend(l.ref(), 30s, progress{50, ""}));
  EXPECT_EQ(got(c().get(id)).progress->percent, 50);
  EXPECT_TRUE(c().log(l.ref(), {"one", "two"}));
  const auto page = got(c().logs(id, 1));
  ASSERT_EQ(page.lines.size(), 1U);
  EXPECT_EQ(page.lines[0].text, "two");
  EXPECT_EQ(c().report({id, 1}, {}).error().code, error_code::lease_lost);
}

TEST_F(ClientGroups, ListsFaktorysWorkersAndSetsTheirState) {
  const auto page = got(c().faktory_workers());
  ASSERT_EQ(page.workers.size(), 1U);
  EXPECT_EQ(page.workers[0].labels, std::vector<std::string>{"blue"});
  EXPECT_EQ(page.workers[0].running, 2U);
  EXPECT_EQ(page.cursor, "a/b");
  EXPECT_TRUE(got(c().faktory_workers(*page.cursor)).workers.empty());
  EXPECT_EQ(got(c().set_faktory_worker_state("a/b", worker_state::quiet)).state,
            worker_state::quiet);
  EXPECT_EQ(got(c().set_faktory_worker_state("a/b", worker_state::terminate)).state,
            worker_state::terminate);
  EXPECT_EQ(c().set_faktory_worker_state("nobody", worker_state::quiet).error().code,
            error_code::not_found);
}

TEST_F(ClientGroups, PullsEventsPageByPage) {
  const auto start = got(engine_->events({}, deadline::after(0ms)).get());
  EXPECT_TRUE(start.events.empty());
  event_request next{.after = start.next, .epoch = start.epoch, .types = {event_type::pushed}};
  EXPECT_TRUE(c().push({.kind = "a"}));
  EXPECT_TRUE(c().push({.kind = "b"}));
  auto waiting = c().async_events(next, deadline::after(20s));
  auto page = got(waiting.get());
  ASSERT_FALSE(page.events.empty());
  EXPECT_EQ(page.events[0].job, 1U);
  next.after = page.next;
  auto later = c().async_events(next, deadline::after(20s));
  EXPECT_TRUE(c().push({.kind = "c"}));
  page = got(later.get());
  ASSERT_FALSE(page.events.empty());
  EXPECT_FALSE(page.missed);
  next.epoch = 1;
  next.after = 0;
  EXPECT_TRUE(got(c().events(next, deadline::after(20s))).missed);
}

}  // namespace
}  // namespace sluice::jobs::client_groups_test
