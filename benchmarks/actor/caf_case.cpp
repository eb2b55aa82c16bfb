// `caf`: event-based actors of the C++ Actor Framework. Their mailboxes are unbounded.
//
// Each workload uses the fastest variant that was found: messages are sent and not returned from
// handlers, senders send without interruption, and the million actors are created with lazy_init,
// which schedules an actor only for its first message.
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "benchmarks/actor/caf_system.hpp"
#include "benchmarks/actor/population.hpp"
#include "benchmarks/actor/workloads.hpp"

namespace sluice::bench {
namespace {

using caf::actor;
using caf::behavior;
using caf::event_based_actor;

behavior pong(event_based_actor* self) {
  return {[=](std::uint64_t ball) {
    self->send(caf::actor_cast<actor>(self->current_sender()), ball + 1);
  }};
}

struct ping_state {
  std::uint64_t rounds = 0;
};

behavior ping(caf::stateful_actor<ping_state>* self, const actor& partner, const run_clock* clock,
              finish_line* done) {
  self->send(partner, std::uint64_t{1});
  return {[=](std::uint64_t ball) {
    ++self->state.rounds;
    if (!clock->has_ended()) {
      self->send(partner, ball + 1);
      return;
    }
    expect_equal(ball, 2 * self->state.rounds, "the ball of caf");
    done->arrive(ball);
    self->quit();
  }};
}

tally pingpong(seconds duration) {
  finish_line done;
  run_clock clock;
  caf_system system;
  return run_for(duration, clock, done,
                 [&] { system->spawn(ping, system->spawn(pong), &clock, &done); });
}

using join_atom = caf::atom_constant<caf::atom("join")>;

behavior ring_member(event_based_actor* self, const actor& next) {
  return {[=](std::uint64_t token) { self->send(next, token + 1); }};
}

// Starts the token, counts its laps, and checks the clock.
behavior ring_head(caf::stateful_actor<ping_state>* self, const run_clock* clock,
                   finish_line* done) {
  return {[=](join_atom, const actor& next) {
    self->send(next, std::uint64_t{1});
    self->become([=](std::uint64_t token) {
      ++self->state.rounds;
      if (!clock->has_ended()) {
        self->send(next, token + 1);
        return;
      }
      expect_equal(token, ring_size * self->state.rounds, "the token of caf");
      done->arrive(token);
      self->quit();
    });
  }};
}

tally ring(seconds duration) {
  finish_line done;
  run_clock clock;
  caf_system system;
  const actor head = system->spawn(ring_head, &clock, &done);
  actor next = head;
  for (std::uint64_t i = 1; i < ring_size; ++i) {
    next = system.stop_at_end(system->spawn(ring_member, next));
  }
  return run_for(duration, clock, done, [&] { caf::anon_send(head, join_atom::value, next); });
}

struct receiver_state {
  std::uint64_t received = 0;
  std::uint64_t sum = 0;
};

behavior receiver(caf::stateful_actor<receiver_state>* self, std::uint64_t messages,
                  finish_line* done) {
  return {[=](std::uint64_t number) {
    self->state.sum += number;
    if (++self->state.received == messages) {
      done->arrive(self->state.sum);
      self->quit();
    }
  }};
}

void sender(event_based_actor* self, const actor& target, std::uint64_t messages) {
  for (std::uint64_t i = 1; i <= messages; ++i) self->send(target, i);
}

tally fanin_round(scale size) {
  const std::uint64_t messages = size.of(fanin_messages);
  finish_line done;
  caf_system system;
  return run_to_the_end(fanin_senders * messages, fanin_senders * sum_up_to(messages), done, [&] {
    const actor target = system->spawn(receiver, fanin_senders * messages, &done);
    for (std::uint64_t i = 0; i < fanin_senders; ++i) system->spawn(sender, target, messages);
  });
}

using count_atom = caf::atom_constant<caf::atom("count")>;

class idler : public event_based_actor {
 public:
  idler(caf::actor_config& config, std::atomic<std::uint64_t>* counter)
      : event_based_actor(config), counter_(counter) {}

  behavior make_behavior() override {
    return {[this](count_atom) { counter_->fetch_add(1); }};
  }

 private:
  std::atomic<std::uint64_t>* counter_;
};

class caf_population : public population {
 public:
  void create(std::uint64_t size) override {
    actors_.reserve(size);
    for (std::uint64_t i = 0; i < size; ++i) {
      actors_.push_back(system_->spawn<idler, caf::lazy_init>(&answers_));
    }
  }

  std::uint64_t count() override {
    answers_ = 0;
    std::uint64_t asked = 0;
    for (const actor& each : actors_) {
      caf::anon_send(each, count_atom::value);
      // Few messages at a time, since their memory would count as that of the actors.
      if (++asked % 1000 == 0 || asked == actors_.size()) {
        while (answers_ != asked) std::this_thread::yield();
      }
    }
    return answers_;
  }

 private:
  std::atomic<std::uint64_t> answers_ = 0;
  caf_system system_;
  std::vector<actor> actors_;
};

const registration added{[](suite& s) {
  s.add("pingpong", "caf", operations_per_second(pingpong));
  s.add("ring", "caf", operations_per_second(ring));
  s.add("fanin", "caf", work_per_second(fanin_round));
}};

const population_registration added_population{
    "caf", []() -> std::unique_ptr<population> { return std::make_unique<caf_population>(); }};

}  // namespace
}  // namespace sluice::bench
