// Round trips of batches, cron entries, limits, progress, logs and events.
#include <gtest/gtest.h>

#include "jobs/json/codec.hpp"

namespace sluice::jobs::json::codec_groups_test {
namespace {

using namespace std::chrono_literals;

template <class T>
T read_ok(std::string_view text, read_context context = {}) {
  auto value = read<T>(text, context);
  EXPECT_TRUE(value) << text << "\n" << value.error().message;
  return value ? std::move(*value) : T{};
}

template <class T>
std::string message_of(std::string_view text) {
  const auto value = read<T>(text);
  if (value) return "was read";
  EXPECT_EQ(value.error().code, error_code::invalid);
  return value.error().message;
}

TEST(CodecGroups, ReadsDependenciesInEveryForm) {
  const auto spec =
      read_ok<job_spec>(R"({"kind":"k","after":[12,"build",{"job":3},{"batch":4,"when":"end"},)"
                        R"({"step":"test","when":"failure"},{"job":5,"when":"success"}]})");
  const std::vector<dependency> expected = {
      {.on = 12}, {.step = "build"}, {.on = 3}, {.on = 4, .when = after_when::end}, {.on = 5}};
  ASSERT_EQ(spec.after.size(), 6U);
  EXPECT_EQ(spec.after[0], expected[0]);
  EXPECT_EQ(spec.after[1], expected[1]);
  EXPECT_EQ(spec.after[2], expected[2]);
  EXPECT_EQ(spec.after[3], expected[3]);
  EXPECT_EQ(spec.after[4], (dependency{.step = "test", .when = after_when::failure}));
  EXPECT_EQ(spec.after[5], expected[4]);
}

TEST(CodecGroups, DescribesErrorsOfADependency) {
  EXPECT_EQ(message_of<job_spec>(R"({"kind":"k","after":[true]})"),
            "after[0]: expected the id of a job or batch, the name of a step, or an object "
            "(line 1, column 22)");
  EXPECT_EQ(
      message_of<job_spec>(R"({"kind":"k","after":[1,{"when":"end"}]})"),
      "after[1]: a dependency must have exactly one of job, batch and step (line 1, column 24)");
  EXPECT_EQ(
      message_of<job_spec>(R"({"kind":"k","after":[{"job":1,"step":"a"}]})"),
      "after[0]: a dependency must have exactly one of job, batch and step (line 1, column 22)");
  EXPECT_EQ(message_of<job_spec>(R"({"kind":"k","after":[{"job":1,"when":"later"}]})"),
            "after[0].when: expected \"success\", \"end\" or \"failure\" (line 1, column 38)");
  EXPECT_EQ(message_of<job_spec>(R"({"kind":"k","after":[0]})"),
            "after[0]: expected a whole number from 1 to 9007199254740992, found 0 "
            "(line 1, column 22)");
  std::string many = "1";
  for (std::size_t i = 0; i < limits::after_max; ++i) many += ",1";
  EXPECT_NE(message_of<job_spec>(R"({"kind":"k","after":[)" + many + "]}").find("put them into a"),
            std::string::npos);
}

TEST(CodecGroups, CarriesAWorker) {
  const faktory_worker worker{.wid = "a/b",
                              .hostname = "web-1",
                              .pid = -1,
                              .labels = {"one", "two"},
                              .state = worker_state::quiet,
                              .rss_kb = 4096,
                              .since = {1000},
                              .last_beat = {2000},
                              .running = 3};
  const std::string text = to_json(faktory_worker_page{{worker}, "a/b"});
  const auto page = read_ok<faktory_worker_page>(text);
  ASSERT_EQ(page.workers.size(), 1U);
  EXPECT_EQ(page.cursor, "a/b");
  EXPECT_EQ(to_json(page), text);
  EXPECT_EQ(page.workers[0].labels, worker.labels);
  EXPECT_EQ(page.workers[0].pid, -1);
  EXPECT_EQ(read_ok<faktory_worker>(to_json(worker)).state, worker_state::quiet);
  EXPECT_EQ(read_ok<faktory_worker_page>(R"({"workers":[],"next":null})").cursor, std::nullopt);
  EXPECT_EQ(message_of<faktory_worker>(R"({"wid":"w","state":"asleep"})"),
            "state: expected the state of a worker (line 1, column 20)");
}

TEST(CodecGroups, CarriesABatch) {
  batch_spec spec;
  spec.name = "nightly";
  spec.open = true;
  spec.jobs = {{.kind = "a", .step = "a"}, {.kind = "b", .after = {{.step = "a"}}}};
  spec.on_success = job_spec{.kind = "yes"};
  spec.on_end = job_spec{.kind = "end"};
  spec.on_failure = job_spec{.kind = "no", .priority = 3};
  spec.keep_done = 1h;
  spec.keep_failed = 2h;
  EXPECT_EQ(read_ok<batch_spec>(to_json(spec)), spec);
  EXPECT_EQ(read_ok<batch_spec>("{}"), batch_spec{});
  EXPECT_EQ(read_ok<batch_spec>(R"({"jobs":[{"kind":"a","delay":1}]})", {.now = {500}})
                .jobs.at(0)
                .run_at.ms,
            1500);
  EXPECT_EQ(message_of<batch_spec>(R"({"jobs":[{"kind":"a"},{"knd":"b"}]})"),
            "jobs[1]: unknown field \"knd\"; did you mean \"kind\"? (line 1, column 24)");
  EXPECT_EQ(message_of<batch_spec>(R"({"on_success":{}})"),
            "on_success: the field \"kind\" is missing (line 1, column 15)");
}

TEST(CodecGroups, CarriesBatchInfosAndReceipts) {
  const batch_info info{.id = 7,
                        .name = "nightly",
                        .open = false,
                        .total = 10,
                        .pending = 2,
                        .failed = 1,
                        .created_at = {1000},
                        .ended_at = {2000},
                        .due_at = {3000},
                        .keep_done = 1h,
                        .keep_failed = 2h};
  EXPECT_EQ(read_ok<batch_info>(to_json(info)), info);
  EXPECT_NE(to_json(info).find(R"("state":"running")"), std::string::npos);
  const auto page = read_ok<batch_page>(to_json(batch_page{{info, info}, 8}));
  EXPECT_EQ(page.batches, (std::vector{info, info}));
  EXPECT_EQ(page.cursor, 8U);
  const auto receipt = read_ok<batch_receipt>(to_json(batch_receipt{7, {8, 9}, 10, 11, 12}));
  EXPECT_EQ(receipt.id, 7U);
  EXPECT_EQ(receipt.jobs, (std::vector<job_id>{8, 9}));
  EXPECT_EQ(receipt.on_success, 10U);
  EXPECT_EQ(receipt.on_end, 11U);
  EXPECT_EQ(receipt.on_failure, 12U);
  EXPECT_EQ(to_json(batch_receipt{7}), R"({"id":7,"jobs":[]})");
  EXPECT_EQ(read_ok<cancel_receipt>(to_json(cancel_receipt{5})).cancelled, 5U);
  EXPECT_EQ(read_ok<retry_receipt>(to_json(retry_receipt{6})).retried, 6U);
}

TEST(CodecGroups, CarriesCronEntries) {
  const cron_spec spec{.name = "daily",
                       .schedule = "0 4 * * *",
                       .zone = "Europe/Berlin",
                       .missed = missed_runs::all,
                       .paused = true,
                       .job = {.queue = "reports", .kind = "report"}};
  EXPECT_EQ(read_ok<cron_spec>(to_json(spec)), spec);
  EXPECT_EQ(message_of<cron_spec>(R"({"schedule":"@daily"})"),
            "line 1, column 1: the field \"job\" is missing");
  EXPECT_EQ(message_of<cron_spec>(R"({"schedule":"@daily","job":{"kind":"k"},"missed":"some"})"),
            "missed: expected \"skip\", \"one\" or \"all\" (line 1, column 50)");

  cron_info info;
  info.entry = {
      .spec = spec, .next_at = {1000}, .last_at = {2000}, .last_job = 5, .runs = 6, .missed = 7};
  info.upcoming = {{1000}, {3000}};
  const auto back = read_ok<std::vector<cron_info>>(to_json(std::vector{info, info}));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[1].entry, info.entry);
  EXPECT_EQ(back[1].upcoming, info.upcoming);
  EXPECT_EQ(read_ok<cron_info>(to_json(info)).entry, info.entry);

  EXPECT_EQ(read_ok<cron_patch>(to_json(cron_patch{.paused = true})).paused, true);
  EXPECT_FALSE(read_ok<cron_patch>(to_json(cron_patch{})).paused);
  const auto check = read_ok<cron_check>(to_json(cron_check{"@hourly", "Asia/Tokyo"}));
  EXPECT_EQ(check.schedule, "@hourly");
  EXPECT_EQ(check.zone, "Asia/Tokyo");
  const auto times = read_ok<cron_times>(to_json(cron_times{"at five", {{5}, {6}}}));
  EXPECT_EQ(times.describes, "at five");
  EXPECT_EQ(times.upcoming, (std::vector<unix_time>{{5}, {6}}));
}

TEST(CodecGroups, ChangesTheLimitsOfAQueue) {
  queue_patch patch;
  patch.rate = 2.5;
  patch.rate_burst = 3;
  patch.concurrency = 4;
  patch.weight = 5;
  patch.key_concurrency = 6;
  patch.key_rate = 0.5;
  patch.key_burst = 7;
  patch.deliver_url = "https://a.example/";
  patch.deliver_concurrency = 8;
  patch.deliver_timeout = 9s;
  const auto back = read_ok<queue_patch>(to_json(patch));
  EXPECT_EQ(back.rate, patch.rate);
  EXPECT_EQ(back.rate_burst, patch.rate_burst);
  EXPECT_EQ(back.concurrency, patch.concurrency);
  EXPECT_EQ(back.weight, patch.weight);
  EXPECT_EQ(back.key_concurrency, patch.key_concurrency);
  EXPECT_EQ(back.key_rate, patch.key_rate);
  EXPECT_EQ(back.key_burst, patch.key_burst);
  EXPECT_EQ(back.deliver_url, patch.deliver_url);
  EXPECT_EQ(back.deliver_concurrency, patch.deliver_concurrency);
  EXPECT_EQ(back.deliver_timeout, patch.deliver_timeout);
  EXPECT_EQ(message_of<queue_patch>(R"({"rate":-1})"),
            "rate: expected a number from 0 to 1e+06, found -1 (line 1, column 9)");
}

TEST(CodecGroups, EndsADeliveryWithNull) {
  EXPECT_EQ(read_ok<queue_patch>(R"({"deliver":null})").deliver_url, "");
  EXPECT_EQ(to_json(queue_patch{.deliver_url = ""}), R"({"deliver":null})");
  EXPECT_FALSE(read_ok<queue_patch>(R"({"deliver":{"concurrency":2}})").deliver_url);
  EXPECT_FALSE(read_ok<queue_patch>("{}").deliver_url);
}

TEST(CodecGroups, LeasesInTheRequestedOrder) {
  lease_call call;
  call.request.pick = lease_request::order::strict;
  EXPECT_EQ(read_ok<lease_call>(to_json(call)).request.pick, lease_request::order::strict);
  call.request.pick = lease_request::order::urgent;
  EXPECT_EQ(read_ok<lease_call>(to_json(call)).request.pick, lease_request::order::urgent);
  EXPECT_EQ(read_ok<lease_call>(R"({"order":"fair"})").request.pick, lease_request::order::fair);
  EXPECT_EQ(message_of<lease_call>(R"({"order":"random"})"),
            "order: expected \"fair\", \"strict\" or \"urgent\" (line 1, column 10)");
}

TEST(CodecGroups, CarriesProgress) {
  const auto call = read_ok<progress_call>(to_json(progress_call{7, {33.5, "a third"}}));
  EXPECT_EQ(call.lease, 7U);
  EXPECT_EQ(call.progress, (progress{33.5, "a third"}));
  const auto extend = read_ok<extend_call>(to_json(extend_call{7, 5s, progress{1, ""}}));
  EXPECT_EQ(extend.progress, (progress{1, ""}));
  EXPECT_EQ(message_of<progress_call>(R"({"lease":1,"percent":101})"),
            "percent: expected a number from 0 to 100, found 101 (line 1, column 22)");
  EXPECT_EQ(message_of<extend_call>(R"({"lease":1,"progress":{"text":"x"}})"),
            "progress: the field \"percent\" is missing (line 1, column 23)");
}

TEST(CodecGroups, CarriesLogs) {
  const auto call = read_ok<log_call>(to_json(log_call{7, {"one", "tw\no"}}));
  EXPECT_EQ(call.lease, 7U);
  EXPECT_EQ(call.lines, (std::vector<std::string>{"one", "tw\no"}));
  std::string many = "\"\"";
  for (std::size_t i = 0; i < limits::log_lines_at_once; ++i) many += ",\"\"";
  EXPECT_NE(
      message_of<log_call>(R"({"lease":1,"lines":[)" + many + "]}").find("more than 1000 lines"),
      std::string::npos);
  const log_page page{{{1, 2, {3}, "four"}, {5, 6, {7}, ""}}, 5};
  const auto back = read_ok<log_page>(to_json(page));
  EXPECT_EQ(back.lines, page.lines);
  EXPECT_EQ(back.cursor, 5U);
  EXPECT_FALSE(read_ok<log_page>(to_json(log_page{})).cursor);
}

TEST(CodecGroups, CarriesEvents) {
  const job_event e{.number = 9,
                    .at = {1000},
                    .type = event_type::progress,
                    .job = 3,
                    .queue = "mail",
                    .attempt = 2,
                    .batch = 4,
                    .percent = 50,
                    .text = "half"};
  const auto page = read_ok<event_page>(to_json(event_page{{e, {}}, 77, 10, true}));
  ASSERT_EQ(page.events.size(), 2U);
  EXPECT_EQ(to_json(page.events[0]), to_json(e));
  EXPECT_EQ(page.epoch, 77U);
  EXPECT_EQ(page.next, 10U);
  EXPECT_TRUE(page.missed);
  const auto back = read_ok<job_event>(to_json(e));
  EXPECT_EQ(back.number, 9U);
  EXPECT_EQ(back.at.ms, 1000);
  EXPECT_EQ(back.type, event_type::progress);
  EXPECT_EQ(back.job, 3U);
  EXPECT_EQ(back.queue, "mail");
  EXPECT_EQ(back.attempt, 2U);
  EXPECT_EQ(back.batch, 4U);
  EXPECT_EQ(back.percent, 50);
  EXPECT_EQ(back.text, "half");
}

TEST(CodecGroups, WritesThePositionOfAnEvent) {
  EXPECT_EQ(to_string(event_place{5, 17}), "5-17");
  EXPECT_EQ(event_place_from("5-17"), (event_place{5, 17}));
  for (const std::string_view bad : {"", "5", "5-", "-5", "5-1x", "x", "5-17 ", "5--1"}) {
    EXPECT_FALSE(event_place_from(bad)) << bad;
  }
}

}  // namespace
}  // namespace sluice::jobs::json::codec_groups_test
