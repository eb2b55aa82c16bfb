#include "sluice/actor/actor_observer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/actor/actor_probe.hpp"
#include "sluice/actor/actor_test_kit.hpp"
#include "sluice/actor/reentrant.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/future/timers.hpp"

namespace sluice::actor_observer_test {
namespace {

using namespace std::chrono_literals;

// Records each call as a line. One thread at a time.
class listener final : public actor_observer {
 public:
  std::uint64_t sent(actor_id, actor_id, std::string_view) noexcept override { return ++last_; }
  void begun(actor_id, std::string_view type, std::uint64_t note) noexcept override {
    say("begun", type, note);
  }
  void handled(actor_id, std::string_view type, std::uint64_t note) noexcept override {
    say("handled", type, note);
  }
  void resumed(actor_id, std::string_view type, std::uint64_t note) noexcept override {
    say("resumed", type, note);
  }
  void failed(actor_id id, const std::exception_ptr&) noexcept override {
    lines_.push_back("failed " + std::to_string(id));
  }
  void restarted(actor_id id) noexcept override {
    lines_.push_back("restarted " + std::to_string(id));
  }
  void wait_begun(actor_id id, actor_id target, actor_wait kind,
                  std::uint64_t wait) noexcept override {
    last_wait_ = wait;
    lines_.push_back(edge("waits", id, target, kind));
  }
  void wait_ended(actor_id id, actor_id target, actor_wait kind,
                  std::uint64_t wait) noexcept override {
    EXPECT_EQ(wait, last_wait_);
    lines_.push_back(edge("wait ended", id, target, kind));
  }

  // Returns the lines and clears them.
  std::vector<std::string> take() { return std::exchange(lines_, {}); }
  std::vector<std::string> lines_;

 private:
  void say(std::string event, std::string_view type, std::uint64_t note) {
    const std::string full(type);
    lines_.push_back(event + " " + full.substr(full.rfind(':') + 1) + " " + std::to_string(note));
  }
  static std::string edge(std::string event, actor_id id, actor_id target, actor_wait kind) {
    return event + " " + std::to_string(id) + " " + std::to_string(target) +
           (kind == actor_wait::capacity ? " capacity" : " answer");
  }
  std::uint64_t last_ = 0;
  std::uint64_t last_wait_ = 0;
};

using lines = std::vector<std::string>;

actor_system_options observed_by(listener& l) {
  actor_system_options o;
  o.observer = &l;
  return o;
}

struct fetch {
  recipient<struct page> from;
};
struct page {
  using reply = int;
};
struct look {};
struct quick {};
struct keep {};
struct release {};

class browser : public actor<browser, fetch, look, quick, keep, release> {
 public:
  task<> on(fetch m) { co_await reentrant(m.from.ask(page{})); }
  void on(look) {}
  task<> on(quick) { co_return; }
  void on(keep m) {
    if (!open_) return (void)stash(m);
  }
  void on(release) {
    open_ = true;
    unstash_all();
  }

 private:
  bool open_ = false;
};

TEST(actor_observer_test, ACoroutineWithAReentrantWaitIsResumedAndHandledTwice) {
  listener l;
  actor_test_kit kit(observed_by(l));
  actor_probe<page> web(kit);
  const auto b = kit.spawn<browser>();
  ASSERT_TRUE(b.send(fetch{web.ref()}));
  kit.settle();
  (void)web.expect<page>();
  ASSERT_TRUE(b.send(look{}));
  kit.settle();
  EXPECT_EQ(l.take(), (lines{"begun fetch 1", "waits 2 1 answer", "handled fetch 1", "begun page 2",
                             "handled page 2", "begun look 3", "handled look 3"}));
  web.reply<page>(1);
  EXPECT_EQ(l.take(), (lines{"wait ended 2 1 answer", "resumed fetch 1", "handled fetch 1"}));
}

TEST(actor_observer_test, ACoroutineThatEndsAtOnceIsHandledOnce) {
  listener l;
  actor_test_kit kit(observed_by(l));
  const auto b = kit.spawn<browser>();
  ASSERT_TRUE(b.send(quick{}));
  kit.settle();
  EXPECT_EQ(l.take(), (lines{"begun quick 1", "handled quick 1"}));
}

TEST(actor_observer_test, AStashedMessageKeepsItsNote) {
  listener l;
  actor_test_kit kit(observed_by(l));
  const auto b = kit.spawn<browser>();
  ASSERT_TRUE(b.send(keep{}));
  ASSERT_TRUE(b.send(release{}));
  kit.settle();
  EXPECT_EQ(l.take(), (lines{"begun keep 1", "handled keep 1", "begun release 2",
                             "handled release 2", "begun keep 1", "handled keep 1"}));
}

class faller : public actor<faller, look> {
 public:
  void on(look) { throw std::runtime_error("it fell"); }
};

TEST(actor_observer_test, FailuresAndRestartsAreReported) {
  listener l;
  actor_test_kit kit(observed_by(l));
  const auto f = kit.spawn<faller>();
  ASSERT_TRUE(f.send(look{}));
  kit.settle();
  EXPECT_EQ(l.take(), (lines{"begun look 1", "handled look 1", "failed 1", "restarted 1"}));
}

struct write {
  recipient<look> receiver;
};

class writer : public actor<writer, write> {
 public:
  task<> on(write m) {
    for (int i = 0; i < 2; ++i) {
      const status outcome = co_await m.receiver.async_send(look{});
      EXPECT_TRUE(outcome);
    }
  }
};

TEST(actor_observer_test, ACoroutineThatWaitsForCapacityIsReported) {
  listener l;
  manual_executor aside;
  actor_test_kit kit(observed_by(l));
  const auto full = kit.spawn_with<browser>({.mailbox = {.capacity = 1}, .on = &aside});
  const auto w = kit.spawn<writer>();
  ASSERT_TRUE(w.send(write{full}));
  kit.settle();
  EXPECT_EQ(l.take(), (lines{"begun write 1", "waits 2 1 capacity"}));
  aside.run_all();
  kit.settle();
  const lines after = l.take();
  EXPECT_EQ(std::count(after.begin(), after.end(), "wait ended 2 1 capacity"), 1);
  EXPECT_EQ(after.back(), "handled write 1");
  full.stop();
  aside.run_all();
}

struct ask_for {
  recipient<page> from;
  std::chrono::nanoseconds at_most;
};
class asker : public actor<asker, ask_for> {
 public:
  task<> on(ask_for m) {
    auto answer = m.from.ask(page{}, deadline::after(m.at_most, time_));
    try {
      (void)co_await std::move(answer);
    } catch (const future_error&) {
      // It took too long.
    }
  }
  explicit asker(clock& time) : time_(time) {}

 private:
  clock& time_;
};

TEST(actor_observer_test, AnAskThatTimedOutEndsItsWait) {
  listener l;
  actor_test_kit kit(observed_by(l));
  actor_probe<page> web(kit);
  const auto a = kit.spawn<asker>(std::ref(static_cast<clock&>(kit.time())));
  ASSERT_TRUE(a.send(ask_for{web.ref(), 1s}));
  kit.settle();
  EXPECT_EQ(l.take(),
            (lines{"begun ask_for 1", "waits 2 1 answer", "begun page 2", "handled page 2"}));
  kit.advance(1s);
  EXPECT_EQ(l.take(), (lines{"wait ended 2 1 answer", "handled ask_for 1"}));
}

}  // namespace
}  // namespace sluice::actor_observer_test
