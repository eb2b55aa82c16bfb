// `sluice`: actors on a work_stealing_pool with one thread for each core. Mailboxes have their
// default bound; a sender to a full mailbox is suspended and occupies no thread.
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "benchmarks/actor/population.hpp"
#include "benchmarks/actor/sluice_system.hpp"
#include "benchmarks/actor/workloads.hpp"

namespace sluice::bench {
namespace {

struct ball {
  std::uint64_t n;
};

class pong : public actor<pong, ball> {
 public:
  explicit pong(recipient<ball> partner) : partner_(std::move(partner)) {}
  void on(ball b) { must(partner_.send(ball{b.n + 1})); }

 private:
  recipient<ball> partner_;
};

class ping : public actor<ping, ball> {
 public:
  ping(const run_clock* clock, finish_line* done) : clock_(clock), done_(done) {}

  void on(ball b) {
    if (b.n == 0) {
      partner_ = spawn<pong>(recipient<ball>(self()));
    } else {
      rounds_ += 1;
    }
    if (!clock_->has_ended()) return must(partner_.send(ball{b.n + 1}));
    expect_equal(b.n, 2 * rounds_, "the ball of sluice");
    done_->arrive(b.n);
  }

 private:
  const run_clock* clock_;
  finish_line* done_;
  ref<pong> partner_;
  std::uint64_t rounds_ = 0;
};

tally pingpong(seconds duration) {
  finish_line done;
  run_clock clock;
  sluice_system system;
  const ref<ping> first = system->spawn<ping>(&clock, &done);
  return run_for(duration, clock, done, [&] { must(first.send(ball{0})); });
}

struct token {
  std::uint64_t n;
};
struct join {
  recipient<token> next;
};

class ring_member : public actor<ring_member, token> {
 public:
  explicit ring_member(recipient<token> next) : next_(std::move(next)) {}
  void on(token t) { must(next_.send(token{t.n + 1})); }

 private:
  recipient<token> next_;
};

// Starts the token, counts its laps, and checks the clock.
class ring_head : public actor<ring_head, join, token> {
 public:
  ring_head(const run_clock* clock, finish_line* done) : clock_(clock), done_(done) {}

  void on(join m) {
    next_ = std::move(m.next);
    must(next_.send(token{1}));
  }
  void on(token t) {
    laps_ += 1;
    if (!clock_->has_ended()) return must(next_.send(token{t.n + 1}));
    expect_equal(t.n, ring_size * laps_, "the token of sluice");
    done_->arrive(t.n);
  }

 private:
  const run_clock* clock_;
  finish_line* done_;
  recipient<token> next_;
  std::uint64_t laps_ = 0;
};

tally ring(seconds duration) {
  finish_line done;
  run_clock clock;
  sluice_system system;
  const ref<ring_head> head = system->spawn<ring_head>(&clock, &done);
  recipient<token> next = head;
  for (std::uint64_t i = 1; i < ring_size; ++i) next = system->spawn<ring_member>(next);
  return run_for(duration, clock, done, [&] { must(head.send(join{next})); });
}

struct number {
  std::uint64_t n;
};

class receiver : public actor<receiver, number> {
 public:
  receiver(std::uint64_t messages, finish_line* done) : left_(messages), done_(done) {}
  void on(number m) {
    sum_ += m.n;
    if (--left_ == 0) done_->arrive(sum_);
  }

 private:
  std::uint64_t left_;
  std::uint64_t sum_ = 0;
  finish_line* done_;
};

struct start {};

class sender : public actor<sender, start> {
 public:
  sender(ref<receiver> target, std::uint64_t messages)
      : target_(std::move(target)), messages_(messages) {}
  task<> on(start) {
    for (std::uint64_t i = 1; i <= messages_; ++i) {
      number m{i};
      if (!target_.try_send(std::move(m))) must(co_await target_.async_send(m));
    }
  }

 private:
  ref<receiver> target_;
  std::uint64_t messages_;
};

tally fanin(scale size) {
  const std::uint64_t messages = size.of(fanin_messages);
  finish_line done;
  sluice_system system;
  return run_to_the_end(fanin_senders * messages, fanin_senders * sum_up_to(messages), done, [&] {
    actor_options o;
    o.mailbox.capacity = fanin_capacity;
    const ref<receiver> target = system->spawn_with<receiver>(o, fanin_senders * messages, &done);
    for (std::uint64_t i = 0; i < fanin_senders; ++i) {
      must(system->spawn<sender>(target, messages).send(start{}));
    }
  });
}

struct count_request {
  std::atomic<std::uint64_t>* answers;
};

class idler : public actor<idler, count_request> {
 public:
  void on(count_request m) { m.answers->fetch_add(1); }
};

class sluice_population : public population {
 public:
  void create(std::uint64_t size) override {
    actors_.reserve(size);
    for (std::uint64_t i = 0; i < size; ++i) actors_.push_back(system_->spawn<idler>());
  }

  std::uint64_t count() override {
    answers_ = 0;
    std::uint64_t asked = 0;
    for (const ref<idler>& each : actors_) {
      must(each.send(count_request{&answers_}));
      // Few messages at a time, since their memory would count as that of the actors.
      if (++asked % 1000 == 0 || asked == actors_.size()) {
        while (answers_ != asked) std::this_thread::yield();
      }
    }
    return answers_;
  }

 private:
  std::atomic<std::uint64_t> answers_ = 0;
  sluice_system system_;
  std::vector<ref<idler>> actors_;
};

const registration added{[](suite& s) {
  s.add("pingpong", "sluice", operations_per_second(pingpong));
  s.add("ring", "sluice", operations_per_second(ring));
  s.add("fanin", "sluice", work_per_second(fanin));
}};

const population_registration added_population{"sluice", []() -> std::unique_ptr<population> {
                                                 return std::make_unique<sluice_population>();
                                               }};

}  // namespace
}  // namespace sluice::bench
