#include "sluice/actor/keyed_actors.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/actor/keyed_actor.hpp"
#include "sluice/actor/memory_actor_store.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/spawn.hpp"

namespace sluice::keyed_actors_test {
namespace {

using namespace std::chrono_literals;

struct add {
  int n;
};
struct total {
  using reply = int;
};
struct durable_add {
  using reply = int;
  int n;
};
struct get_ref {
  using reply = ref<class tally>;
};
struct fall {};
struct stay {};
struct no_save {};
struct leave {};

int alive_now = 0;

class tally
    : public keyed_actor<tally, add, total, durable_add, get_ref, fall, stay, no_save, leave> {
 public:
  tally() { ++alive_now; }
  ~tally() { --alive_now; }
  void on(add m) { sum_ += m.n; }
  int on(total) { return sum_; }
  task<int> on(durable_add m) {
    sum_ += m.n;
    co_await save_now();
    co_return sum_;
  }
  ref<tally> on(get_ref) { return self(); }
  void on(fall) { throw std::runtime_error("it fell"); }
  void on(stay) { stays_ = true; }
  void on(no_save) { breaks_ = true; }
  void on(leave) { stop_self(); }

  std::string save() const {
    if (breaks_) throw std::runtime_error("the state has no text form");
    return std::to_string(sum_);
  }
  void load(std::string_view bytes) { sum_ = std::stoi(std::string(bytes)); }
  bool may_passivate() const { return !stays_; }

 private:
  int sum_ = 0;
  bool stays_ = false;
  bool breaks_ = false;
};

struct failure {
  std::string key;
  keyed_step step;
};

// One thread, and a manual clock.
class keyed_actors_test : public ::testing::Test {
 protected:
  void open(keyed_options o = {}) {
    o.store = &store_;
    o.type = "tally";
    if (o.idle == keyed_options{}.idle) o.idle = 10s;
    o.on_failure = [this](const keyed_failure& f) {
      failures_.push_back({std::string(f.key), f.step});
    };
    tallies_.emplace(*system_, std::move(o));
  }
  void SetUp() override {
    actor_system_options o;
    o.time = &clock_;
    o.on_failure = [](const actor_failure&) {};
    o.on_dead_letter = [this](const dead_letter&) { ++dead_letters_; };
    system_.emplace(executor_, std::move(o));
  }
  void TearDown() override {
    store_.release();
    tallies_.reset();
    end_system();
    EXPECT_EQ(alive_now, 0);
  }
  void end_system() {
    if (!system_) return;
    system_->close();
    run();
    EXPECT_EQ(system_->stats().live, 0U);
    system_.reset();
  }
  void run() { executor_.run_all(); }
  void wait(std::chrono::nanoseconds time) {
    clock_.advance(time);
    run();
  }
  keyed_ref<tally> of(std::string_view key) { return tallies_->of(key); }
  void put(std::string_view key, int n) {
    ASSERT_TRUE(of(key).send(add{n}));
    run();
  }
  int sum(std::string_view key) {
    auto f = of(key).ask(total{});
    run();
    return f.get();
  }
  std::string stored(std::string_view key) {
    return store_.load("tally", std::string(key)).get().value_or("nothing");
  }
  std::size_t live() { return tallies_->stats().live; }

  manual_clock clock_;
  manual_executor executor_;
  memory_actor_store store_;
  int dead_letters_ = 0;
  std::vector<failure> failures_;
  std::optional<actor_system> system_;
  std::optional<keyed_actors<tally>> tallies_;
};

TEST_F(keyed_actors_test, AMessageActivatesTheActorOfItsKey) {
  open();
  put("a", 1);
  put("a", 2);
  put("b", 10);
  EXPECT_EQ(sum("a"), 3);
  EXPECT_EQ(sum("b"), 10);
  EXPECT_EQ(live(), 2U);
  EXPECT_EQ(alive_now, 2);
}

TEST_F(keyed_actors_test, TheSystemFindsActorsByTypeAndKey) {
  open();
  put("a", 4);
  auto f = system_->of<tally>("a").ask(total{});
  run();
  EXPECT_EQ(f.get(), 4);
  EXPECT_EQ(of("a"), system_->of<tally>("a"));
}

TEST_F(keyed_actors_test, AnIdleActorIsSavedPassivatedAndActivatedAgain) {
  open();
  put("a", 5);
  wait(9s);
  EXPECT_EQ(alive_now, 1);
  wait(1s);
  EXPECT_EQ(alive_now, 0);
  EXPECT_EQ(live(), 0U);
  EXPECT_EQ(stored("a"), "5");
  EXPECT_EQ(system_->stats().live, 1U);  // their parent
  EXPECT_EQ(sum("a"), 5);
  EXPECT_EQ(tallies_->stats().passivations, 1U);
}

TEST_F(keyed_actors_test, UseKeepsAnActorInMemory) {
  open();
  for (int i = 0; i < 5; ++i) {
    put("a", 1);
    wait(6s);
    EXPECT_EQ(alive_now, 1);
  }
  EXPECT_EQ(tallies_->stats().loads, 1U);
  wait(4s);
  EXPECT_EQ(alive_now, 0);
}

TEST_F(keyed_actors_test, AMessageToAPlainRefIsUseToo) {
  open();
  put("a", 1);
  const ref<tally> plain = of("a").now();
  wait(9s);
  ASSERT_TRUE(plain.send(add{1}));
  ASSERT_TRUE(plain.send(add{1}));
  run();
  wait(1s);
  EXPECT_EQ(alive_now, 1);
  wait(10s);
  EXPECT_EQ(alive_now, 0);
}

TEST_F(keyed_actors_test, APlainRefActivatesTheActor) {
  open();
  put("a", 1);
  auto f = of("a").ask(get_ref{});
  run();
  const ref<tally> itself = f.get();
  wait(10s);
  ASSERT_EQ(alive_now, 0);
  ASSERT_TRUE(itself.send(add{6}));
  run();
  EXPECT_EQ(sum("a"), 7);
  wait(10s);
  ASSERT_EQ(alive_now, 0);
  auto again = itself.ask(total{});
  run();
  EXPECT_EQ(again.get(), 7);
  EXPECT_EQ(dead_letters_, 0);
}

TEST_F(keyed_actors_test, ACoroutineThatSendsThroughAPlainRefWaitsForCapacityInTheSuccessor) {
  keyed_options o;
  o.each.mailbox.capacity = 1;
  open(std::move(o));
  put("a", 1);
  auto f = of("a").ask(get_ref{});
  run();
  const ref<tally> itself = f.get();
  wait(10s);
  ASSERT_EQ(alive_now, 0);
  store_.hold();
  ASSERT_TRUE(itself.send(add{1})) << "to the successor, which is loaded, and then full";
  const auto send_more = [](ref<tally> receiver) -> task<status> {
    const status outcome = co_await receiver.async_send(add{10});
    co_return outcome;
  };
  manual_executor tasks;
  auto first = sluice::spawn(tasks, send_more(itself));
  auto second = sluice::spawn(tasks, send_more(itself));
  tasks.run_all();
  run();
  EXPECT_FALSE(first.is_ready());
  EXPECT_FALSE(second.is_ready());
  EXPECT_EQ(of("a").now().waiting(), 2U);
  store_.release();
  for (int i = 0; i < 3; ++i) {
    run();
    tasks.run_all();
  }
  EXPECT_EQ(first.get(), status::ok);
  EXPECT_EQ(second.get(), status::ok);
  EXPECT_EQ(sum("a"), 22);
}

TEST_F(keyed_actors_test, AboveLiveMaxTheLeastRecentlyUsedIsPassivated) {
  open({.live_max = 2});
  put("a", 1);
  put("b", 2);
  put("a", 1);
  put("c", 3);
  EXPECT_EQ(live(), 2U);
  EXPECT_EQ(stored("b"), "2");
  EXPECT_EQ(stored("a"), "nothing");
  EXPECT_EQ(sum("b"), 2);
  EXPECT_EQ(stored("a"), "2");
  EXPECT_EQ(live(), 2U);
}

TEST_F(keyed_actors_test, AtTheLimitAKeyNotInMemoryBehavesLikeAFullMailbox) {
  open({.live_max = 1, .live_limit = 2});
  store_.hold();  // nothing can be loaded, so nothing can be passivated
  ASSERT_TRUE(of("a").try_send(add{1}));
  ASSERT_TRUE(of("b").try_send(add{1}));
  run();
  EXPECT_EQ(of("c").try_send(add{1}), status::full);
  EXPECT_EQ(of("c").send(add{1}, 1ms), status::timed_out);
  EXPECT_TRUE(of("a").try_send(add{1})) << "an actor in memory";
  auto f = of("c").ask(total{}, {deadline::after(1ms)});
  EXPECT_THROW((void)f.get(), actor_error);
  std::jthread sender([&] { EXPECT_TRUE(of("c").send(add{7})); });
  store_.release();
  while (store_.size() == 0) {
    clock_.advance(10ms);
    run();
  }
  sender.join();
  EXPECT_EQ(sum("c"), 7);
  EXPECT_EQ(sum("a"), 2);
}

TEST_F(keyed_actors_test, AMessageDuringTheSaveKeepsTheActor) {
  open();
  put("a", 1);
  store_.hold();
  wait(10s);
  ASSERT_EQ(store_.held(), 1U);
  ASSERT_TRUE(of("a").send(add{1}));
  run();
  EXPECT_EQ(of("a").now().queued(), 1U) << "handled during the save of the previous state";
  store_.release();
  run();
  EXPECT_EQ(alive_now, 1);
  EXPECT_EQ(stored("a"), "1");
  EXPECT_EQ(sum("a"), 2);
  EXPECT_EQ(tallies_->stats().loads, 1U);
  wait(10s);
  EXPECT_EQ(stored("a"), "2");
}

TEST_F(keyed_actors_test, AMessageAfterTheSaveWaitsForTheEndAndActivatesAgain) {
  open();
  put("a", 1);
  store_.hold();
  wait(10s);
  store_.release();
  // One step at a time: at every moment the message is not lost, and there are never two actors.
  const ref<tally> before = of("a").now();
  int n = 0;
  while (executor_.run_one()) {
    ASSERT_TRUE(before.send(add{1}));
    ++n;
    ASSERT_LE(alive_now, 1);
    if (n > 20) break;
  }
  run();
  EXPECT_GT(n, 0);
  EXPECT_EQ(sum("a"), 1 + n);
  EXPECT_EQ(dead_letters_, 0);
}

TEST_F(keyed_actors_test, TheSuccessorIsLoadedAfterThePredecessorIsDestroyed) {
  open();
  put("a", 1);
  store_.hold();
  of("a").now().close();
  run();
  ASSERT_EQ(store_.held(), 1U);  // its last save
  ASSERT_TRUE(of("a").send(add{1}));
  run();
  EXPECT_EQ(store_.held(), 1U);
  EXPECT_EQ(alive_now, 1);
  store_.release();
  run();
  EXPECT_EQ(sum("a"), 2);
}

TEST_F(keyed_actors_test, MessagesWaitInOrderDuringTheLoad) {
  open({.each = {.mailbox = {.capacity = 3, .overflow = overflow::reject}}});
  store_.hold();
  const auto a = of("a");
  EXPECT_TRUE(a.send(add{1}));
  EXPECT_TRUE(a.send(add{2}));
  auto f = a.ask(total{});
  EXPECT_EQ(a.send(add{4}), status::full);
  run();
  EXPECT_FALSE(f.is_ready());
  EXPECT_EQ(alive_now, 0);
  store_.release();
  run();
  EXPECT_EQ(f.get(), 3);
}

TEST_F(keyed_actors_test, AFailedSaveKeepsTheActorAndIsRetried) {
  open();
  put("a", 3);
  store_.fail_with(std::make_exception_ptr(actor_store_error("the disk is full")));
  wait(10s);
  EXPECT_EQ(alive_now, 1);
  ASSERT_EQ(failures_.size(), 1U);
  EXPECT_EQ(failures_[0].key, "a");
  EXPECT_EQ(failures_[0].step, keyed_step::save);
  EXPECT_EQ(sum("a"), 3);
  store_.fail_with(nullptr);
  wait(10s);
  EXPECT_EQ(alive_now, 0);
  EXPECT_EQ(stored("a"), "3");
}

TEST_F(keyed_actors_test, AnExceptionOfSaveIsAFailedSave) {
  open();
  put("a", 3);
  ASSERT_TRUE(of("a").send(no_save{}));
  wait(10s);
  wait(10s);
  EXPECT_EQ(alive_now, 1);
  ASSERT_EQ(failures_.size(), 2U);
  EXPECT_EQ(failures_[1].step, keyed_step::save);
}

TEST_F(keyed_actors_test, AFailedLoadIsReportedToTheAskerAndTheNextMessageTriesAgain) {
  open();
  put("a", 3);
  wait(10s);
  store_.fail_with(std::make_exception_ptr(actor_store_error("no such disk")));
  auto f = of("a").ask(total{});
  ASSERT_TRUE(of("a").send(add{1}));
  run();
  EXPECT_THROW((void)f.get(), actor_store_error);
  EXPECT_EQ(dead_letters_, 2);
  ASSERT_EQ(failures_.size(), 1U);
  EXPECT_EQ(failures_[0].step, keyed_step::load);
  EXPECT_EQ(live(), 0U);
  store_.fail_with(nullptr);
  EXPECT_EQ(sum("a"), 3);
}

TEST_F(keyed_actors_test, AnExceptionOfLoadIsAFailedLoad) {
  open();
  store_.save("tally", "a", "not a number").get();
  auto f = of("a").ask(total{});
  run();
  EXPECT_THROW((void)f.get(), std::invalid_argument);
  EXPECT_EQ(alive_now, 0);
  EXPECT_EQ(stored("a"), "not a number");
  store_.save("tally", "a", "8").get();
  EXPECT_EQ(sum("a"), 8);
}

TEST_F(keyed_actors_test, AFailureRestartsFromTheLastSavedState) {
  open();
  put("a", 3);
  wait(10s);
  put("a", 4);
  ASSERT_TRUE(of("a").send(fall{}));
  ASSERT_TRUE(of("a").send(add{1}));
  run();
  EXPECT_EQ(sum("a"), 4);
  EXPECT_EQ(system_->stats().restarts, 1U);
}

TEST_F(keyed_actors_test, AnActorStoppedForAFailureIsNotSaved) {
  open({.failing = {.action = directive::stop}});
  put("a", 3);
  wait(10s);
  put("a", 4);
  ASSERT_TRUE(of("a").send(fall{}));
  run();
  EXPECT_EQ(alive_now, 0);
  EXPECT_EQ(stored("a"), "3");
  EXPECT_EQ(sum("a"), 3);
}

TEST_F(keyed_actors_test, SaveNowIsDurableBeforeTheReply) {
  open();
  store_.hold();
  auto f = of("a").ask(durable_add{2});
  run();
  store_.release();  // the load
  run();
  EXPECT_EQ(f.get(), 2);
  EXPECT_EQ(stored("a"), "2");
  store_.hold();
  auto g = of("a").ask(durable_add{2});
  run();
  EXPECT_FALSE(g.is_ready());
  store_.release();
  run();
  EXPECT_EQ(g.get(), 4);
}

TEST_F(keyed_actors_test, MayPassivateFalseKeepsItInMemory) {
  open();
  put("a", 1);
  ASSERT_TRUE(of("a").send(stay{}));
  wait(10s);
  wait(10s);
  EXPECT_EQ(alive_now, 1);
  EXPECT_EQ(stored("a"), "nothing");
}

TEST_F(keyed_actors_test, AStopSavesTheActor) {
  open();
  put("a", 1);
  ASSERT_TRUE(of("a").send(leave{}));
  run();
  EXPECT_EQ(alive_now, 0);
  EXPECT_EQ(stored("a"), "1");
  EXPECT_EQ(sum("a"), 1);
}

TEST_F(keyed_actors_test, TheEndOfTheSystemSavesAllActors) {
  open();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(of(std::to_string(i)).send(add{i}));
  tallies_.reset();
  end_system();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(stored(std::to_string(i)), std::to_string(i));
}

TEST_F(keyed_actors_test, CloseSavesAllActorsAtOnceAndAcceptsNoMessages) {
  open();
  const auto a = of("a");
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(of(std::to_string(i)).send(add{i}));
  run();
  store_.hold();
  auto ended = tallies_->ended();
  tallies_->close();
  run();
  EXPECT_EQ(store_.held(), 20U);
  EXPECT_FALSE(ended.is_ready());
  store_.release();
  run();
  EXPECT_TRUE(ended.is_ready());
  EXPECT_EQ(store_.size(), 20U);
  EXPECT_EQ(a.send(add{1}), status::closed);
  EXPECT_EQ(dead_letters_, 1);
  EXPECT_EQ(live(), 0U);
}

TEST_F(keyed_actors_test, ASaveThatFailsAtTheEndIsReported) {
  open();
  put("a", 1);
  store_.fail_with(std::make_exception_ptr(actor_store_error("no")));
  tallies_->close();
  run();
  ASSERT_EQ(failures_.size(), 1U);
  EXPECT_EQ(failures_[0].step, keyed_step::last_save);
}

TEST_F(keyed_actors_test, ForgetRemovesTheStateAfterTheQueuedMessages) {
  open();
  put("a", 1);
  wait(10s);
  ASSERT_TRUE(of("a").send(add{1}));
  auto before = of("a").ask(total{});
  auto f = tallies_->forget("a");
  run();
  EXPECT_EQ(before.get(), 2);
  EXPECT_TRUE(f.is_ready());
  EXPECT_EQ(stored("a"), "nothing");
  put("a", 5);
  EXPECT_EQ(sum("a"), 5);
}

TEST_F(keyed_actors_test, ForgetRemovesAStateThatCannotBeRead) {
  open();
  store_.save("tally", "a", "not a number").get();
  auto f = tallies_->forget("a");
  run();
  f.get();
  EXPECT_EQ(stored("a"), "nothing");
  EXPECT_EQ(live(), 0U);
  wait(10s);
  EXPECT_EQ(stored("a"), "nothing");
  EXPECT_EQ(sum("a"), 0);
}

TEST_F(keyed_actors_test, ForgetDuringASaveRemovesTheState) {
  open();
  put("a", 1);
  store_.hold();
  wait(10s);
  auto f = tallies_->forget("a");
  run();
  store_.release();
  run();
  f.get();
  EXPECT_EQ(stored("a"), "nothing");
}

struct greet {
  using reply = std::string;
};
class greeter : public actor<greeter, greet> {
 public:
  greeter(std::string key, std::string word) : text_(std::move(word) + " " + std::move(key)) {}
  std::string on(greet) { return text_; }

 private:
  std::string text_;
};

TEST_F(keyed_actors_test, WithoutAStoreItIsConstructedFromItsKeyAndTheArguments) {
  keyed_actors<greeter> greeters(*system_, {.idle = 10s}, std::string("hello"));
  auto f = greeters.of("you").ask(greet{});
  run();
  EXPECT_EQ(f.get(), "hello you");
  wait(10s);
  EXPECT_EQ(greeters.stats().live, 0U);
}

}  // namespace
}  // namespace sluice::keyed_actors_test
