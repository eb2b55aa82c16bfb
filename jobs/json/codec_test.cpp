// Round trips of requests and responses, and their text on the wire.
#include "jobs/json/codec.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>

namespace sluice::jobs::json::codec_test {
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

job_spec full_spec() {
  return {.queue = "mail",
          .kind = "welcome",
          .args = {R"({"to": "ada", "n": 12345678901234567890, "x": 1.10})"},
          .priority = -7,
          .run_at = {1'767'225'600'250},
          .retry = {.attempts_max = 3, .first = 1s, .factor = 1.5, .longest = 1min, .jitter = 0.1},
          .lease_for = 90s,
          .time_limit = 5min,
          .unique = {.key = "ada", .until = unique_until::elapsed, .lasts = 24h},
          .metadata = R"({"trace":"\u00e9\ud83d\ude00"})",
          .keep_for = 0ms,
          .key = "ada's account",
          .batch = 77,
          .after = {{.on = 5},
                    {.on = 6, .when = after_when::end},
                    {.step = "build"},
                    {.step = "test", .when = after_when::failure}},
          .step = "deploy",
          .webhook = "https://a.example/x"};
}

job full_job() {
  job j;
  j.id = 9007199254740991;
  j.spec = full_spec();
  j.state = job_state::dead;
  j.attempts = 2;
  j.created_at = {1'767'225'600'001};
  j.due_at = {1'767'225'600'002};
  j.ended_at = {1'767'225'600'003};
  j.errors = {{1, {5}, "io", "no\n\"route\"", "a\tb"}, {2, {6}, "", "", ""}};
  j.result = payload{"[1,2]"};
  j.progress = progress{12.5, "a \"quarter\""};
  j.blockers = 3;
  return j;
}

TEST(Codec, ReadsAJobFromFewWords) {
  EXPECT_EQ(read_ok<job_spec>(R"({"kind":"mail"})"), job_spec{.kind = "mail"});
}

TEST(Codec, KeepsEveryFieldOfASpec) {
  EXPECT_EQ(read_ok<job_spec>(to_json(full_spec())), full_spec());
  job_spec bytes = full_spec();
  bytes.args = {std::string("\0\xFF\n", 3), content_type::bytes};
  EXPECT_EQ(read_ok<job_spec>(to_json(bytes)), bytes);
}

TEST(Codec, KeepsArgumentsAndMetadataAsTheyWereSent) {
  const auto spec = read_ok<job_spec>(
      R"({ "args" : { "b":1, "a" : [1.10, 12345678901234567890, 1e400, -0.0, "\u0041"] },
           "kind":"k", "metadata":{ "x" :null } })");
  EXPECT_EQ(spec.args.data,
            R"({ "b":1, "a" : [1.10, 12345678901234567890, 1e400, -0.0, "\u0041"] })");
  EXPECT_EQ(spec.metadata, R"({ "x" :null })");
  EXPECT_EQ(read_ok<job_spec>(R"({"kind":"k","args":null})").args.data, "null");
  EXPECT_EQ(read_ok<job_spec>(R"({"kind":"k","args":"s"})").args.data, "\"s\"");
}

TEST(Codec, CountsADelayFromNow) {
  const auto spec = read_ok<job_spec>(R"({"kind":"k","delay":"90s"})", {.now = {1'000'000}});
  EXPECT_EQ(spec.run_at.ms, 1'090'000);
  EXPECT_EQ(read_ok<job_spec>(R"({"kind":"k","delay":0.5})", {.now = {1}}).run_at.ms, 501);
  EXPECT_EQ(read_ok<job_spec>(R"({"kind":"k","delay":0})", {.now = {1}}).run_at, unix_time{});
}

TEST(Codec, TreatsNullAsMissing) {
  EXPECT_EQ(read_ok<job_spec>(R"({"kind":"k","queue":null,"run_at":null,"retry":null,
                                  "unique":null,"metadata":null,"keep_for":null})"),
            job_spec{.kind = "k"});
}

TEST(Codec, ReadsAPushOfOneJobOrOfMany) {
  const auto one = read_ok<push_call>(R"({"kind":"a","queue":"q"})");
  EXPECT_TRUE(one.is_single);
  ASSERT_EQ(one.jobs.size(), 1U);
  EXPECT_EQ(one.jobs[0].queue, "q");
  const auto list = read_ok<push_call>(R"([{"kind":"a"},{"kind":"b"}])");
  EXPECT_FALSE(list.is_single);
  ASSERT_EQ(list.jobs.size(), 2U);
  EXPECT_EQ(list.jobs[1].kind, "b");
  const auto all = read_ok<push_call>(R"({"mode":"all_or_nothing","jobs":[{"kind":"a"}]})");
  EXPECT_EQ(all.mode, bulk::all_or_nothing);
  EXPECT_EQ(all.jobs.size(), 1U);
  EXPECT_FALSE(all.is_single);
  EXPECT_TRUE(read_ok<push_call>("[]").jobs.empty());
}

TEST(Codec, RoundTripsPushes) {
  push_call call{.jobs = {full_spec(), {.kind = "b"}}, .mode = bulk::all_or_nothing};
  auto back = read_ok<push_call>(to_json(call));
  EXPECT_EQ(back.jobs, call.jobs);
  EXPECT_EQ(back.mode, call.mode);
  call = {.jobs = {full_spec()}, .is_single = true};
  back = read_ok<push_call>(to_json(call));
  EXPECT_EQ(back.jobs, call.jobs);
  EXPECT_TRUE(back.is_single);
}

TEST(Codec, ErrorsHaveAPositionAndAReason) {
  EXPECT_EQ(message_of<push_call>("{\"jobs\":[{\"kind\":\"a\"},\n{\"kind\":\"b\"},\n"
                                  "{\"kind\":\"c\",\"retry\":{\"factor\":\"2\"}}]}"),
            "jobs[2].retry.factor: expected a number from 1 to 1000, found a string "
            "(line 3, column 31)");
  EXPECT_EQ(message_of<push_call>(R"([{"kind":"a"},{"kind":3}])"),
            "[1].kind: expected a string, found a number (line 1, column 23)");
  EXPECT_EQ(message_of<job_spec>(R"({"kind":"k","priority":4294967297})"),
            "priority: expected a whole number from -4294967296 to 4294967296, found 4294967297 "
            "(line 1, column 24)");
  EXPECT_EQ(message_of<job_spec>(R"({"kind":"k","lease_for":"soon"})"),
            "lease_for: expected a duration like \"500ms\", \"30s\", \"5m\", \"1h\" or \"7d\", or "
            "a number of seconds (line 1, column 25)");
  EXPECT_EQ(message_of<job_spec>(R"({"kind":"k","run_at":"tomorrow"})"),
            "run_at: expected a time like \"2026-01-31T12:00:00Z\" (RFC 3339, with Z or an offset) "
            "(line 1, column 22)");
  EXPECT_EQ(message_of<job_spec>(R"({"kind":"k","unique":{"until":"never","key":"a"}})"),
            "unique.until: expected \"started\", \"done\" or \"elapsed\" (line 1, column 31)");
  EXPECT_EQ(message_of<job_spec>(R"({"kind":"k","args_base64":"%"})"),
            "args_base64: expected bytes as base64 (line 1, column 27)");
  EXPECT_EQ(message_of<job_spec>(R"({"kind":"k","metadata":[]})"),
            "metadata: expected an object, found an array (line 1, column 24)");
}

TEST(Codec, RejectsUnknownFieldsAndSuggestsASimilarName) {
  EXPECT_EQ(message_of<push_call>(R"({"kind":"a","priorty":1})"),
            "line 1, column 13: unknown field \"priorty\"; did you mean \"priority\"?");
  EXPECT_EQ(
      message_of<push_call>(R"([{"kind":"a","retry":{"max":1}}])"),
      "[0].retry: unknown field \"max\"; known fields: attempts, first, factor, longest, jitter "
      "(line 1, column 23)");
  EXPECT_NE(message_of<push_call>(R"({"knid":"a"})").find("did you mean \"kind\"?"),
            std::string::npos);
  EXPECT_NE(message_of<push_call>(R"({"":"a"})").find("unknown field \"\""), std::string::npos);
  EXPECT_NE(message_of<queue_patch>(R"({"capacity":1})").find("did you mean \"capacity_jobs\"?"),
            std::string::npos);
}

TEST(Codec, RejectsDuplicateAndMissingFields) {
  EXPECT_EQ(message_of<job_spec>(R"({"kind":"a","kind":"b"})"),
            "kind: duplicate field (line 1, column 13)");
  EXPECT_EQ(message_of<job_spec>(R"({"kind":"a","k\u0069nd":"b"})"),
            "kind: duplicate field (line 1, column 13)");
  EXPECT_EQ(message_of<job_spec>(R"({"queue":"q"})"),
            "line 1, column 1: the field \"kind\" is missing");
  EXPECT_EQ(message_of<acks_call>(R"({"acks":[{"id":1,"lease":2},{"id":3}]})"),
            "acks[1]: the field \"lease\" is missing (line 1, column 29)");
  EXPECT_EQ(message_of<push_call>("{}"), "line 1, column 1: a job must have a kind");
  EXPECT_EQ(message_of<job_spec>(R"({"kind":"a","args":1,"args_base64":""})"),
            "args_base64: give either args or args_base64, not both (line 1, column 22)");
  EXPECT_EQ(message_of<job_spec>(R"({"kind":"a","delay":1,"run_at":"2026-01-01T00:00:00Z"})"),
            "run_at: give either run_at or delay, not both (line 1, column 23)");
  EXPECT_EQ(message_of<ack_call>(R"({"lease":1,"result":1,"result_base64":""})"),
            "result_base64: give either result or result_base64, not both (line 1, column 23)");
}

TEST(Codec, CountsLinesFromTheGivenLine) {
  const auto value = read<job_spec>(R"({"kind":3})", {.line = 17});
  EXPECT_EQ(value.error().message, "kind: expected a string, found a number (line 17, column 9)");
}

TEST(Codec, KeepsEveryFieldOfAJob) {
  EXPECT_EQ(read_ok<job>(to_json(full_job())), full_job());
  job j = full_job();
  j.result = payload{std::string("\0\1", 2), content_type::bytes};
  EXPECT_EQ(read_ok<job>(to_json(j)), j);
}

TEST(Codec, WritesAJobAsDocumented) {
  job j;
  j.id = 42;
  j.spec = {.kind = "mail", .args = {R"({"to":"ada"})"}};
  j.created_at = {1'767'225'600'000};
  EXPECT_EQ(to_json(j),
            R"({"id":42,"state":"ready","queue":"default","kind":"mail","args":{"to":"ada"},)"
            R"("attempts":0,"created_at":"2026-01-01T00:00:00.000Z"})");
}

TEST(Codec, SkipsFieldsOfANewerServer) {
  EXPECT_EQ(read_ok<job>(R"({"id":1,"kind":"k","colour":{"r":[1]},"state":"ready"})").id, 1U);
  EXPECT_EQ(read_ok<engine_stats>(R"({"pushed":3,"moons":{}})").pushed, 3U);
}

TEST(Codec, ListsJobsWithACursor) {
  job_page page{{full_job(), full_job()}, 77};
  auto back = read_ok<job_page>(to_json(page));
  EXPECT_EQ(back.jobs, page.jobs);
  EXPECT_EQ(back.cursor, page.cursor);
  EXPECT_EQ(to_json(job_page{}), R"({"jobs":[],"next":null})");
  EXPECT_FALSE(read_ok<job_page>(to_json(job_page{})).cursor);
}

TEST(Codec, CarriesPushResults) {
  using fate = push_receipt::fate;
  EXPECT_EQ(to_json(push_receipt{42}), R"({"id":42})");
  EXPECT_EQ(to_json(push_receipt{41, fate::duplicate}), R"({"id":41,"duplicate":true})");
  EXPECT_EQ(to_json(push_receipt{0, fate::dropped}), R"({"dropped":true})");
  EXPECT_EQ(read_ok<push_receipt>(R"({"id":41,"duplicate":true})").outcome, fate::duplicate);
  EXPECT_EQ(to_json(push_receipt{0, fate::skipped}), R"({"skipped":true})");
  EXPECT_EQ(read_ok<push_receipt>(R"({"dropped":true})").outcome, fate::dropped);
  EXPECT_EQ(read_ok<push_receipt>(R"({"skipped":true})").outcome, fate::skipped);
  EXPECT_EQ(message_of<push_receipt>("{}"), "line 1, column 1: the field \"id\" is missing");

  const std::vector<result<push_receipt>> results = {
      push_receipt{1}, push_receipt{1, fate::duplicate}, push_receipt{0, fate::dropped},
      error{error_code::queue_full, "full", 0}};
  const std::string text = to_json(results);
  EXPECT_EQ(text, R"({"accepted":1,"results":[{"id":1},{"id":1,"duplicate":true},)"
                  R"({"dropped":true},{"error":{"code":"queue_full","message":"full"}}]})");
  const auto back = read_ok<std::vector<result<push_receipt>>>(text);
  ASSERT_EQ(back.size(), 4U);
  EXPECT_EQ(back[1]->outcome, fate::duplicate);
  EXPECT_EQ(back[3].error().code, error_code::queue_full);
}

TEST(Codec, LeasesJobs) {
  lease_call call{.request = {.queues = {"a", "b"}, .max = 10, .worker = "w1", .lease_for = 5s},
                  .wait = 30s};
  const auto asked = read_ok<lease_call>(to_json(call));
  EXPECT_EQ(asked.request.queues, call.request.queues);
  EXPECT_EQ(asked.request.max, 10U);
  EXPECT_EQ(asked.request.worker, "w1");
  EXPECT_EQ(asked.request.lease_for, 5s);
  EXPECT_EQ(asked.wait, 30s);
  EXPECT_EQ(read_ok<lease_call>("{}").request.queues, std::vector<std::string>{"default"});
  EXPECT_EQ(message_of<lease_call>(R"({"max":0})"),
            "max: expected a whole number from 1 to 1000000, found 0 (line 1, column 8)");

  const std::vector<leased_job> leased = {
      {std::make_shared<job>(full_job()), (std::uint64_t{1} << 53U) - 1, 3, {99}}};
  const auto back = read_ok<std::vector<leased_job>>(to_json(leased));
  ASSERT_EQ(back.size(), 1U);
  job running = full_job();
  running.state = job_state::running;  // the stored state is ready
  EXPECT_EQ(*back[0].job, running);
  EXPECT_EQ(back[0].key, leased[0].key);
  EXPECT_EQ(back[0].attempt, 3U);
  EXPECT_EQ(back[0].until.ms, 99);
}

TEST(Codec, CarriesTheCallsOfWorkers) {
  const auto extend = read_ok<extend_call>(to_json(extend_call{7, 60s}));
  EXPECT_EQ(extend.lease, 7U);
  EXPECT_EQ(extend.by, 60s);
  const auto extended = read_ok<extension>(to_json(extension{{123}, true}));
  EXPECT_EQ(extended.until.ms, 123);
  EXPECT_TRUE(extended.cancelled);

  const auto ack = read_ok<ack_call>(to_json(ack_call{7, payload{"[1.10]"}}));
  EXPECT_EQ(ack.result, payload{"[1.10]"});
  EXPECT_FALSE(read_ok<ack_call>(R"({"lease":1,"result":null})").result);
  EXPECT_EQ(read_ok<ack_call>(R"({"lease":1,"result_base64":"AAE="})").result,
            (payload{std::string("\0\1", 2), content_type::bytes}));

  const fail_call failed{7, {"timeout", "took \x01 long", "at x", 5s, true}};
  const auto fail = read_ok<fail_call>(to_json(failed));
  EXPECT_EQ(fail.failure.type, "timeout");
  EXPECT_EQ(fail.failure.message, "took \x01 long");
  EXPECT_EQ(fail.failure.backtrace, "at x");
  EXPECT_EQ(fail.failure.retry_in, 5s);
  EXPECT_TRUE(fail.failure.for_good);
  const auto fate = read_ok<fail_receipt>(to_json(fail_receipt{job_state::retrying, {55}}));
  EXPECT_EQ(fate.state, job_state::retrying);
  EXPECT_EQ(fate.next_at.ms, 55);

  const auto back = read_ok<release_call>(to_json(release_call{7, {5s, -3}}));
  EXPECT_EQ(back.release.delay, 5s);
  EXPECT_EQ(back.release.priority, -3);
}

TEST(Codec, CarriesManyAcks) {
  const acks_call call{{{{1, 10}, std::nullopt}, {{2, 20}, payload{"3"}}}};
  const auto back = read_ok<acks_call>(to_json(call));
  ASSERT_EQ(back.acks.size(), 2U);
  EXPECT_EQ(back.acks[0].lease, (lease_ref{1, 10}));
  EXPECT_FALSE(back.acks[0].result);
  EXPECT_EQ(back.acks[1].result, payload{"3"});

  const std::vector<void_result> results = {done{}, error{error_code::lease_lost, "gone", 2}};
  EXPECT_EQ(to_json(results),
            R"({"results":[{},{"error":{"code":"lease_lost","message":"gone","job":2}}]})");
  const auto read_back = read_ok<std::vector<void_result>>(to_json(results));
  ASSERT_EQ(read_back.size(), 2U);
  EXPECT_TRUE(read_back[0]);
  EXPECT_EQ(read_back[1].error().job, 2U);
}

TEST(Codec, CarriesQueues) {
  queue_info info{"mail", {}, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  info.options = {.capacity_jobs = 10,
                  .capacity_bytes = 1000,
                  .when_full = overflow::latest,
                  .paused = true,
                  .lease_for = 1s,
                  .keep_done = 2s,
                  .keep_results = 3s,
                  .keep_dead = 4s,
                  .rate = 12.5,
                  .rate_burst = 5,
                  .concurrency = 6,
                  .weight = 7,
                  .key_concurrency = 8,
                  .key_rate = 0.1,
                  .key_burst = 9,
                  .deliver = {.url = "https://a.example/", .concurrency = 3, .timeout = 5s}};
  const auto back = read_ok<std::vector<queue_info>>(to_json(std::vector{info, info}));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[1].name, "mail");
  EXPECT_EQ(back[1].options, info.options);
  EXPECT_EQ(back[1].counts, info.counts);
  EXPECT_EQ(read_ok<queue_info>(to_json(info)).counts, info.counts);

  const queue_patch patch{
      .capacity_jobs = 5, .when_full = overflow::block, .paused = false, .keep_dead = 0ms};
  const auto changed = read_ok<queue_patch>(to_json(patch));
  EXPECT_EQ(changed.capacity_jobs, 5U);
  EXPECT_FALSE(changed.capacity_bytes);
  EXPECT_EQ(changed.when_full, overflow::block);
  EXPECT_EQ(changed.paused, false);
  EXPECT_EQ(changed.keep_dead, 0ms);
  EXPECT_EQ(message_of<queue_patch>(R"({"when_full":"caller_runs"})"),
            R"(when_full: expected "block", "reject", "drop_newest", "drop_oldest" or "latest" )"
            "(line 1, column 14)");
  EXPECT_EQ(read_ok<purge_receipt>(to_json(purge_receipt{12})).purged, 12U);
}

TEST(Codec, CarriesEveryNumberOfTheStatistics) {
  // Every member is a number of the same type: fill all of them, and compare all of them.
  static_assert(sizeof(engine_stats) % sizeof(std::uint64_t) == 0);
  constexpr std::size_t n = sizeof(engine_stats) / sizeof(std::uint64_t);
  std::array<std::uint64_t, n> numbers{};
  for (std::size_t i = 0; i < n; ++i) numbers[i] = 1000 + i;
  const auto stats = std::bit_cast<engine_stats>(numbers);
  const auto back = read_ok<engine_stats>(to_json(stats));
  EXPECT_EQ((std::bit_cast<std::array<std::uint64_t, n>>(back)), numbers);
}

TEST(Codec, CarriesProblemsWithEveryCode) {
  for (int i = 0; i <= static_cast<int>(error_code::unavailable); ++i) {
    const problem p{503, "Service Unavailable", {static_cast<error_code>(i), "why \"so\"", 9}};
    const auto back = read_ok<problem>(to_json(p));
    EXPECT_EQ(back.status, 503);
    EXPECT_EQ(back.title, p.title);
    EXPECT_EQ(back.error.code, p.error.code);
    EXPECT_EQ(back.error.message, p.error.message);
    EXPECT_EQ(back.error.job, 9U);
  }
  EXPECT_EQ(read_ok<problem>(R"({"code":"of_tomorrow"})").error.code, error_code::unavailable);
  EXPECT_EQ(to_json(problem{404, "Not Found", {error_code::not_found, "no job 7", 7}}),
            R"({"type":"about:blank","title":"Not Found","status":404,"detail":"no job 7",)"
            R"("code":"not_found","job":7})");
}

TEST(Codec, WritesInvalidUtf8AsReplacementCharacters) {
  const fail_call cut{1, {"", "caf\xC3", std::string("\xED\xA0\x80|\0", 5), {}, false}};
  const auto back = read_ok<fail_call>(to_json(cut));
  EXPECT_EQ(back.failure.message, "caf\xEF\xBF\xBD");
  EXPECT_EQ(back.failure.backtrace, std::string("\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD|\0", 11));
}

}  // namespace
}  // namespace sluice::jobs::json::codec_test
