// `sluice`, the Savina suite. Actors that send more than a mailbox holds are coroutines: they are
// suspended while it is full.
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "benchmarks/actor/sluice_system.hpp"
#include "benchmarks/actor/workloads.hpp"

namespace sluice::bench {
namespace {

struct begin {};
struct end {
  std::uint64_t handled;
};

// Receives a message from each actor that has finished.
class collector : public actor<collector, end> {
 public:
  collector(std::uint64_t expected, finish_line* done) : left_(expected), done_(done) {}
  void on(end m) {
    sum_ += m.handled;
    if (--left_ == 0) done_->arrive(sum_);
  }

 private:
  std::uint64_t left_;
  std::uint64_t sum_ = 0;
  finish_line* done_;
};

// ping-pong

struct ping {};
struct pong {};

class pong_actor : public actor<pong_actor, ping> {
 public:
  explicit pong_actor(recipient<pong> partner) : partner_(std::move(partner)) {}
  void on(ping) { must(partner_.send(pong{})); }

 private:
  recipient<pong> partner_;
};

class ping_actor : public actor<ping_actor, begin, pong> {
 public:
  ping_actor(std::uint64_t pings, finish_line* done) : pings_(pings), done_(done) {}

  void on(begin) {
    partner_ = spawn<pong_actor>(recipient<pong>(self()));
    must(partner_.send(ping{}));
  }
  void on(pong) {
    if (++answered_ < pings_) return must(partner_.send(ping{}));
    done_->arrive(answered_);
  }

 private:
  std::uint64_t pings_;
  finish_line* done_;
  std::uint64_t answered_ = 0;
  ref<pong_actor> partner_;
};

tally ping_pong(scale size) {
  const std::uint64_t pings = size.of(savina::pings);
  finish_line done;
  sluice_system system;
  return run_to_the_end(2 * pings, pings, done,
                        [&] { must(system->spawn<ping_actor>(pings, &done).send(begin{})); });
}

// thread-ring: the token has the number of remaining hops; its last receiver ends the run.

class ring_member;

struct token {
  std::uint64_t left;
};
struct join_ring {
  ref<ring_member> next;
};

class ring_member : public actor<ring_member, join_ring, token> {
 public:
  explicit ring_member(finish_line* done) : done_(done) {}
  void on(join_ring m) { next_ = std::move(m.next); }
  void on(token t) {
    if (t.left != 0) return must(next_.send(token{t.left - 1}));
    done_->arrive(0);
  }

 private:
  finish_line* done_;
  ref<ring_member> next_;
};

tally thread_ring(scale size) {
  const std::uint64_t hops = size.of(savina::ring_hops);
  finish_line done;
  sluice_system system;
  std::vector<ref<ring_member>> members;
  for (std::uint64_t i = 0; i < ring_size; ++i) {
    members.push_back(system->spawn<ring_member>(&done));
  }
  for (std::uint64_t i = 0; i < ring_size; ++i) {
    must(members[i].send(join_ring{members[(i + 1) % ring_size]}));
  }
  return run_to_the_end(hops, 0, done, [&] { must(members[0].send(token{hops})); });
}

// counting

struct add {};
struct total {
  using reply = std::uint64_t;
};

class counter : public actor<counter, add, total> {
 public:
  void on(add) { count_ += 1; }
  std::uint64_t on(total) { return count_; }

 private:
  std::uint64_t count_ = 0;
};

class producer : public actor<producer, begin> {
 public:
  producer(std::uint64_t increments, finish_line* done) : increments_(increments), done_(done) {}

  task<> on(begin) {
    const ref<counter> target = spawn<counter>();
    for (std::uint64_t i = 0; i < increments_; ++i) {
      if (!target.try_send(add{})) must(co_await target.async_send(add{}));
    }
    done_->arrive(co_await target.ask(total{}));
  }

 private:
  std::uint64_t increments_;
  finish_line* done_;
};

tally counting(scale size) {
  const std::uint64_t increments = size.of(savina::increments);
  finish_line done;
  sluice_system system;
  return run_to_the_end(increments, increments, done,
                        [&] { must(system->spawn<producer>(increments, &done).send(begin{})); });
}

// fork-join-create

struct work_once {};

class forked : public actor<forked, work_once> {
 public:
  explicit forked(head_count* all) : all_(all) {}
  void on(work_once) {
    keep(savina::compute());
    all_->one_more();
    stop_self();
  }

 private:
  head_count* all_;
};

tally fork_join_create(scale size) {
  const std::uint64_t actors = size.of(savina::forked_actors);
  finish_line done;
  head_count all(actors, done);
  sluice_system system;
  return run_to_the_end(actors, actors, done, [&] {
    for (std::uint64_t i = 0; i < actors; ++i) must(system->spawn<forked>(&all).send(work_once{}));
  });
}

// fork-join-throughput

// Sixty mailboxes of the default 1024 messages exceed a core's cache, so that each message is a
// cache miss. With this bound the messages stay in the cache.
constexpr std::uint32_t throughput_capacity = 64;

struct work {};

class worker : public actor<worker, work> {
 public:
  worker(std::uint64_t messages, ref<collector> sink)
      : messages_(messages), sink_(std::move(sink)) {}
  void on(work) {
    keep(savina::compute());
    if (++handled_ == messages_) must(sink_.send(end{handled_}));
  }

 private:
  std::uint64_t messages_;
  std::uint64_t handled_ = 0;
  ref<collector> sink_;
};

class distributor : public actor<distributor, begin> {
 public:
  distributor(std::uint64_t messages, ref<collector> sink)
      : messages_(messages), sink_(std::move(sink)) {}

  task<> on(begin) {
    std::vector<ref<worker>> workers;
    actor_options o;
    o.mailbox.capacity = throughput_capacity;
    for (std::uint64_t i = 0; i < savina::fork_join_actors; ++i) {
      workers.push_back(spawn_with<worker>(o, messages_, sink_));
    }
    for (std::uint64_t i = 0; i < messages_; ++i) {
      for (const ref<worker>& each : workers) {
        if (!each.try_send(work{})) must(co_await each.async_send(work{}));
      }
    }
  }

 private:
  std::uint64_t messages_;
  ref<collector> sink_;
};

tally fork_join_throughput(scale size) {
  const std::uint64_t messages = size.of(savina::fork_join_messages);
  const std::uint64_t all = messages * savina::fork_join_actors;
  finish_line done;
  sluice_system system;
  return run_to_the_end(all, all, done, [&] {
    const ref<collector> sink = system->spawn<collector>(savina::fork_join_actors, &done);
    must(system->spawn<distributor>(messages, sink).send(begin{}));
  });
}

// chameneos: the mall forwards the second creature's message to the first, which replies with its
// new colour.

class creature;
class mall;

struct meet {
  savina::colour colour;
  ref<creature> sender;
};
struct change {
  savina::colour colour;
};
struct closed {};
struct met {
  std::uint64_t times;
};

class creature : public actor<creature, begin, meet, change, closed> {
 public:
  creature(ref<mall> place, savina::colour first) : place_(std::move(place)), own_(first) {}

  void on(begin) { go_to_place(); }
  void on(meet m) {
    own_ = savina::complement(own_, m.colour);
    met_ += 1;
    must(m.sender.send(change{own_}));
    go_to_place();
  }
  void on(change m) {
    own_ = m.colour;
    met_ += 1;
    go_to_place();
  }
  void on(closed);

 private:
  void go_to_place();

  ref<mall> place_;
  savina::colour own_;
  std::uint64_t met_ = 0;
};

class mall : public actor<mall, meet, met> {
 public:
  mall(std::uint64_t meetings, finish_line* done) : meetings_left_(meetings), done_(done) {}

  void on(meet m) {
    if (meetings_left_ == 0) return must(m.sender.send(closed{}));
    if (!waiting_) {
      waiting_ = std::move(m.sender);
      return;
    }
    meetings_left_ -= 1;
    must(std::exchange(waiting_, {}).send(std::move(m)));
  }
  void on(met m) {
    sum_ += m.times;
    if (++gone_ == savina::chameneos) done_->arrive(sum_);
  }

 private:
  std::uint64_t meetings_left_;
  finish_line* done_;
  ref<creature> waiting_;
  std::uint64_t gone_ = 0;
  std::uint64_t sum_ = 0;
};

void creature::on(closed) {
  must(place_.send(met{met_}));
}
void creature::go_to_place() {
  must(place_.send(meet{own_, self()}));
}

tally chameneos(scale size) {
  const std::uint64_t meetings = size.of(savina::meetings);
  finish_line done;
  sluice_system system;
  return run_to_the_end(meetings, 2 * meetings, done, [&] {
    const ref<mall> place = system->spawn<mall>(meetings, &done);
    for (std::uint64_t i = 0; i < savina::chameneos; ++i) {
      must(system->spawn<creature>(place, savina::colour_of(i)).send(begin{}));
    }
  });
}

// big: an actor that has received all its replies notifies the collector.

class big_member;

struct meet_members {
  std::shared_ptr<const std::vector<ref<big_member>>> members;
};
struct big_ping {
  std::uint64_t from;
};
struct big_pong {
  std::uint64_t from;
};

class big_member : public actor<big_member, meet_members, begin, big_ping, big_pong> {
 public:
  big_member(std::uint64_t index, std::uint64_t pings, ref<collector> sink)
      : index_(index), pings_(pings), picker_(index, savina::big_actors), sink_(std::move(sink)) {}

  void on(meet_members m) { members_ = std::move(m.members); }
  void on(begin) { ping_next(); }
  void on(big_ping m) { must((*members_)[m.from].send(big_pong{index_})); }
  void on(big_pong m) {
    expect_equal(m.from, asked_, "index of the replying actor");
    if (++answered_ < pings_) return ping_next();
    must(sink_.send(end{answered_}));
  }

 private:
  void ping_next() {
    asked_ = picker_.next();
    must((*members_)[asked_].send(big_ping{index_}));
  }

  std::uint64_t index_;
  std::uint64_t pings_;
  savina::partner_picker picker_;
  ref<collector> sink_;
  std::shared_ptr<const std::vector<ref<big_member>>> members_;
  std::uint64_t asked_ = 0;
  std::uint64_t answered_ = 0;
};

tally big(scale size) {
  const std::uint64_t pings = size.of(savina::big_pings);
  const std::uint64_t all = pings * savina::big_actors;
  finish_line done;
  sluice_system system;
  const ref<collector> sink = system->spawn<collector>(savina::big_actors, &done);
  std::vector<ref<big_member>> members;
  for (std::uint64_t i = 0; i < savina::big_actors; ++i) {
    members.push_back(system->spawn<big_member>(i, pings, sink));
  }
  const auto shared = std::make_shared<const std::vector<ref<big_member>>>(members);
  for (const ref<big_member>& each : members) must(each.send(meet_members{shared}));
  return run_to_the_end(all, all, done, [&] {
    for (const ref<big_member>& each : members) must(each.send(begin{}));
  });
}

// bank-transaction: the paying account handles no other message until the other account has
// confirmed.

class account;

struct pay {
  std::uint64_t amount;
  ref<account> payee;
};
struct receive {
  using reply = void;
  std::uint64_t amount;
};
struct paid {};
struct balance {
  std::uint64_t amount;
};
struct report {};

class teller : public actor<teller, begin, paid, balance> {
 public:
  teller(std::uint64_t transactions, finish_line* done)
      : transactions_(transactions), done_(done) {}

  task<> on(begin);
  void on(paid);
  void on(balance m) {
    sum_ += m.amount;
    if (++reported_ == savina::accounts) done_->arrive(sum_);
  }

 private:
  std::uint64_t transactions_;
  finish_line* done_;
  std::vector<ref<account>> accounts_;
  std::uint64_t paid_ = 0;
  std::uint64_t reported_ = 0;
  std::uint64_t sum_ = 0;
};

class account : public actor<account, pay, receive, report> {
 public:
  explicit account(ref<teller> owner) : teller_(std::move(owner)) {}

  task<> on(pay m) {
    balance_ -= m.amount;
    co_await m.payee.ask(receive{m.amount});
    must(teller_.send(paid{}));
  }
  void on(receive m) { balance_ += m.amount; }
  void on(report) { must(teller_.send(balance{balance_})); }

 private:
  ref<teller> teller_;
  std::uint64_t balance_ = savina::first_balance;
};

task<> teller::on(begin) {
  for (std::uint64_t i = 0; i < savina::accounts; ++i) {
    accounts_.push_back(spawn<account>(self()));
  }
  savina::transfer_picker picker;
  for (std::uint64_t i = 0; i < transactions_; ++i) {
    const savina::transfer next = picker.next();
    pay m{next.amount, accounts_[next.payee]};
    const ref<account>& from = accounts_[next.payer];
    if (!from.try_send(std::move(m))) must(co_await from.async_send(std::move(m)));
  }
}

void teller::on(paid) {
  if (++paid_ < transactions_) return;
  for (const ref<account>& each : accounts_) must(each.send(report{}));
}

tally bank_transaction(scale size) {
  const std::uint64_t transactions = size.of(savina::transactions);
  finish_line done;
  sluice_system system;
  actor_options o;
  o.mailbox.capacity = savina::transactions;  // replies accumulate while the teller still sends
  return run_to_the_end(transactions, savina::accounts * savina::first_balance, done, [&] {
    must(system->spawn_with<teller>(o, transactions, &done).send(begin{}));
  });
}

const registration added{[](suite& s) {
  s.add("savina-ping-pong", "sluice", work_per_second(ping_pong));
  s.add("savina-thread-ring", "sluice", work_per_second(thread_ring));
  s.add("savina-counting", "sluice", work_per_second(counting));
  s.add("savina-fork-join-create", "sluice", work_per_second(fork_join_create));
  s.add("savina-fork-join-throughput", "sluice", work_per_second(fork_join_throughput));
  s.add("savina-chameneos", "sluice", work_per_second(chameneos));
  s.add("savina-big", "sluice", work_per_second(big));
  s.add("savina-bank-transaction", "sluice", work_per_second(bank_transaction));
}};

}  // namespace
}  // namespace sluice::bench
