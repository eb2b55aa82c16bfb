// Reports of messages that were not handled, and of replies that arrived too late.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "sluice/actor/actor_router.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/executor/manual_executor.hpp"

namespace sluice::dead_letter_test {
namespace {

using namespace std::chrono_literals;

struct note {
  int number = 0;
};
struct question {
  using reply = int;
};

class clerk : public actor<clerk, note, question> {
 public:
  void on(note) {}
  int on(question) { return 1; }
};

struct pass_note {
  ref<clerk> receiver;
};
struct pass_question {
  ref<clerk> receiver;
};
class messenger : public actor<messenger, pass_note, pass_question> {
 public:
  void on(pass_note m) { (void)m.receiver.try_send(note{}); }
  task<> on(pass_question m) {
    question q;
    auto asking = m.receiver.async_ask(q);
    try {
      (void)co_await std::move(asking);
    } catch (const actor_error&) {
      // It has ended.
    }
  }
};

// As in "clerk 'anna' (1) note from 2: dropped".
class dead_letter_test : public ::testing::Test {
 protected:
  ~dead_letter_test() override {
    system.stop();
    run();
  }
  void run() {
    while (on.run_all() > 0) {
    }
  }
  static std::string last_part(std::string_view name) {
    return std::string(name.substr(name.rfind(':') + 1));
  }
  actor_system_options options() {
    actor_system_options o;
    o.on_dead_letter = [this](const dead_letter& d) {
      reported.push_back(last_part(d.type) + " '" + std::string(d.name) + "' (" +
                         std::to_string(d.receiver) + ") " + last_part(d.message) +
                         (d.is_request ? "?" : "") + " from " + std::to_string(d.from) + ": " +
                         std::string(to_string(d.why)));
    };
    return o;
  }
  ref<clerk> make(std::string name, mailbox_options m = {}) {
    actor_options o;
    o.name = std::move(name);
    o.mailbox = m;
    return system.spawn_with<clerk>(o);
  }
  using lines = std::vector<std::string>;

  lines reported;
  manual_executor on;
  actor_system system{on, options()};
};

TEST_F(dead_letter_test, NamesTheReceiverAndTheMessage) {
  const auto anna = make("anna");
  anna.stop();
  run();
  EXPECT_EQ(anna.send(note{}), status::closed);
  EXPECT_THROW((void)anna.ask(question{}).get(), actor_error);
  EXPECT_EQ(reported, (lines{"clerk 'anna' (1) note from 0: the actor has ended",
                             "clerk 'anna' (1) question? from 0: the actor has ended"}));
}

TEST_F(dead_letter_test, AnActorWithoutANameHasItsTypeAndNumber) {
  const auto some = system.spawn<clerk>();
  some.stop();
  run();
  EXPECT_EQ(some.send(note{}), status::closed);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_NE(reported[0].find("clerk-1'"), std::string::npos) << reported[0];
}

struct hire {
  using reply = ref<clerk>;
  std::string name;
};
class office;
struct open_branch {
  using reply = ref<office>;
  std::string name;
};
// Has clerks, and offices below it.
class office : public actor<office, hire, open_branch> {
 public:
  ref<clerk> on(hire m) { return spawn_with<clerk>({.name = std::move(m.name)}); }
  ref<office> on(open_branch m) { return spawn_with<office>({.name = std::move(m.name)}); }
};

class dead_letter_path_test : public ::testing::Test {
 protected:
  ~dead_letter_path_test() override {
    system.stop();
    on.run_all();
  }
  template <class To, class M>
  auto ask(const To& receiver, M m) {
    auto answer = receiver.ask(std::move(m));
    on.run_all();
    return answer.get();
  }
  actor_system_options options() {
    actor_system_options o;
    o.on_dead_letter = [this](const dead_letter& d) { paths.emplace_back(d.path); };
    return o;
  }
  using lines = std::vector<std::string>;

  lines paths;
  manual_executor on;
  actor_system system{on, options()};
};

TEST_F(dead_letter_path_test, NamesAllParents) {
  const auto bank = system.spawn_with<office>({.name = "bank"});
  const auto branch = ask(bank, open_branch{"harbour"});
  const auto anna = ask(branch, hire{"anna"});
  anna.stop();
  ASSERT_TRUE(anna.send(note{})) << "its end has not begun";
  on.run_all();
  (void)anna.send(note{});
  EXPECT_EQ(paths, (lines{"/bank/harbour/anna", "/bank/harbour/anna"}));
}

TEST_F(dead_letter_path_test, IsTheSameWhenTheParentsAreDestroyed) {
  ref<clerk> anna;
  {
    const auto bank = system.spawn_with<office>({.name = "bank"});
    anna = ask(ask(bank, open_branch{"harbour"}), hire{"anna"});
    bank.stop();
    on.run_all();
  }
  (void)anna.send(note{});
  system.stop();
  on.run_all();
  (void)anna.send(note{});
  EXPECT_EQ(paths, (lines{"/bank/harbour/anna", "/bank/harbour/anna"}));
}

TEST_F(dead_letter_path_test, HasATypeAndANumberWithoutAName) {
  const auto bank = system.spawn<office>();
  const auto anna = ask(bank, hire{"anna"});
  anna.stop();
  on.run_all();
  (void)anna.send(note{});
  bank.stop();
  on.run_all();
  (void)bank.send(open_branch{"harbour"});
  const std::string above = "/" + bank.name();
  EXPECT_NE(above.find("office-1"), std::string::npos) << above;
  EXPECT_EQ(paths, (lines{above + "/anna", above}));
}

TEST_F(dead_letter_path_test, HasAPathForAnActorThatWasNeverStarted) {
  class last_words : public actor<last_words, note> {
   public:
    explicit last_words(ref<clerk>& born) : born_(born) {}
    void on(note) {}
    void stopping() { born_ = spawn_with<clerk>({.name = "late"}); }

   private:
    ref<clerk>& born_;
  };
  ref<clerk> late;
  system.spawn_with<last_words>({.name = "bank"}, std::ref(late)).stop();
  on.run_all();
  ASSERT_TRUE(late);
  (void)late.send(note{});
  EXPECT_EQ(paths, lines{"/bank/late"});
}

TEST_F(dead_letter_test, NamesTheSender) {
  const auto anna = make("anna");
  const auto bob = system.spawn<messenger>();
  anna.stop();
  run();
  ASSERT_TRUE(bob.send(pass_note{anna}));
  ASSERT_TRUE(bob.send(pass_question{anna}));
  run();
  EXPECT_EQ(reported, (lines{"clerk 'anna' (1) note from 2: the actor has ended",
                             "clerk 'anna' (1) question? from 2: the actor has ended"}));
}

TEST_F(dead_letter_test, AnActorOfAnotherSystemIsNoSenderHere) {
  const auto anna = make("anna");
  anna.stop();
  run();
  {
    actor_system elsewhere(on);
    const auto bob = elsewhere.spawn<messenger>();
    ASSERT_TRUE(bob.send(pass_note{anna}));
    run();
    elsewhere.stop();
    run();
  }
  EXPECT_EQ(reported, (lines{"clerk 'anna' (1) note from 0: the actor has ended"}));
}

TEST_F(dead_letter_test, AnAcceptedMessageThatIsNotHandledHasItsOwnReason) {
  manual_executor aside;
  const auto anna = system.spawn_with<clerk>({.name = "anna", .on = &aside});
  const auto bob = system.spawn<messenger>();
  ASSERT_TRUE(bob.send(pass_note{anna}));
  run();
  auto asked = anna.ask(question{});
  anna.stop();
  aside.run_all();
  run();
  EXPECT_EQ(reported,
            (lines{"clerk 'anna' (1) note from 2: the actor ended before handling it",
                   "clerk 'anna' (1) question? from 0: the actor ended before handling it"}));
  try {
    (void)asked.get();
    FAIL();
  } catch (const actor_error& e) {
    EXPECT_EQ(e.why(), actor_error::terminated);
  }
}

TEST_F(dead_letter_test, AMessageDroppedByAFullMailboxIsReportedWithItsSender) {
  const auto anna = make("anna", {.capacity = 1, .overflow = overflow::drop_oldest});
  manual_executor aside;
  const auto bob = system.spawn_with<messenger>({.on = &aside});
  ASSERT_TRUE(bob.send(pass_note{anna}));
  aside.run_all();
  EXPECT_TRUE(anna.send(note{}));
  EXPECT_EQ(reported, lines{"clerk 'anna' (1) note from 2: dropped by a full mailbox"});
  bob.stop();
  aside.run_all();
}

TEST_F(dead_letter_test, AnActorThatWasNeverStartedHasEnded) {
  system.stop();
  run();
  const auto late = make("late");
  EXPECT_EQ(late.send(note{}), status::closed);
  EXPECT_EQ(reported, lines{"clerk 'late' (1) note from 0: the actor has ended"});
}

TEST_F(dead_letter_test, AMessageThatOutlivesARestartIsNoDeadLetter) {
  struct fall {};
  struct faller : actor<faller, fall, note> {
    void on(fall) { throw std::runtime_error("it fell"); }
    void on(note) {}
  };
  actor_system_options o = options();
  o.on_failure = [](const actor_failure&) {};
  actor_system other(on, o);
  const auto f = other.spawn<faller>();
  ASSERT_TRUE(f.send(fall{}));
  ASSERT_TRUE(f.send(note{}));
  run();
  EXPECT_EQ(reported, lines{});
  other.stop();
  run();
}

// ---- late replies

// Replies when a message makes it reply.
class slow : public actor<slow, question, note> {
 public:
  void on(question, responder<int> asker) { kept_ = std::move(asker); }
  void on(note m) { kept_.reply(m.number); }

 private:
  responder<int> kept_;
};

struct ask_him {
  ref<slow> target;
  wait_limits limits;
};
class asker : public actor<asker, ask_him> {
 public:
  task<> on(ask_him m) {
    question q;
    auto asking = m.target.async_ask(q, m.limits);
    try {
      (void)co_await std::move(asking);
    } catch (const future_error&) {
      // It took too long.
    }
  }
};

class late_reply_test : public ::testing::Test {
 protected:
  ~late_reply_test() override {
    system.stop();
    run();
  }
  void run() {
    while (on.run_all() > 0) {
    }
  }
  actor_system_options options() {
    actor_system_options o;
    o.on_dead_letter = [this](const dead_letter&) { ++dead; };
    o.on_late_reply = [this](const late_reply& r) {
      const auto last = [](std::string_view n) { return std::string(n.substr(n.rfind(':') + 1)); };
      reported.push_back(last(r.type) + " '" + std::string(r.name) + "' (" +
                         std::to_string(r.asked) + ") " + last(r.message) + " for " +
                         std::to_string(r.asker));
    };
    return o;
  }
  void reply(const ref<slow>& target) {
    ASSERT_TRUE(target.send(note{1}));
    run();
  }
  using lines = std::vector<std::string>;

  lines reported;
  int dead = 0;
  manual_clock time;
  manual_executor on;
  actor_system system{on, options()};
};

TEST_F(late_reply_test, IsReportedAndCountedAndIsNoDeadLetter) {
  const auto anna = system.spawn_with<slow>({.name = "anna"});
  auto f = anna.ask(question{}, deadline::after(1s, time));
  run();
  time.advance(1s);
  EXPECT_THROW((void)f.get(), future_error);
  EXPECT_EQ(reported, lines{}) << "there is no reply yet";
  reply(anna);
  EXPECT_EQ(reported, lines{"slow 'anna' (1) question for 0"});
  EXPECT_EQ(system.stats().late_replies, 1U);
  EXPECT_EQ(system.stats().dead_letters, 0U);
  EXPECT_EQ(dead, 0);
}

TEST_F(late_reply_test, IsAlsoReportedAfterAStop) {
  std::stop_source stop;
  const auto anna = system.spawn_with<slow>({.name = "anna"});
  auto f = anna.ask(question{}, stop.get_token());
  run();
  stop.request_stop();
  reply(anna);
  EXPECT_EQ(reported, lines{"slow 'anna' (1) question for 0"});
}

TEST_F(late_reply_test, NamesTheAsker) {
  const auto anna = system.spawn_with<slow>({.name = "anna"});
  const auto bob = system.spawn<asker>();
  ASSERT_TRUE(bob.send(ask_him{anna, deadline::after(1s, time)}));
  run();
  time.advance(1s);
  run();
  reply(anna);
  EXPECT_EQ(reported, lines{"slow 'anna' (1) question for 2"});
}

TEST_F(late_reply_test, OfARouterHasTheNameOfTheRouter) {
  const actor_router<slow> desk(system, {.members = 1, .name = "desk"});
  auto f = desk.ask(question{}, deadline::after(1s, time));
  run();
  time.advance(1s);
  reply(desk.members()[0]);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_NE(reported[0].find("'desk'"), std::string::npos) << reported[0];
}

TEST_F(late_reply_test, RepliesAfterTheFirstOneAreNotLate) {
  const actor_router<slow> desk(system, {.members = 3, .name = "desk"});
  auto f = desk.ask_first(question{}, deadline::after(1s, time));
  run();
  for (const auto& each : desk.members()) reply(each);
  EXPECT_EQ(f.get(), 1);
  EXPECT_EQ(reported, lines{});
  EXPECT_EQ(system.stats().late_replies, 0U);
}

TEST_F(late_reply_test, AllRepliesAfterTheDeadlineAreLate) {
  const actor_router<slow> desk(system, {.members = 2, .name = "desk"});
  auto f = desk.ask_first(question{}, deadline::after(1s, time));
  run();
  time.advance(1s);
  EXPECT_THROW((void)f.get(), future_error);
  for (const auto& each : desk.members()) reply(each);
  EXPECT_EQ(reported.size(), 2U);
  EXPECT_EQ(system.stats().late_replies, 2U);
}

TEST_F(late_reply_test, AReplyInTimeIsNotLate) {
  const auto anna = system.spawn<slow>();
  auto f = anna.ask(question{}, deadline::after(1s, time));
  run();
  reply(anna);
  EXPECT_EQ(f.get(), 1);
  time.advance(1s);
  EXPECT_EQ(reported, lines{});
  EXPECT_EQ(system.stats().late_replies, 0U);
}

TEST_F(late_reply_test, ADroppedResponderIsNoLateReply) {
  const auto anna = system.spawn<slow>();
  auto f = anna.ask(question{}, deadline::after(1s, time));
  run();
  time.advance(1s);
  anna.stop();
  run();
  EXPECT_EQ(reported, lines{});
}

TEST_F(late_reply_test, AResponderInTheArgumentsOfItsActorKeepsNoActorAlive) {
  struct drawer {
    responder<int> kept;
  };
  struct keeper : actor<keeper, question> {
    explicit keeper(std::shared_ptr<drawer> d) : in_(std::move(d)) {}
    void on(question, responder<int> asker) { in_->kept = std::move(asker); }
    std::shared_ptr<drawer> in_;
  };
  auto in = std::make_shared<drawer>();
  const std::weak_ptr<drawer> seen = in;
  {
    const auto k = system.spawn<keeper>(std::move(in));
    auto f = k.ask(question{}, deadline::after(1s, time));
    run();
    k.stop();
    run();
  }
  EXPECT_TRUE(seen.expired()) << "a cycle of owners";
}

TEST_F(late_reply_test, AfterTheEndOfTheSystemIsNotReported) {
  lines late;
  std::optional<responder<int>> kept;
  struct keeper : actor<keeper, question> {
    explicit keeper(std::optional<responder<int>>* k) : kept_(k) {}
    void on(question, responder<int> asker) { kept_->emplace(std::move(asker)); }
    std::optional<responder<int>>* kept_;
  };
  std::optional<future<int>> f;
  {
    actor_system_options o;
    o.on_late_reply = [&](const late_reply&) { late.emplace_back("late"); };
    actor_system other(on, o);
    f = other.spawn<keeper>(&kept).ask(question{}, deadline::after(1s, time));
    run();
    other.stop();
    run();
  }
  time.advance(1s);
  ASSERT_TRUE(kept);
  kept->reply(1);
  EXPECT_EQ(late, lines{});
}

}  // namespace
}  // namespace sluice::dead_letter_test
