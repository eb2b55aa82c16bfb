// Tests of the ledger itself: it finds every kind of violation and accepts all permitted histories.

#include "tests/crash/ledger.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sluice::crash::ledger_test {
namespace {

class ledger_test : public ::testing::Test {
 protected:
  token push(answer outcome, const std::string& key = {}) {
    const auto id = book.new_token();
    book.pushing(id, contents(id), {.key = key});
    if (outcome != answer::none) book.pushed(id, outcome);
    return id;
  }
  void lease(token id) { book.leased(id, contents(id)); }
  void ack(token id, answer outcome = answer::yes) {
    book.acking(id);
    book.acked(id, outcome);
  }
  void fail(token id, answer outcome = answer::yes) {
    book.failing(id);
    book.failed(id, outcome);
  }
  void bury(token id, answer outcome = answer::yes) {
    book.burying(id);
    book.buried(id, outcome);
  }
  static std::string contents(token id) { return "args of " + std::to_string(id); }

  // Expects exactly `count` findings, all of this kind.
  void expect(std::uint64_t verdict::*kind, std::uint64_t count) {
    const auto found = book.judge();
    EXPECT_EQ(found.*kind, count) << found.to_string();
    const auto all = found.lost + found.unexpected + found.doubled + found.revived + found.twins +
                     found.denied + found.early;
    EXPECT_EQ(all, count) << found.to_string();
    EXPECT_EQ(found.ok(), count == 0);
    EXPECT_EQ(found.findings.size(), count);
  }
  void expect_ok() { expect(&verdict::lost, 0); }

  ledger book;
};

TEST_F(ledger_test, AJobDeliveredBeforeItsPrerequisitesHaveEndedIsEarly) {
  const auto first = push(answer::yes);
  const auto refused = push(answer::no);
  const auto second = push(answer::yes);
  const auto callback = book.new_token();
  book.pushing(callback, contents(callback), {.after = {first, refused, second}});
  book.pushed(callback, answer::yes);
  lease(first);
  ack(first);
  lease(second);
  lease(callback);
  ack(second);
  ack(callback);
  expect(&verdict::early, 1);
  EXPECT_EQ(book.judge().called, 1U);
}

TEST_F(ledger_test, AJobDeliveredAfterItsPrerequisitesHaveEndedIsFine) {
  const auto first = push(answer::yes);
  const auto unanswered = push(answer::none);
  const auto callback = book.new_token();
  book.pushing(callback, contents(callback), {.after = {first, unanswered}});
  book.pushed(callback, answer::yes);
  lease(first);
  ack(first);
  lease(callback);
  ack(callback);
  expect_ok();
}

TEST_F(ledger_test, AJobThatIsPushedLeasedAndAckedIsFine) {
  const auto id = push(answer::yes);
  lease(id);
  ack(id);
  expect_ok();
  const auto found = book.judge();
  EXPECT_EQ(found.attempted, 1U);
  EXPECT_EQ(found.acknowledged, 1U);
  EXPECT_EQ(found.leases, 1U);
  EXPECT_EQ(found.done, 1U);
}

TEST_F(ledger_test, AnAcknowledgedJobThatIsNeverDeliveredIsLost) {
  const auto id = push(answer::yes);
  book.crashed();
  expect(&verdict::lost, 1);
  EXPECT_EQ(book.judge().lost_jobs, std::vector{id});
}

TEST_F(ledger_test, AJobLeasedOnlyBeforeTheCrashIsLost) {
  lease(push(answer::yes));
  book.crashed();
  expect(&verdict::lost, 1);
}

TEST_F(ledger_test, AFailedJobMustBeDeliveredAgain) {
  const auto one = push(answer::yes);
  const auto two = push(answer::yes);
  lease(one);
  lease(two);
  fail(one);
  fail(two, answer::none);
  book.crashed();
  expect(&verdict::lost, 2);
}

TEST_F(ledger_test, AJobWithARejectedAckMustBeDeliveredAgain) {
  const auto id = push(answer::yes);
  lease(id);
  ack(id, answer::no);
  expect(&verdict::lost, 1);
}

TEST_F(ledger_test, AnUnansweredAckMayHaveBeenExecuted) {
  const auto one = push(answer::yes);
  const auto two = push(answer::yes);
  for (const auto id : {one, two}) {
    lease(id);
    ack(id, answer::none);
  }
  book.crashed();
  lease(two);
  ack(two);
  expect_ok();
  EXPECT_EQ(book.judge().redelivered, 1U);
}

TEST_F(ledger_test, AnUnansweredAckDoesNotCountAfterAnotherDelivery) {
  const auto id = push(answer::yes);
  lease(id);
  ack(id, answer::none);
  book.crashed();
  lease(id);
  book.crashed();
  expect(&verdict::lost, 1);
}

TEST_F(ledger_test, AnUnansweredPushMayHaveBeenExecuted) {
  push(answer::none);
  const auto id = push(answer::none);
  book.crashed();
  lease(id);
  ack(id);
  expect_ok();
  EXPECT_EQ(book.judge().unanswered, 2U);
}

TEST_F(ledger_test, AJobThatWasNeverPushedIsUnexpected) {
  book.leased(77, "x");
  expect(&verdict::unexpected, 1);
}

TEST_F(ledger_test, ATokenThatWasNotPushedIsUnexpected) {
  const auto id = book.new_token();
  lease(id);
  expect(&verdict::unexpected, 1);
}

TEST_F(ledger_test, OtherContentsAreUnexpected) {
  const auto id = push(answer::none);
  book.leased(id, "args of another job");
  expect(&verdict::unexpected, 1);
}

TEST_F(ledger_test, ARejectedJobIsUnexpectedBeforeAndAfterTheRejectionIsRead) {
  lease(push(answer::no));
  const auto id = push(answer::none);
  lease(id);
  book.pushed(id, answer::no);
  expect(&verdict::unexpected, 2);
}

TEST_F(ledger_test, AJobLeasedAtACrashMayBeRedelivered) {
  const auto id = push(answer::yes);
  lease(id);
  book.crashed();
  lease(id);
  ack(id);
  expect_ok();
  EXPECT_EQ(book.judge().redelivered, 1U);
}

TEST_F(ledger_test, TwoLeasesInOneLifeAreDoubled) {
  const auto one = push(answer::yes);
  const auto two = push(answer::yes);
  lease(one);
  lease(one);
  ack(one);
  lease(two);
  ack(two, answer::none);
  lease(two);
  ack(two);
  expect(&verdict::doubled, 2);
}

TEST_F(ledger_test, AFailedJobMayBeDeliveredAgainInTheSameLife) {
  const auto id = push(answer::yes);
  lease(id);
  book.failing(id);
  lease(id);  // another worker was faster than the answer
  book.failed(id, answer::yes);
  ack(id);
  expect_ok();
  EXPECT_EQ(book.judge().failed, 1U);
}

TEST_F(ledger_test, AJobDeliveredAfterItsAckWasAcknowledgedIsRevived) {
  const auto id = push(answer::yes);
  lease(id);
  ack(id);
  book.crashed();
  lease(id);
  ack(id);
  expect(&verdict::revived, 1);
}

TEST_F(ledger_test, BuriedJobsMustBeDeadAndNoOthers) {
  const auto kept = push(answer::yes);
  const auto unanswered = push(answer::yes);
  const auto gone = push(answer::yes);
  const auto never = push(answer::yes);
  for (const auto id : {kept, unanswered, gone, never}) lease(id);
  bury(kept);
  bury(unanswered, answer::none);
  bury(gone);
  ack(never);
  book.crashed();
  book.found_dead(kept, contents(kept));
  book.found_dead(unanswered, contents(unanswered));
  expect(&verdict::revived, 1);
  book.found_dead(gone, contents(gone));
  expect_ok();
  book.found_dead(never, contents(never));
  expect(&verdict::unexpected, 1);
}

TEST_F(ledger_test, AUniqueKeyIsHeldUntilTheEnd) {
  const auto first = push(answer::yes, "k");
  book.was_duplicate(push(answer::none, "k"));
  lease(first);
  fail(first);
  book.was_duplicate(push(answer::none, "k"));
  lease(first);
  ack(first);
  const auto second = push(answer::yes, "k");
  lease(second);
  ack(second);
  expect_ok();
}

TEST_F(ledger_test, TwoJobsWithOneKeyAreTwins) {
  const auto one = push(answer::yes, "k");
  book.crashed();
  const auto two = push(answer::yes, "k");
  for (const auto id : {one, two}) {
    lease(id);
    ack(id);
  }
  expect(&verdict::twins, 1);
}

TEST_F(ledger_test, AKeyThatMayBeFreeMayBeTaken) {
  const auto one = push(answer::yes, "k");
  lease(one);
  book.acking(one);
  const auto two = push(answer::yes, "k");
  book.acked(one, answer::yes);
  lease(two);
  ack(two);
  expect_ok();
}

TEST_F(ledger_test, ADuplicateOfNothingIsDenied) {
  const auto one = push(answer::yes, "k");
  lease(one);
  ack(one);
  book.was_duplicate(push(answer::none, "k"));
  book.was_duplicate(push(answer::none, "other"));
  book.was_duplicate(push(answer::none));
  expect(&verdict::denied, 3);
}

TEST_F(ledger_test, ADuplicateOfAnUnansweredPushIsFine) {
  push(answer::none, "k");
  book.crashed();
  book.was_duplicate(push(answer::none, "k"));
  expect_ok();
}

TEST_F(ledger_test, AJobDeliveredBeforeItsTimeIsEarly) {
  const auto one = book.new_token();
  book.pushing(one, contents(one), {.not_before = {1000}});
  book.pushed(one, answer::yes);
  const auto two = book.new_token();
  book.pushing(two, contents(two), {.not_before = {1000}});
  book.pushed(two, answer::yes);
  book.leased(one, contents(one), {.came = {999}});
  ack(one);
  book.leased(two, contents(two), {.came = {1000}});
  ack(two);
  expect(&verdict::early, 1);
}

TEST_F(ledger_test, AJobDeliveredDuringThePauseOfItsFailureIsEarly) {
  const auto one = push(answer::yes);
  const auto two = push(answer::yes);
  for (const auto id : {one, two}) {
    lease(id);
    book.failing(id, 0, {1000});
  }
  book.failed(one, answer::yes);
  book.failed(two, answer::none);
  book.crashed();
  for (const auto id : {one, two}) {
    book.leased(id, contents(id), {.came = {999}});
    ack(id);
  }
  expect(&verdict::early, 1);
}

TEST_F(ledger_test, AJobRequestedAndDeliveredAfterItsCancelIsRevived) {
  const auto one = push(answer::yes);
  const auto two = push(answer::yes);
  const auto asked = book.asking();
  for (const auto id : {one, two}) {
    book.calling_off(id);
    book.called_off(id, answer::yes, id == two);
  }
  expect_ok();  // not lost
  for (const auto id : {one, two}) book.leased(id, contents(id), {.asked = asked});
  expect_ok();  // the leases were in progress
  book.crashed();
  for (const auto id : {one, two}) book.leased(id, contents(id), {.asked = book.asking()});
  expect(&verdict::revived, 2);
}

TEST_F(ledger_test, AnUnansweredCancelMayHaveBeenExecutedARejectedOneNot) {
  const auto maybe = push(answer::yes);
  const auto refused = push(answer::yes);
  book.calling_off(maybe);
  book.called_off(maybe, answer::none, false);
  book.calling_off(refused);
  book.called_off(refused, answer::no, false);
  book.crashed();
  expect(&verdict::lost, 1);
  EXPECT_EQ(book.judge().lost_jobs, std::vector{refused});
}

TEST_F(ledger_test, AnUnansweredCancelDoesNotCountAfterADeliveryInALaterLife) {
  const auto id = push(answer::yes);
  book.calling_off(id);
  book.crashed();
  lease(id);
  expect(&verdict::lost, 1);
}

TEST_F(ledger_test, ADeletedJobMayNotBeDead) {
  const auto id = push(answer::yes);
  lease(id);
  bury(id);
  book.calling_off(id);
  book.called_off(id, answer::yes, true);
  expect_ok();
  book.found_dead(id, contents(id));
  expect(&verdict::revived, 1);
}

TEST_F(ledger_test, AJobMayBeDeliveredAgainOnlyIfItsLeaseCanHaveExpired) {
  const auto one = push(answer::yes);
  const auto two = push(answer::yes);
  const auto three = push(answer::yes);
  for (const auto id : {one, two, three}) book.leased(id, contents(id), {.held_until = {1000}});
  book.extending(three, {2000});
  book.extended(three, answer::yes, {2000});
  book.leased(one, contents(one), {.came = {1000}});
  ack(one);
  expect(&verdict::lost, 2);  // they have not ended yet
  EXPECT_EQ(book.judge().expired, 1U);
  for (const auto id : {two, three}) {
    book.leased(id, contents(id), {.came = {id == two ? 999 : 1999}});
    ack(id);
  }
  expect(&verdict::doubled, 2);
}

TEST_F(ledger_test, AnUnansweredExtensionDoesNotMakeALeaseLonger) {
  const auto id = push(answer::yes);
  book.leased(id, contents(id), {.held_until = {1000}});
  book.extending(id, {2000});
  book.leased(id, contents(id), {.came = {1000}});
  ack(id);
  expect_ok();
}

// A worker that is not scheduled for a while records its lease after the next worker's.
TEST_F(ledger_test, ALeaseRecordedLateCountsAsTheEarlierOne) {
  const auto id = push(answer::yes);
  const auto second = book.leased(id, contents(id), {.came = {1000}, .attempt = 2});
  const auto first = book.leased(id, contents(id), {.held_until = {1000}, .attempt = 1});
  book.acking(id, first);
  book.acked(id, answer::no, first);
  book.acking(id, second);
  book.acked(id, answer::yes, second);
  const auto before = book.leased(id, contents(id), {.held_until = {900}, .attempt = 1});
  expect_ok();
  EXPECT_EQ(book.judge().expired, 2U);
  book.acked(id, answer::yes, before);
  expect(&verdict::doubled, 1);
}

TEST_F(ledger_test, AnOpenLeaseRecordedLateIsDoubled) {
  const auto id = push(answer::yes);
  const auto second = book.leased(id, contents(id), {.came = {1000}, .attempt = 2});
  book.leased(id, contents(id), {.held_until = {1001}, .attempt = 1});
  book.acking(id, second);
  book.acked(id, answer::yes, second);
  expect(&verdict::doubled, 1);
}

TEST_F(ledger_test, OnlyTheLastLeaseMayEndAJob) {
  const auto id = push(answer::yes);
  const auto first = book.leased(id, contents(id), {.held_until = {1000}});
  const auto second = book.leased(id, contents(id), {.came = {1000}});
  book.acking(id, first);
  book.acked(id, answer::no, first);
  book.acking(id, second);
  book.acked(id, answer::yes, second);
  expect_ok();
  book.acked(id, answer::yes, first);
  expect(&verdict::doubled, 1);
}

TEST_F(ledger_test, AnAcknowledgedResultMustBeFound) {
  const auto id = push(answer::yes);
  lease(id);
  book.acking(id);
  book.acked(id, answer::yes, 0, "42");
  expect(&verdict::lost, 1);
  book.found_done(id, contents(id), "42");
  expect_ok();
  book.found_done(id, contents(id), "43");
  expect(&verdict::unexpected, 1);
}

TEST_F(ledger_test, ARetriedDeadJobMustBeDeliveredAgain) {
  const auto sure = push(answer::yes);
  const auto maybe = push(answer::yes);
  for (const auto id : {sure, maybe}) {
    lease(id);
    bury(id);
  }
  book.retried(sure, answer::yes);
  book.retried(maybe, answer::none);
  book.crashed();
  book.found_dead(maybe, contents(maybe));
  expect(&verdict::lost, 1);
  lease(sure);
  ack(sure);
  expect_ok();
}

TEST_F(ledger_test, ARetriedDeadJobCountsItsAttemptsFromOne) {
  const auto id = push(answer::yes);
  const auto second = book.leased(id, contents(id), {.attempt = 2});
  book.burying(id, second);
  book.buried(id, answer::yes, second);
  book.retried(id, answer::yes);
  const auto again = book.leased(id, contents(id), {.attempt = 1});
  book.acking(id, again);
  book.acked(id, answer::yes, again);
  expect_ok();
}

TEST_F(ledger_test, AKeyHeldUntilAStartMayNotBeTakenBeforeIt) {
  const push_terms terms{.key = "k", .until = jobs::unique_until::started};
  const auto push_started = [&] {
    const auto id = book.new_token();
    book.pushing(id, contents(id), terms);
    book.pushed(id, answer::yes);
    return id;
  };
  const auto one = push_started();
  const auto asked = book.asking();
  const auto two = push_started();  // a lease of the first may be in progress
  book.leased(one, contents(one), {.asked = asked});
  const auto three = push_started();  // a twin of the second
  for (const auto id : {two, three}) book.leased(id, contents(id), {.asked = book.asking()});
  for (const auto id : {one, two, three}) ack(id);
  expect(&verdict::twins, 1);
}

TEST_F(ledger_test, AKeyHeldForATimeMayNotBeTakenWithinIt) {
  for (const std::int64_t now : {0, 999, 2000}) {
    const auto id = book.new_token();
    book.pushing(id, contents(id),
                 {.key = "k", .until = jobs::unique_until::elapsed, .key_until = {now + 1000}});
    book.pushed(id, answer::yes, {now});
    lease(id);
    ack(id);
  }
  expect(&verdict::twins, 1);
}

TEST_F(ledger_test, FindingsAreLimitedAndCountsAreNot) {
  for (int i = 0; i < 100; ++i) push(answer::yes);
  const auto found = book.judge();
  EXPECT_EQ(found.lost, 100U);
  EXPECT_EQ(found.findings.size(), 20U);
  EXPECT_NE(found.to_string().find("lost 100"), std::string::npos);
}

}  // namespace
}  // namespace sluice::crash::ledger_test
