// Events, progress, logs and webhooks.

#include <gtest/gtest.h>

#include <stop_token>

#include "jobs/engine/testing/engine_words.hpp"
#include "jobs/json/webhook.hpp"

namespace sluice::jobs::testing::engine_event_test {
namespace {

class EngineEvent : public engine_words {
 protected:
  event_page events(event_request request = {.after = 0}) {
    settle();
    auto page = e().events(std::move(request), at_once()).get();
    EXPECT_TRUE(page) << (page ? "" : page.error().message);
    return page ? *std::move(page) : event_page{};
  }
  using types = std::vector<std::string>;
  types types_of(const event_page& page) {
    types all;
    for (const job_event& one : page.events) all.emplace_back(to_string(one.type));
    return all;
  }
  types happened_to(job_id id) { return types_of(events({.after = 0, .job = id})); }
};

TEST_F(EngineEvent, DescribeTheLifeOfAJobInOrder) {
  const job_id a = push({.retry = {.first = 1s, .factor = 1.0, .jitter = 0}});
  ASSERT_TRUE(fail(take(), {.type = "io"}));
  advance(1s);
  ASSERT_TRUE(e().release(take().ref()).get());
  const leased_job l = take();
  ASSERT_TRUE(e().report(l.ref(), {50, "half"}));
  ASSERT_TRUE(fail(l, {.type = "worse", .for_good = true}));
  ASSERT_TRUE(e().retry(a).get());
  ASSERT_TRUE(e().cancel(a).get());
  ASSERT_TRUE(e().remove(a).get());
  const event_page page = events({.after = 0, .job = a});
  EXPECT_EQ(types_of(page),
            (types{"pushed", "started", "retrying", "started", "returned", "started", "progress",
                   "dead", "retried", "cancelled", "removed"}));
  std::uint64_t last = 0;
  for (const job_event& one : page.events) {
    EXPECT_GT(one.number, last);
    last = one.number;
    EXPECT_EQ(one.queue, "default");
  }
  EXPECT_EQ(page.events[2].text, "io");
  EXPECT_EQ(page.events[2].attempt, 1U);
  EXPECT_EQ(page.events[5].attempt, 2U);
  EXPECT_EQ(page.events[6].percent, 50);
  EXPECT_EQ(page.events[6].text, "half");
  EXPECT_EQ(page.events[7].text, "worse");
  EXPECT_EQ(page.events[7].attempt, 2U);
}

TEST_F(EngineEvent, ReportReleasesSkipsAndBatches) {
  const batch_receipt b = push_batch({.name = "n",
                                      .jobs = std::vector<job_spec>(1),
                                      .on_success = job_spec{.queue = "called"},
                                      .on_failure = job_spec{.queue = "called"}});
  drain();
  EXPECT_EQ(happened_to(b.on_success), (types{"pushed", "released"}));
  EXPECT_EQ(happened_to(b.on_failure), (types{"pushed", "removed"}));
  EXPECT_EQ(happened_to(b.id), types{"batch_done"});
  EXPECT_EQ(types_of(events({.after = 0, .batch = b.id})),
            (types{"pushed", "started", "done", "batch_done"}));
}

TEST_F(EngineEvent, AreNumberedWithoutGapsAndResumable) {
  push_some(5);
  const event_page all = events();
  ASSERT_GE(all.events.size(), 5U);
  for (std::size_t i = 0; i < all.events.size(); ++i) EXPECT_EQ(all.events[i].number, i + 1);
  EXPECT_EQ(all.next, all.events.back().number);
  const event_page rest = events({.after = all.events[2].number, .epoch = all.epoch, .limit = 1});
  ASSERT_EQ(rest.events.size(), 1U);
  EXPECT_EQ(rest.events[0].number, all.events[3].number);
  EXPECT_EQ(rest.next, all.events[3].number);
  EXPECT_FALSE(rest.missed);
  const event_page none = events({.after = all.next, .epoch = all.epoch});
  EXPECT_TRUE(none.events.empty());
  EXPECT_EQ(none.next, all.next);
}

TEST_F(EngineEvent, OfAnotherProcessAreReportedAsMissed) {
  push_some(3);
  const event_page before = events();
  time.advance(1s);
  reopen();
  const job_id a = push();
  const event_page now = events({.after = before.next, .epoch = before.epoch});
  EXPECT_TRUE(now.missed);
  EXPECT_NE(now.epoch, before.epoch);
  ASSERT_FALSE(now.events.empty());
  EXPECT_EQ(now.events.back().job, a);
}

TEST_F(EngineEvent, ThatAreNoLongerKeptAreReportedAsMissed) {
  options.events_kept = 4;
  const ids all = push_some(10);
  const event_page page = events({.after = 2});
  EXPECT_TRUE(page.missed);
  ASSERT_EQ(page.events.size(), 4U);
  EXPECT_EQ(page.events.back().job, all.back());
  EXPECT_FALSE(events({.after = page.events[0].number}).missed);
  EXPECT_TRUE(events({.after = 1'000'000}).missed);
}

TEST_F(EngineEvent, AreFiltered) {
  const job_id a = push({.queue = "a"});
  const job_id b = push({.queue = "b"});
  drain("a");
  EXPECT_EQ(types_of(events({.after = 0, .queue = "b"})), types{"pushed"});
  EXPECT_EQ(events({.after = 0, .queue = "b"}).events[0].job, b);
  const event_page done = events({.after = 0, .types = {event_type::done}});
  ASSERT_EQ(done.events.size(), 1U);
  EXPECT_EQ(done.events[0].job, a);
  EXPECT_EQ(code_of(e().events({.limit = 0}, at_once()).get()), error_code::invalid);
  EXPECT_EQ(code_of(e().events({.limit = 1001}, at_once()).get()), error_code::invalid);
}

TEST_F(EngineEvent, CanBeWaitedFor) {
  push({.queue = "a"});
  settle();
  auto waits = e().events({.queue = "b"});
  push({.queue = "a"});
  settle();
  EXPECT_FALSE(waits.is_ready());
  const job_id b = push({.queue = "b"});
  const auto page = waits.get();
  ASSERT_TRUE(page);
  ASSERT_EQ(page->events.size(), 1U);
  EXPECT_EQ(page->events[0].job, b);
}

TEST_F(EngineEvent, AtADeadlineThePageIsEmptyAndItsNextIsCurrent) {
  push_some(2);
  settle();
  auto waits = e().events({.queue = "nobody"}, deadline::after(1s, time.timers()));
  push_some(3);
  advance(1s);
  const auto page = waits.get();
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->events.empty());
  EXPECT_EQ(page->next, 5U);
}

TEST_F(EngineEvent, AWaitForThemCanBeStopped) {
  std::stop_source stop;
  auto waits = e().events({}, stop.get_token());
  stop.request_stop();
  EXPECT_EQ(code_of(waits.get()), error_code::stopped);
}

TEST_F(EngineEvent, AWaitForThemEndsWhenTheEngineCloses) {
  auto waits = e().events({});
  e().close();
  EXPECT_EQ(code_of(waits.get()), error_code::shutting_down);
  EXPECT_EQ(code_of(e().events({.after = 0}, at_once()).get()), error_code::shutting_down);
}

TEST_F(EngineEvent, AreNotKeptIfDisabled) {
  options.events_kept = 0;
  push_some(3);
  drain();
  EXPECT_TRUE(events().events.empty());
  EXPECT_EQ(e().stats().events, 0U);
}

TEST_F(EngineEvent, AFailedCommitAddsNoEvents) {
  push();
  const leased_job l = take();
  drive.fails(error_code::io_error);
  EXPECT_FALSE(ack(l));
  drive.works();
  advance(1s);
  EXPECT_EQ(happened_to(l.job->id), (types{"pushed", "started"}));
}

// Progress.

TEST_F(EngineEvent, ProgressIsShownWhileTheJobRunsAndAfterIt) {
  configure({.keep_done = 1h});
  const job_id a = push();
  const leased_job l = take();
  EXPECT_FALSE(get(a).progress);
  ASSERT_TRUE(e().extend(l.ref(), 0ms, progress{25, "a quarter"}));
  EXPECT_EQ(get(a).progress, (progress{25, "a quarter"}));
  EXPECT_EQ(list_all({.queue = "default"}).front().progress, (progress{25, "a quarter"}));
  EXPECT_EQ(list_all({.state = job_state::running}).front().progress, (progress{25, "a quarter"}));
  ASSERT_TRUE(e().report(l.ref(), {100, "all"}));
  ASSERT_TRUE(ack(l));
  EXPECT_EQ(get(a).progress, (progress{100, "all"}));
  EXPECT_EQ(code_of(e().report(l.ref(), {1, ""})), error_code::lease_lost);
}

TEST_F(EngineEvent, ProgressIsKeptWithACancelledJob) {
  const job_id a = push();
  const leased_job l = take();
  ASSERT_TRUE(e().report(l.ref(), {30, "so far"}));
  ASSERT_TRUE(e().cancel(a).get());
  EXPECT_EQ(get(a).progress, (progress{30, "so far"}));
}

TEST_F(EngineEvent, ProgressIsValidatedAndTruncated) {
  push();
  const leased_job l = take();
  EXPECT_EQ(code_of(e().report(l.ref(), {-1, ""})), error_code::invalid);
  EXPECT_EQ(code_of(e().report(l.ref(), {100.5, ""})), error_code::invalid);
  EXPECT_EQ(code_of(e().report(l.ref(), {std::numeric_limits<double>::quiet_NaN(), ""})),
            error_code::invalid);
  ASSERT_TRUE(e().report(l.ref(), {1, std::string(5000, 'x')}));
  EXPECT_EQ(get(l.job->id).progress->text.size(), limits::progress_bytes_max);
}

// Logs.

TEST_F(EngineEvent, LogsAreKeptByAttemptAndDeletedWithTheJob) {
  const job_id a = push({.retry = {.first = 1s, .factor = 1.0, .jitter = 0}});
  leased_job l = take();
  ASSERT_TRUE(e().log(l.ref(), {"one", "two"}).get());
  ASSERT_TRUE(fail(l));
  advance(1s);
  l = take();
  ASSERT_TRUE(e().log(l.ref(), {"three"}).get());
  const auto page = e().logs(a).get();
  ASSERT_TRUE(page);
  ASSERT_EQ(page->lines.size(), 3U);
  EXPECT_EQ(page->lines[1].text, "two");
  EXPECT_EQ(page->lines[1].attempt, 1U);
  EXPECT_EQ(page->lines[2].attempt, 2U);
  EXPECT_EQ(page->lines[2].number, 3U);
  EXPECT_EQ(e().logs(a, 1, 1).get()->lines.at(0).text, "two");
  ASSERT_TRUE(ack(l));
  EXPECT_TRUE(e().logs(a).get()->lines.empty());
  EXPECT_EQ(code_of(e().log(l.ref(), {"late"}).get()), error_code::lease_lost);
}

TEST_F(EngineEvent, LogsAreLimited) {
  const job_id a = push();
  const leased_job l = take();
  EXPECT_EQ(code_of(e().log(l.ref(), std::vector<std::string>(1001, "x")).get()),
            error_code::too_large);
  ASSERT_TRUE(e().log(l.ref(), {std::string(20'000, 'x')}).get());
  EXPECT_EQ(e().logs(a).get()->lines.at(0).text.size(), limits::log_line_bytes_max);
  for (int i = 0; i < 11; ++i) {
    ASSERT_TRUE(e().log(l.ref(), std::vector<std::string>(1000, "x")).get());
  }
  EXPECT_TRUE(e().logs(a, limits::log_lines_max - 1).get()->lines.size() == 1U);
  EXPECT_TRUE(e().logs(a, limits::log_lines_max).get()->lines.empty());
  EXPECT_EQ(code_of(e().logs(a, 0, 0).get()), error_code::invalid);
  drive.fails(error_code::io_error);
  EXPECT_FALSE(e().log(l.ref(), {"lost"}).get());
  drive.works();
  advance(1s);
}

// Webhooks.

class EngineWebhook : public EngineEvent {
 protected:
  EngineWebhook() {
    options.check_url = [](std::string_view url) -> void_result {
      if (url.starts_with("https://")) return done{};
      return error{error_code::invalid, "only https"};
    };
  }
  static constexpr const char* hooks = "sluice/webhooks";
  std::string document_of(const job& j, job_state as, std::optional<payload> value = {},
                          const attempt_error* why = nullptr) {
    return json::webhook_document(j, as, time.now(), value, why);
  }
  job_id push_hooked(job_spec spec = {}) {
    spec.webhook = "https://example.com/x";
    return push(std::move(spec));
  }
};

TEST_F(EngineWebhook, IsPostedWhenTheJobIsDone) {
  push_hooked();
  const leased_job l = take();
  EXPECT_FALSE(e().queue(hooks));
  ASSERT_TRUE(ack(l, payload{R"({"n":1})"}));
  const leased_job posts = take(hooks);
  EXPECT_EQ(posts.job->spec.kind, "sluice.webhook");
  EXPECT_EQ(posts.job->spec.args.data, document_of(*l.job, job_state::done, payload{R"({"n":1})"}));
  EXPECT_NE(posts.job->spec.args.data.find(R"("url":"https://example.com/x")"), std::string::npos);
  EXPECT_TRUE(is_empty(hooks));
  EXPECT_EQ(e().stats().webhooks, 1U);
}

TEST_F(EngineWebhook, IsPostedIfTheJobIsDeadOrCancelledButNotForARetry) {
  push_hooked({.retry = {.attempts_max = 2, .first = 1s, .factor = 1.0, .jitter = 0}});
  ASSERT_TRUE(fail(take(), {.type = "t", .message = "m"}));
  EXPECT_FALSE(e().queue(hooks));
  advance(1s);
  const leased_job l = take();
  advance(60s);  // its lease expires
  EXPECT_EQ(state(l.job->id), job_state::dead);
  leased_job posts = take(hooks);
  EXPECT_NE(posts.job->spec.args.data.find(R"("state":"dead")"), std::string::npos);
  EXPECT_NE(posts.job->spec.args.data.find("lease_expired"), std::string::npos);
  const job_id b = push_hooked();
  ASSERT_TRUE(e().cancel(b).get());
  posts = take(hooks);
  EXPECT_NE(posts.job->spec.args.data.find(R"("state":"cancelled")"), std::string::npos);
  EXPECT_TRUE(is_empty(hooks));
}

TEST_F(EngineWebhook, IsNotPostedBeforeTheEndIsStored) {
  push_hooked();
  const leased_job l = take();
  drive.fails(error_code::io_error);
  EXPECT_FALSE(ack(l));
  drive.works();
  advance(1s);
  const auto q = e().queue(hooks);
  EXPECT_TRUE(!q || q->counts.unfinished() == 0);
  ASSERT_TRUE(ack(l));
  crash();
  EXPECT_EQ(drain(hooks).size(), 1U);
}

TEST_F(EngineWebhook, IsNotPostedForACancelOfASkippedJob) {
  const job_id a = push();
  job_spec waits;
  waits.after = {{a, {}, after_when::failure}};
  const job_id b = push_hooked(waits);
  const leased_job l = take();
  auto posted = e().lease({.queues = {hooks}});
  in_one_commit([&] {
    auto acked = e().ack(l.ref());  // the dependency of b can no longer be met
    auto cancelled = e().cancel(b);
    drive.unblock();
    EXPECT_TRUE(acked.get());
    EXPECT_EQ(code_of(cancelled.get()), error_code::not_found);
  });
  EXPECT_EQ(e().queue(hooks)->counts.unfinished(), 0U);
  // The next one is posted.
  const job_id c = push_hooked();
  ASSERT_TRUE(e().cancel(c).get());
  const auto next = posted.get();
  ASSERT_TRUE(next);
  ASSERT_EQ(next->size(), 1U);
  EXPECT_NE(next->front().job->spec.args.data.find("\"id\":" + std::to_string(c) + ","),
            std::string::npos);
  reopen();
  EXPECT_TRUE(is_empty(hooks));
}

TEST_F(EngineWebhook, AFullDiskRejectsOnlyTheEndThatItReports) {
  push_hooked();
  const leased_job hooked = take();
  push();
  const leased_job plain = take();
  settle();
  drive.block();
  auto before = begin_push({.queue = "elsewhere"});
  drive.await_blocked();
  drive.is_full();
  auto first = e().ack(hooked.ref());
  auto second = e().ack(plain.ref());
  drive.unblock();
  (void)before.get();
  EXPECT_EQ(code_of(first.get()), error_code::disk_full);
  EXPECT_TRUE(second.get());
  drive.works();
  advance(1s);
  ASSERT_TRUE(ack(hooked));
  EXPECT_EQ(drain(hooks).size(), 1U);
}

TEST_F(EngineWebhook, AUrlThatIsNotAllowedIsRejected) {
  job_spec s;
  s.webhook = "http://example.com";
  const auto pushed = try_push(s);
  EXPECT_EQ(code_of(pushed), error_code::invalid);
  EXPECT_EQ(pushed.error().message, "webhook: only https");
  EXPECT_EQ(code_of(e().configure("default", {.deliver_url = "http://x"}).get()),
            error_code::invalid);
  options.check_url = {};
  reopen();
  s.webhook = "https://example.com";
  EXPECT_EQ(code_of(try_push(s)), error_code::invalid);
}

}  // namespace
}  // namespace sluice::jobs::testing::engine_event_test
