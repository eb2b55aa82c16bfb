#include "jobs/worker/worker.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "jobs/worker/testing/worker_fixture.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/latch.hpp"

namespace sluice::jobs::worker_test {
namespace {

using namespace std::chrono_literals;
using sluice::testing::eventually;

struct thumbnail {
  std::string url;
  int width = 320;

  static constexpr auto fields =
      std::tuple{field("url", &thumbnail::url), optional_field("width", &thumbnail::width)};
};

struct size {
  int width = 0;
  int height = 0;

  static constexpr auto fields =
      std::tuple{field("width", &size::width), field("height", &size::height)};
};

using Worker = testing::worker_test;

// ---- handlers

TEST_F(Worker, ReadsTypedArgumentsAndKeepsTheValueAsTheResult) {
  w().handle("thumbnail", [](const thumbnail& t, job_context& ctx) {
    EXPECT_EQ(t.url, "a.png");
    EXPECT_EQ(ctx.attempt(), 1U);
    EXPECT_EQ(ctx.kind(), "thumbnail");
    EXPECT_EQ(ctx.queue(), "default");
    EXPECT_EQ(ctx.metadata(), R"({"by":"ada"})");
    return size{t.width, t.width / 2};
  });
  w().start();
  const job_id id = source_.offer({.kind = "thumbnail",
                                   .args = encode(thumbnail{.url = "a.png", .width = 64}),
                                   .metadata = R"({"by":"ada"})"});
  wait_until_ended(id);
  EXPECT_EQ(source_.ended(id), "acked");
  EXPECT_EQ(source_.last_end(id).value, payload{R"({"width":64,"height":32})"});
}

TEST_F(Worker, CallsHandlersOfEveryForm) {
  w().handle("none", [] {});
  w().handle("context", [](job_context& ctx) { return ctx.id(); });
  w().handle("raw", [](const payload& p) { return p.data.size(); });
  w().handle(
      "numbers", +[](const std::vector<int>& n) { return n.back(); });
  w().handle("as_it_is", [](const payload& p) { return payload{p.data, content_type::bytes}; });
  w().handle("checked", [](int n) -> result<int> {
    if (n < 0) return error{error_code::too_large, "too small, rather"};
    return n + 1;
  });
  w().handle("unchecked", [](bool) -> void_result { return done{}; });
  w().start();
  const job_id none = source_.offer({.kind = "none", .args = {"not even JSON"}});
  const job_id context = source_.offer({.kind = "context"});
  const job_id raw = source_.offer({.kind = "raw", .args = {"12345", content_type::bytes}});
  const job_id numbers = source_.offer({.kind = "numbers", .args = {"[1,2,3]"}});
  const job_id as_it_is = source_.offer({.kind = "as_it_is", .args = {"x"}});
  const job_id good = source_.offer({.kind = "checked", .args = {"1"}});
  const job_id bad = source_.offer({.kind = "checked", .args = {"-1"}});
  const job_id nothing = source_.offer({.kind = "unchecked", .args = {"true"}});
  eventually([&] { return source_.ended_jobs() == 8; });
  EXPECT_EQ(source_.last_end(none).value, std::nullopt);
  EXPECT_EQ(source_.last_end(context).value, payload{std::to_string(context)});
  EXPECT_EQ(source_.last_end(raw).value, payload{"5"});
  EXPECT_EQ(source_.last_end(numbers).value, payload{"3"});
  EXPECT_EQ(source_.last_end(as_it_is).value, (payload{"x", content_type::bytes}));
  EXPECT_EQ(source_.last_end(good).value, payload{"2"});
  EXPECT_EQ(source_.ended(bad), "failed");
  EXPECT_EQ(source_.last_end(bad).why.type, "too_large");
  EXPECT_EQ(source_.last_end(bad).why.message, "too small, rather");
  EXPECT_EQ(source_.ended(nothing), "acked");
}

TEST_F(Worker, RunsCoroutinesWithoutHoldingAThread) {
  constexpr std::size_t many = 200;
  options_.concurrency = many;
  event go;
  latch begun(many);
  w().handle("wait", [&](const int& n) -> task<int> {
    begun.count_down();
    (void)co_await go.async_wait();
    co_return n * 2;
  });
  w().start();
  std::vector<job_id> ids;
  for (std::size_t i = 0; i < many; ++i) {
    ids.push_back(source_.offer({.kind = "wait", .args = encode(static_cast<int>(i))}));
  }
  begun.wait();  // all at once: more than there are threads
  go.set();
  eventually([&] { return source_.ended_jobs() == many; });
  EXPECT_EQ(source_.last_end(ids[21]).value, payload{"42"});
}

TEST_F(Worker, ReportsAnExceptionAsTheFailure) {
  w().handle("throw", [] { throw std::out_of_range("no such row"); });
  w().handle("number", [] { throw 42; });
  w().handle("coroutine", []() -> task<> {
    co_await this_task::yield();
    throw std::logic_error("in the middle");
  });
  w().handle("nested", [] {
    try {
      throw std::runtime_error("connection refused");
    } catch (...) {
      std::throw_with_nested(std::invalid_argument("cannot load the customer"));
    }
  });
  w().start();
  const job_id thrown = source_.offer({.kind = "throw"});
  const job_id number = source_.offer({.kind = "number"});
  const job_id coroutine = source_.offer({.kind = "coroutine"});
  const job_id nested = source_.offer({.kind = "nested"});
  eventually([&] { return source_.ended_jobs() == 4; });
  EXPECT_EQ(source_.last_end(thrown).why.type, "std::out_of_range");
  EXPECT_EQ(source_.last_end(thrown).why.message, "no such row");
  EXPECT_FALSE(source_.last_end(thrown).why.for_good);
  EXPECT_EQ(source_.last_end(number).why.type, "int");
  EXPECT_EQ(source_.last_end(coroutine).why.message, "in the middle");
  EXPECT_EQ(source_.last_end(nested).why.message, "cannot load the customer");
  EXPECT_EQ(source_.last_end(nested).why.backtrace,
            "caused by std::runtime_error: connection refused\n");
  eventually([&] { return w().stats().failed == 4; });
}

TEST_F(Worker, ReportsTheFailureThatAHandlerDefines) {
  w().handle("later", [] {
    throw job_failed({.type = "rate_limited", .message = "try later", .retry_in = 60s});
  });
  w().handle("never", [] { throw job_failed({.message = "no such customer", .for_good = true}); });
  w().start();
  const job_id later = source_.offer({.kind = "later"});
  const job_id never = source_.offer({.kind = "never"});
  eventually([&] { return source_.ended_jobs() == 2; });
  EXPECT_EQ(source_.last_end(later).why.type, "rate_limited");
  EXPECT_EQ(source_.last_end(later).why.retry_in, 60s);
  EXPECT_EQ(source_.last_end(never).why.type, "failed");
  EXPECT_TRUE(source_.last_end(never).why.for_good);
}

TEST_F(Worker, FailsForGoodWhenArgumentsDoNotFitAndNamesThePlace) {
  w().handle("thumbnail", [](const thumbnail&) { ADD_FAILURE() << "the handler was called"; });
  w().start();
  const job_id wrong =
      source_.offer({.kind = "thumbnail", .args = {R"({"url":"a.png","width":"wide"})"}});
  const job_id missing = source_.offer({.kind = "thumbnail", .args = {R"({"width":1})"}});
  eventually([&] { return source_.ended_jobs() == 2; });
  EXPECT_TRUE(source_.last_end(wrong).why.for_good);
  EXPECT_EQ(source_.last_end(wrong).why.type, "bad_arguments");
  EXPECT_TRUE(source_.last_end(wrong).why.message.starts_with("args: width: expected "))
      << source_.last_end(wrong).why.message;
  EXPECT_NE(source_.last_end(missing).why.message.find("the field url is missing"),
            std::string::npos)
      << source_.last_end(missing).why.message;
}

TEST_F(Worker, FailsArgumentsNormallyWhenConfigured) {
  options_.on_bad_arguments = worker_options::refusal::retry;
  w().handle("n", [](int) {});
  w().start();
  const job_id id = source_.offer({.kind = "n", .args = {"\"x\""}});
  wait_until_ended(id);
  EXPECT_EQ(source_.ended(id), "failed");
  EXPECT_FALSE(source_.last_end(id).why.for_good);
}

TEST_F(Worker, FailsAKindThatItHasNoHandlerForWithItsName) {
  w().handle("mail", [] {});
  w().start();
  const job_id id = source_.offer({.kind = "male"});
  wait_until_ended(id);
  EXPECT_EQ(source_.last_end(id).why.type, "unknown_kind");
  EXPECT_EQ(source_.last_end(id).why.message, "worker w1 has no handler for kind \"male\"");
  EXPECT_FALSE(source_.last_end(id).why.for_good);
}

TEST_F(Worker, ReleasesAnUnknownKindWhenConfigured) {
  options_.on_unknown_kind = worker_options::refusal::give_back;
  w().start();
  const job_id id = source_.offer({.kind = "mail"});
  wait_until_ended(id);
  EXPECT_EQ(source_.ended(id), "released");
  EXPECT_EQ(source_.last_end(id).options.delay, 5s);
}

TEST_F(Worker, GivesOtherKindsToTheHandlerForOthers) {
  w().handle("mail", [] { return 1; });
  w().handle_others([](job_context& ctx) { return ctx.kind(); });
  w().start();
  const job_id mail = source_.offer({.kind = "mail"});
  const job_id other = source_.offer({.kind = "other"});
  eventually([&] { return source_.ended_jobs() == 2; });
  EXPECT_EQ(source_.last_end(mail).value, payload{"1"});
  EXPECT_EQ(source_.last_end(other).value, payload{"\"other\""});
}

TEST_F(Worker, FailsForGoodWhenTheResultIsTooLargeToKeep) {
  w().handle("big", [] { return payload{std::string(limits::result_bytes_max + 1, 'x')}; });
  w().start();
  const job_id id = source_.offer({.kind = "big"});
  wait_until_ended(id);
  EXPECT_EQ(source_.last_end(id).why.type, "result_too_large");
  EXPECT_TRUE(source_.last_end(id).why.for_good);
}

// ---- leasing

TEST_F(Worker, LeasesNoMoreThanItsFreeSlots) {
  options_.concurrency = 2;
  event go;
  latch two(2);
  w().handle("wait", [&] {
    if (two.try_wait()) return;
    two.count_down();
    go.wait();
  });
  for (int i = 0; i < 5; ++i) source_.offer({.kind = "wait"});
  w().start();
  two.wait();
  EXPECT_EQ(source_.leases_asked(), 1U);
  EXPECT_EQ(w().stats().running, 2U);
  EXPECT_EQ(w().stats().waiting, 0U);
  go.set();
  eventually([&] { return source_.ended_jobs() == 5; });
  EXPECT_EQ(source_.most_asked(), 2U);
}

TEST_F(Worker, PrefetchesJobs) {
  options_.concurrency = 1;
  options_.prefetch = 3;
  event go;
  event begun;
  w().handle("wait", [&] {
    begun.set();
    go.wait();
  });
  for (int i = 0; i < 6; ++i) source_.offer({.kind = "wait"});
  w().start();
  begun.wait();
  eventually([&] { return w().stats().waiting == 3; });
  EXPECT_EQ(w().stats().running, 1U);
  go.set();
  eventually([&] { return source_.ended_jobs() == 6; });
}

TEST_F(Worker, LeasesAgainAfterACallWithoutJobs) {
  w().start();
  eventually([&] { return source_.leases_asked() == 1 && time_.timers().pending() > 0; });
  time_.advance(30s);
  eventually([&] { return source_.leases_asked() == 2; });
  EXPECT_EQ(count(worker_event::event_kind::source_unavailable), 0U);
}

TEST_F(Worker, BacksOffWhileTheSourceIsUnavailableAndResumesAfterwards) {
  source_.break_down(error{error_code::unavailable, "connection refused"});
  w().handle("mail", [] {});
  w().start();
  // 100 ms, 200 ms, 400 ms and so on up to 10 s, each at least half: about twelve in a minute.
  for (int ms = 0; ms < 60'000; ms += 50) {
    eventually([&] { return time_.timers().pending() > 0; });
    time_.advance(50ms);
  }
  const std::size_t tries = source_.leases_asked();
  EXPECT_GE(tries, 6U);
  EXPECT_LE(tries, 20U);
  EXPECT_EQ(count(worker_event::event_kind::source_unavailable), 1U);
  EXPECT_EQ(message_of(worker_event::event_kind::source_unavailable), "connection refused");
  source_.break_down({});
  const job_id id = source_.offer({.kind = "mail"});
  eventually([&] { return time_.timers().pending() > 0; });
  time_.advance(10s);
  wait_until_ended(id);
  EXPECT_EQ(count(worker_event::event_kind::source_back), 1U);
}

// ---- keeping leases

TEST_F(Worker, ExtendsALeaseAtAThirdOfItsTime) {
  event go;
  event begun;
  w().handle("long", [&] {
    begun.set();
    go.wait();
  });
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun.wait();
  time_.advance(19s);
  EXPECT_EQ(source_.extensions(), 0U);
  for (std::size_t beat = 1; beat <= 20; ++beat) {  // far beyond the first lease
    time_.advance(beat == 1 ? 1s : 20s);
    eventually([&] { return source_.extensions() == beat; });
    eventually([&] { return w().stats().extend_calls == beat; });
    // The reply has reached the coordinator when the next extension is scheduled.
    eventually([&] { return time_.timers().pending() >= 2; });
  }
  go.set();
  wait_until_ended(id);
  EXPECT_EQ(source_.ended(id), "acked");
}

TEST_F(Worker, CountsALeaseFromTheRequestOfItsExtension) {
  options_.lease_for = 60s;
  event go;
  event begun;
  w().handle("long", [&] {
    begun.set();
    go.wait();
  });
  source_.hold_extensions();
  w().start();
  const job_id id = source_.offer({.kind = "long"});
  begun.wait();
  time_.advance(20s);
  eventually([&] { return source_.extensions() == 1; });
  time_.advance(30s);  // the lease lasts until 80 s
  source_.answer_extensions();
  // The next extension was due at 40 s.
  eventually([&] { return source_.extensions() == 2; }, "an extension at once");
  go.set();
  wait_until_ended(id);
  EXPECT_EQ(source_.ended(id), "acked");
}

}  // namespace
}  // namespace sluice::jobs::worker_test
