// The judge itself: every kind of broken word must be found, and what is allowed must pass.

#include "tests/crash/ledger.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sluice::crash::ledger_test {
namespace {

class ledger_test : public ::testing::Test {
 protected:
  token push(answer how, const std::string& key = {}) {
    const auto it = book.new_token();
    book.pushing(it, contents(it), {.key = key});
    if (how != answer::none) book.pushed(it, how);
    return it;
  }
  void lease(token it) { book.leased(it, contents(it)); }
  void ack(token it, answer how = answer::yes) {
    book.acking(it);
    book.acked(it, how);
  }
  void fail(token it, answer how = answer::yes) {
    book.failing(it);
    book.failed(it, how);
  }
  void bury(token it, answer how = answer::yes) {
    book.burying(it);
    book.buried(it, how);
  }
  static std::string contents(token it) { return "args of " + std::to_string(it); }

  // What is wrong is exactly this.
  void expect(std::uint64_t verdict::*what, std::uint64_t count) {
    const auto found = book.judge();
    EXPECT_EQ(found.*what, count) << found.to_string();
    const auto all = found.lost + found.unexpected + found.doubled + found.revived + found.twins +
                     found.denied + found.early;
    EXPECT_EQ(all, count) << found.to_string();
    EXPECT_EQ(found.ok(), count == 0);
    EXPECT_EQ(found.findings.size(), count);
  }
  void expect_ok() { expect(&verdict::lost, 0); }

  ledger book;
};

TEST_F(ledger_test, AJobThatComesBeforeThoseThatItWaitsForHaveEndedIsEarly) {
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

TEST_F(ledger_test, AJobThatComesAfterAllThatItWaitsForHaveEndedIsFine) {
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
  const auto it = push(answer::yes);
  lease(it);
  ack(it);
  expect_ok();
  const auto found = book.judge();
  EXPECT_EQ(found.attempted, 1U);
  EXPECT_EQ(found.acknowledged, 1U);
  EXPECT_EQ(found.leases, 1U);
  EXPECT_EQ(found.done, 1U);
}

TEST_F(ledger_test, AnAcknowledgedJobThatNeverComesIsLost) {
  const auto it = push(answer::yes);
  book.crashed();
  expect(&verdict::lost, 1);
  EXPECT_EQ(book.judge().lost_jobs, std::vector{it});
}

TEST_F(ledger_test, HavingBeenLeasedBeforeTheCrashIsNoExcuseForBeingLost) {
  lease(push(answer::yes));
  book.crashed();
  expect(&verdict::lost, 1);
}

TEST_F(ledger_test, AJobWhoseFailureWasAnsweredOrNotMustComeAgain) {
  const auto one = push(answer::yes);
  const auto two = push(answer::yes);
  lease(one);
  lease(two);
  fail(one);
  fail(two, answer::none);
  book.crashed();
  expect(&verdict::lost, 2);
}

TEST_F(ledger_test, AJobWhoseAckWasRefusedMustComeAgain) {
  const auto it = push(answer::yes);
  lease(it);
  ack(it, answer::no);
  expect(&verdict::lost, 1);
}

TEST_F(ledger_test, AnUnansweredAckMayHaveHappenedOrNot) {
  const auto one = push(answer::yes);
  const auto two = push(answer::yes);
  for (const auto it : {one, two}) {
    lease(it);
    ack(it, answer::none);
  }
  book.crashed();
  lease(two);
  ack(two);
  expect_ok();
  EXPECT_EQ(book.judge().redelivered, 1U);
}

TEST_F(ledger_test, AnUnansweredAckIsNoExcuseOnceTheJobCameAgain) {
  const auto it = push(answer::yes);
  lease(it);
  ack(it, answer::none);
  book.crashed();
  lease(it);
  book.crashed();
  expect(&verdict::lost, 1);
}

TEST_F(ledger_test, AnUnansweredPushMayHaveHappenedOrNot) {
  push(answer::none);
  const auto it = push(answer::none);
  book.crashed();
  lease(it);
  ack(it);
  expect_ok();
  EXPECT_EQ(book.judge().unanswered, 2U);
}

TEST_F(ledger_test, AJobThatNobodyPushedIsUnexpected) {
  book.leased(77, "x");
  expect(&verdict::unexpected, 1);
}

TEST_F(ledger_test, ATokenThatWasMadeButNotPushedIsUnexpected) {
  const auto it = book.new_token();
  lease(it);
  expect(&verdict::unexpected, 1);
}

TEST_F(ledger_test, OtherContentsAreUnexpected) {
  const auto it = push(answer::none);
  book.leased(it, "args of somebody else");
  expect(&verdict::unexpected, 1);
}

TEST_F(ledger_test, ARefusedJobIsUnexpectedBeforeAndAfterTheRefusalIsRead) {
  lease(push(answer::no));
  const auto it = push(answer::none);
  lease(it);
  book.pushed(it, answer::no);
  expect(&verdict::unexpected, 2);
}

TEST_F(ledger_test, ALeaseOpenAtACrashMayBeGivenAgain) {
  const auto it = push(answer::yes);
  lease(it);
  book.crashed();
  lease(it);
  ack(it);
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

TEST_F(ledger_test, AFailedJobMayComeAgainInTheSameLife) {
  const auto it = push(answer::yes);
  lease(it);
  book.failing(it);
  lease(it);  // another worker was faster than the answer
  book.failed(it, answer::yes);
  ack(it);
  expect_ok();
  EXPECT_EQ(book.judge().failed, 1U);
}

TEST_F(ledger_test, AJobThatComesAfterItsAckWasAcknowledgedIsRevived) {
  const auto it = push(answer::yes);
  lease(it);
  ack(it);
  book.crashed();
  lease(it);
  ack(it);
  expect(&verdict::revived, 1);
}

TEST_F(ledger_test, TheDeadMustBeFoundAndOnlyTheBuriedMayBeDead) {
  const auto kept = push(answer::yes);
  const auto unanswered = push(answer::yes);
  const auto gone = push(answer::yes);
  const auto never = push(answer::yes);
  for (const auto it : {kept, unanswered, gone, never}) lease(it);
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
  for (const auto it : {one, two}) {
    lease(it);
    ack(it);
  }
  expect(&verdict::twins, 1);
}

TEST_F(ledger_test, AKeyThatMayBeFreeMayBeGiven) {
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

TEST_F(ledger_test, AJobThatComesBeforeItsTimeIsEarly) {
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

TEST_F(ledger_test, AJobThatComesBeforeThePauseOfItsFailureIsOverIsEarly) {
  const auto one = push(answer::yes);
  const auto two = push(answer::yes);
  for (const auto it : {one, two}) {
    lease(it);
    book.failing(it, 0, {1000});
  }
  book.failed(one, answer::yes);
  book.failed(two, answer::none);
  book.crashed();
  for (const auto it : {one, two}) {
    book.leased(it, contents(it), {.came = {999}});
    ack(it);
  }
  expect(&verdict::early, 1);
}

TEST_F(ledger_test, AJobThatIsAskedForAndComesAfterItWasCalledOffIsRevived) {
  const auto one = push(answer::yes);
  const auto two = push(answer::yes);
  const auto asked = book.asking();
  for (const auto it : {one, two}) {
    book.calling_off(it);
    book.called_off(it, answer::yes, it == two);
  }
  expect_ok();  // not lost
  for (const auto it : {one, two}) book.leased(it, contents(it), {.asked = asked});
  expect_ok();  // they were on their way
  book.crashed();
  for (const auto it : {one, two}) book.leased(it, contents(it), {.asked = book.asking()});
  expect(&verdict::revived, 2);
}

TEST_F(ledger_test, AnUnansweredCallOffMayHaveHappenedARefusedOneNot) {
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

TEST_F(ledger_test, AnUnansweredCallOffIsNoExcuseOnceTheJobCameInALaterLife) {
  const auto it = push(answer::yes);
  book.calling_off(it);
  book.crashed();
  lease(it);
  expect(&verdict::lost, 1);
}

TEST_F(ledger_test, ADeletedJobMayNotBeAmongTheDead) {
  const auto it = push(answer::yes);
  lease(it);
  bury(it);
  book.calling_off(it);
  book.called_off(it, answer::yes, true);
  expect_ok();
  book.found_dead(it, contents(it));
  expect(&verdict::revived, 1);
}

TEST_F(ledger_test, ALeaseThatCanHaveRunOutMayBeGivenAgainAndOneThatCannotNot) {
  const auto one = push(answer::yes);
  const auto two = push(answer::yes);
  const auto three = push(answer::yes);
  for (const auto it : {one, two, three}) book.leased(it, contents(it), {.held_until = {1000}});
  book.extending(three, {2000});
  book.extended(three, answer::yes, {2000});
  book.leased(one, contents(one), {.came = {1000}});
  ack(one);
  expect(&verdict::lost, 2);  // of which nothing was said yet
  EXPECT_EQ(book.judge().expired, 1U);
  for (const auto it : {two, three}) {
    book.leased(it, contents(it), {.came = {it == two ? 999 : 1999}});
    ack(it);
  }
  expect(&verdict::doubled, 2);
}

TEST_F(ledger_test, AnUnansweredExtensionDoesNotMakeALeaseLonger) {
  const auto it = push(answer::yes);
  book.leased(it, contents(it), {.held_until = {1000}});
  book.extending(it, {2000});
  book.leased(it, contents(it), {.came = {1000}});
  ack(it);
  expect_ok();
}

// A worker that gets no time for a while tells of its lease when another has the job already.
TEST_F(ledger_test, ALeaseThatIsToldOfLateCountsAsTheEarlierOne) {
  const auto it = push(answer::yes);
  const auto second = book.leased(it, contents(it), {.came = {1000}, .attempt = 2});
  const auto first = book.leased(it, contents(it), {.held_until = {1000}, .attempt = 1});
  book.acking(it, first);
  book.acked(it, answer::no, first);
  book.acking(it, second);
  book.acked(it, answer::yes, second);
  const auto before = book.leased(it, contents(it), {.held_until = {900}, .attempt = 1});
  expect_ok();
  EXPECT_EQ(book.judge().expired, 2U);
  book.acked(it, answer::yes, before);
  expect(&verdict::doubled, 1);
}

TEST_F(ledger_test, ALeaseThatIsToldOfLateAndWasOpenIsDoubled) {
  const auto it = push(answer::yes);
  const auto second = book.leased(it, contents(it), {.came = {1000}, .attempt = 2});
  book.leased(it, contents(it), {.held_until = {1001}, .attempt = 1});
  book.acking(it, second);
  book.acked(it, answer::yes, second);
  expect(&verdict::doubled, 1);
}

TEST_F(ledger_test, OnlyTheLastLeaseMayEndAJob) {
  const auto it = push(answer::yes);
  const auto first = book.leased(it, contents(it), {.held_until = {1000}});
  const auto second = book.leased(it, contents(it), {.came = {1000}});
  book.acking(it, first);
  book.acked(it, answer::no, first);
  book.acking(it, second);
  book.acked(it, answer::yes, second);
  expect_ok();
  book.acked(it, answer::yes, first);
  expect(&verdict::doubled, 1);
}

TEST_F(ledger_test, AnAcknowledgedResultMustBeThere) {
  const auto it = push(answer::yes);
  lease(it);
  book.acking(it);
  book.acked(it, answer::yes, 0, "42");
  expect(&verdict::lost, 1);
  book.found_done(it, contents(it), "42");
  expect_ok();
  book.found_done(it, contents(it), "43");
  expect(&verdict::unexpected, 1);
}

TEST_F(ledger_test, ADeadJobThatIsTriedAgainMustComeAgain) {
  const auto sure = push(answer::yes);
  const auto maybe = push(answer::yes);
  for (const auto it : {sure, maybe}) {
    lease(it);
    bury(it);
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

TEST_F(ledger_test, AttemptsAreCountedAnewWhenADeadJobIsTriedAgain) {
  const auto it = push(answer::yes);
  const auto second = book.leased(it, contents(it), {.attempt = 2});
  book.burying(it, second);
  book.buried(it, answer::yes, second);
  book.retried(it, answer::yes);
  const auto again = book.leased(it, contents(it), {.attempt = 1});
  book.acking(it, again);
  book.acked(it, answer::yes, again);
  expect_ok();
}

TEST_F(ledger_test, AKeyThatIsHeldUntilAStartMayNotBeGivenBeforeIt) {
  const push_terms terms{.key = "k", .until = jobs::unique_until::started};
  const auto push_started = [&] {
    const auto it = book.new_token();
    book.pushing(it, contents(it), terms);
    book.pushed(it, answer::yes);
    return it;
  };
  const auto one = push_started();
  const auto asked = book.asking();
  const auto two = push_started();  // the first may be on its way to a worker
  book.leased(one, contents(one), {.asked = asked});
  const auto three = push_started();  // and this is a twin of the second
  for (const auto it : {two, three}) book.leased(it, contents(it), {.asked = book.asking()});
  for (const auto it : {one, two, three}) ack(it);
  expect(&verdict::twins, 1);
}

TEST_F(ledger_test, AKeyThatIsHeldForATimeMayNotBeGivenWithinIt) {
  for (const std::int64_t now : {0, 999, 2000}) {
    const auto it = book.new_token();
    book.pushing(it, contents(it),
                 {.key = "k", .until = jobs::unique_until::elapsed, .key_until = {now + 1000}});
    book.pushed(it, answer::yes, {now});
    lease(it);
    ack(it);
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
