// `caf`, the Savina suite: event-based actors that send messages by handle.
#include <cstdint>
#include <vector>

#include "benchmarks/actor/caf_system.hpp"
#include "benchmarks/actor/workloads.hpp"

namespace sluice::bench {
namespace {

using caf::actor;
using caf::behavior;
using caf::event_based_actor;
using caf::stateful_actor;

using ping_message = caf::atom_constant<caf::atom("ping")>;
using pong_message = caf::atom_constant<caf::atom("pong")>;
using start_message = caf::atom_constant<caf::atom("start")>;
using token_message = caf::atom_constant<caf::atom("token")>;
using add_message = caf::atom_constant<caf::atom("add")>;
using total_message = caf::atom_constant<caf::atom("total")>;
using work_message = caf::atom_constant<caf::atom("work")>;
using meet_message = caf::atom_constant<caf::atom("meet")>;
using change_message = caf::atom_constant<caf::atom("change")>;
using end_message = caf::atom_constant<caf::atom("end")>;
using pay_message = caf::atom_constant<caf::atom("pay")>;
using receive_message = caf::atom_constant<caf::atom("receive")>;
using paid_message = caf::atom_constant<caf::atom("paid")>;

actor sender_of_current(event_based_actor* self) {
  return caf::actor_cast<actor>(self->current_sender());
}

struct count_state {
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
};
using counting_actor = stateful_actor<count_state>;

// Receives a message from each actor that has finished.
behavior collector(counting_actor* self, std::uint64_t expected, finish_line* done) {
  return {[=](end_message, std::uint64_t handled) {
    self->state.sum += handled;
    if (++self->state.count == expected) {
      done->arrive(self->state.sum);
      self->quit();
    }
  }};
}

// ping-pong

behavior pong(event_based_actor* self) {
  return {[=](ping_message) { self->send(sender_of_current(self), pong_message::value); }};
}

behavior ping(counting_actor* self, const actor& partner, std::uint64_t pings, finish_line* done) {
  self->send(partner, ping_message::value);
  return {[=](pong_message) {
    if (++self->state.count < pings) {
      self->send(partner, ping_message::value);
      return;
    }
    done->arrive(self->state.count);
    self->quit();
  }};
}

tally ping_pong(scale size) {
  const std::uint64_t pings = size.of(savina::pings);
  finish_line done;
  caf_system system;
  return run_to_the_end(2 * pings, pings, done,
                        [&] { system->spawn(ping, system->spawn(pong), pings, &done); });
}

// thread-ring: the token has the number of remaining hops; its last receiver ends the run.

behavior ring_member(event_based_actor* self, finish_line* done) {
  return {[=](start_message, const actor& next) {
    self->become([=](token_message, std::uint64_t left) {
      if (left != 0) {
        self->send(next, token_message::value, left - 1);
      } else {
        done->arrive(0);
      }
    });
  }};
}

tally thread_ring(scale size) {
  const std::uint64_t hops = size.of(savina::ring_hops);
  finish_line done;
  caf_system system;
  std::vector<actor> members;
  for (std::uint64_t i = 0; i < ring_size; ++i) {
    members.push_back(system.stop_at_end(system->spawn(ring_member, &done)));
  }
  for (std::uint64_t i = 0; i < ring_size; ++i) {
    caf::anon_send(members[i], start_message::value, members[(i + 1) % ring_size]);
  }
  return run_to_the_end(hops, 0, done,
                        [&] { caf::anon_send(members[0], token_message::value, hops); });
}

// counting

behavior counter(counting_actor* self) {
  return {[=](add_message) { ++self->state.count; },
          [=](total_message) {
            self->send(sender_of_current(self), total_message::value, self->state.count);
          }};
}

behavior producer(event_based_actor* self, const actor& target, std::uint64_t increments,
                  finish_line* done) {
  for (std::uint64_t i = 0; i < increments; ++i) self->send(target, add_message::value);
  self->send(target, total_message::value);
  return {[=](total_message, std::uint64_t count) {
    done->arrive(count);
    self->quit();
  }};
}

tally counting(scale size) {
  const std::uint64_t increments = size.of(savina::increments);
  finish_line done;
  caf_system system;
  return run_to_the_end(increments, increments, done, [&] {
    system->spawn(producer, system->spawn(counter), increments, &done);
  });
}

// fork-join-create

behavior forked(event_based_actor* self, head_count* all) {
  return {[=](work_message) {
    keep(savina::compute());
    all->one_more();
    self->quit();
  }};
}

tally fork_join_create(scale size) {
  const std::uint64_t actors = size.of(savina::forked_actors);
  finish_line done;
  head_count all(actors, done);
  // When many actors end while others are created, stealing is five to twenty times slower, and
  // creating them in an actor is slower than in another thread.
  caf_system system(caf_policy::sharing);
  return run_to_the_end(actors, actors, done, [&] {
    for (std::uint64_t i = 0; i < actors; ++i) {
      caf::anon_send(system->spawn<caf::lazy_init>(forked, &all), work_message::value);
    }
  });
}

// fork-join-throughput

behavior worker(counting_actor* self, std::uint64_t messages, const actor& target) {
  return {[=](work_message) {
    keep(savina::compute());
    if (++self->state.count == messages) {
      self->send(target, end_message::value, messages);
      self->quit();
    }
  }};
}

void distributor(event_based_actor* self, std::uint64_t messages, const actor& target) {
  std::vector<actor> workers;
  for (std::uint64_t i = 0; i < savina::fork_join_actors; ++i) {
    workers.push_back(self->spawn(worker, messages, target));
  }
  for (std::uint64_t i = 0; i < messages; ++i) {
    for (const actor& each : workers) self->send(each, work_message::value);
  }
}

tally fork_join_throughput(scale size) {
  const std::uint64_t messages = size.of(savina::fork_join_messages);
  const std::uint64_t all = messages * savina::fork_join_actors;
  finish_line done;
  caf_system system;
  return run_to_the_end(all, all, done, [&] {
    system->spawn(distributor, messages, system->spawn(collector, savina::fork_join_actors, &done));
  });
}

// chameneos: the mall forwards the second creature's message to the first, which replies with its
// new colour.

struct mall_state {
  std::uint64_t meetings_left = 0;
  actor waiting;
  std::uint64_t ended = 0;
  std::uint64_t sum = 0;
};

behavior mall(stateful_actor<mall_state>* self, std::uint64_t meetings, finish_line* done) {
  self->state.meetings_left = meetings;
  return {[=](meet_message, std::uint8_t colour) {
            mall_state& state = self->state;
            if (state.meetings_left == 0) {
              self->send(sender_of_current(self), end_message::value);
            } else if (!state.waiting) {
              state.waiting = sender_of_current(self);
            } else {
              --state.meetings_left;
              self->delegate(state.waiting, meet_message::value, colour);
              state.waiting = nullptr;
            }
          },
          [=](end_message, std::uint64_t met) {
            self->state.sum += met;
            if (++self->state.ended == savina::chameneos) {
              done->arrive(self->state.sum);
              self->quit();
            }
          }};
}

struct creature_state {
  savina::colour own = savina::colour::red;
  std::uint64_t met = 0;
};

behavior creature(stateful_actor<creature_state>* self, const actor& place, savina::colour first) {
  self->state.own = first;
  const auto go_to_place = [=] {
    self->send(place, meet_message::value, static_cast<std::uint8_t>(self->state.own));
  };
  go_to_place();
  return {[=](meet_message, std::uint8_t other) {
            self->state.own =
                savina::complement(self->state.own, static_cast<savina::colour>(other));
            ++self->state.met;
            self->send(sender_of_current(self), change_message::value,
                       static_cast<std::uint8_t>(self->state.own));
            go_to_place();
          },
          [=](change_message, std::uint8_t colour) {
            self->state.own = static_cast<savina::colour>(colour);
            ++self->state.met;
            go_to_place();
          },
          [=](end_message) {
            self->send(place, end_message::value, self->state.met);
            self->quit();
          }};
}

tally chameneos(scale size) {
  const std::uint64_t meetings = size.of(savina::meetings);
  finish_line done;
  caf_system system;
  return run_to_the_end(meetings, 2 * meetings, done, [&] {
    const actor place = system->spawn(mall, meetings, &done);
    for (std::uint64_t i = 0; i < savina::chameneos; ++i) {
      system->spawn(creature, place, savina::colour_of(i));
    }
  });
}

// big: an actor that has received all its replies notifies the sink.

struct big_state {
  std::vector<actor> members;
  savina::partner_picker picker{0, savina::big_actors};
  std::uint64_t asked = 0;
  std::uint64_t answered = 0;
};

behavior big_member(stateful_actor<big_state>* self, std::uint64_t index, std::uint64_t pings,
                    const actor& sink) {
  self->state.picker = savina::partner_picker(index, savina::big_actors);
  const auto ping_next = [=] {
    self->state.asked = self->state.picker.next();
    self->send(self->state.members[self->state.asked], ping_message::value, index);
  };
  return {
      [=](meet_message, std::vector<actor>& members) { self->state.members = std::move(members); },
      [=](start_message) { ping_next(); },
      [=](ping_message, std::uint64_t from) {
        self->send(self->state.members[from], pong_message::value, index);
      },
      [=](pong_message, std::uint64_t from) {
        expect_equal(from, self->state.asked, "index of the replying actor");
        if (++self->state.answered < pings) {
          ping_next();
        } else {
          self->send(sink, end_message::value, self->state.answered);
        }
      }};
}

tally big(scale size) {
  const std::uint64_t pings = size.of(savina::big_pings);
  const std::uint64_t all = pings * savina::big_actors;
  finish_line done;
  caf_system system;
  const actor sink = system->spawn(collector, savina::big_actors, &done);
  std::vector<actor> members;
  for (std::uint64_t i = 0; i < savina::big_actors; ++i) {
    members.push_back(system.stop_at_end(system->spawn(big_member, i, pings, sink)));
  }
  for (const actor& each : members) caf::anon_send(each, meet_message::value, members);
  return run_to_the_end(all, all, done, [&] {
    for (const actor& each : members) caf::anon_send(each, start_message::value);
  });
}

// bank-transaction: the paying account handles no other message until the other account has
// confirmed.

struct account_state {
  std::uint64_t balance = savina::first_balance;
};

behavior account(stateful_actor<account_state>* self) {
  return {[=](pay_message, std::uint64_t amount, const actor& payee) {
            self->state.balance -= amount;
            const actor teller = sender_of_current(self);
            self->request(payee, caf::infinite, receive_message::value, amount)
                .await([=](paid_message) { self->send(teller, paid_message::value); });
          },
          [=](receive_message, std::uint64_t amount) {
            self->state.balance += amount;
            return paid_message::value;
          },
          [=](total_message) {
            self->send(sender_of_current(self), total_message::value, self->state.balance);
            self->quit();
          }};
}

behavior teller(counting_actor* self, std::uint64_t transactions, finish_line* done) {
  std::vector<actor> accounts;
  for (std::uint64_t i = 0; i < savina::accounts; ++i) accounts.push_back(self->spawn(account));
  savina::transfer_picker picker;
  for (std::uint64_t i = 0; i < transactions; ++i) {
    const savina::transfer next = picker.next();
    self->send(accounts[next.payer], pay_message::value, next.amount, accounts[next.payee]);
  }
  return {[=](paid_message) {
            if (++self->state.count < transactions) return;
            self->state.count = 0;
            for (const actor& each : accounts) self->send(each, total_message::value);
          },
          [=](total_message, std::uint64_t balance) {
            self->state.sum += balance;
            if (++self->state.count < savina::accounts) return;
            done->arrive(self->state.sum);
            self->quit();
          }};
}

tally bank_transaction(scale size) {
  const std::uint64_t transactions = size.of(savina::transactions);
  finish_line done;
  caf_system system;
  return run_to_the_end(transactions, savina::accounts * savina::first_balance, done,
                        [&] { system->spawn(teller, transactions, &done); });
}

const registration added{[](suite& s) {
  s.add("savina-ping-pong", "caf", work_per_second(ping_pong));
  s.add("savina-thread-ring", "caf", work_per_second(thread_ring));
  s.add("savina-counting", "caf", work_per_second(counting));
  s.add("savina-fork-join-create", "caf", work_per_second(fork_join_create));
  s.add("savina-fork-join-throughput", "caf", work_per_second(fork_join_throughput));
  s.add("savina-chameneos", "caf", work_per_second(chameneos));
  s.add("savina-big", "caf", work_per_second(big));
  s.add("savina-bank-transaction", "caf", work_per_second(bank_transaction));
}};

}  // namespace
}  // namespace sluice::bench
