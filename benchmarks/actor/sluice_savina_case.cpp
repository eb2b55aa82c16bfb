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

// Told by each that has done its part.
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

// thread-ring: the token says how many hops are left; who gets the last one is done.

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
    const ref<counter> to = spawn<counter>();
    for (std::uint64_t i = 0; i < increments_; ++i) {
      if (!to.try_send(add{})) must(co_await to.async_send(add{}));
    }
    done_->arrive(co_await to.ask(total{}));
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

// Sixty mailboxes of the usual 1024 hold more than a core's cache does, and then each message is
// waited for. So few stay warm.
constexpr std::uint32_t throughput_capacity = 64;

struct work {};

class worker : public actor<worker, work> {
 public:
  worker(std::uint64_t messages, ref<collector> to) : messages_(messages), to_(std::move(to)) {}
  void on(work) {
    keep(savina::compute());
    if (++handled_ == messages_) must(to_.send(end{handled_}));
  }

 private:
  std::uint64_t messages_;
  std::uint64_t handled_ = 0;
  ref<collector> to_;
};

class distributor : public actor<distributor, begin> {
 public:
  distributor(std::uint64_t messages, ref<collector> to)
      : messages_(messages), to_(std::move(to)) {}

  task<> on(begin) {
    std::vector<ref<worker>> workers;
    actor_options o;
    o.mailbox.capacity = throughput_capacity;
    for (std::uint64_t i = 0; i < savina::fork_join_actors; ++i) {
      workers.push_back(spawn_with<worker>(o, messages_, to_));
    }
    for (std::uint64_t i = 0; i < messages_; ++i) {
      for (const ref<worker>& each : workers) {
        if (!each.try_send(work{})) must(co_await each.async_send(work{}));
      }
    }
  }

 private:
  std::uint64_t messages_;
  ref<collector> to_;
};

tally fork_join_throughput(scale size) {
  const std::uint64_t messages = size.of(savina::fork_join_messages);
  const std::uint64_t all = messages * savina::fork_join_actors;
  finish_line done;
  sluice_system system;
  return run_to_the_end(all, all, done, [&] {
    const ref<collector> to = system->spawn<collector>(savina::fork_join_actors, &done);
    must(system->spawn<distributor>(messages, to).send(begin{}));
  });
}

// chameneos: of two that come, the first is told of the second, and tells him his new colour.

class creature;
class mall;

struct meet {
  savina::colour its_colour;
  ref<creature> who;
};
struct change {
  savina::colour to;
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
    own_ = savina::complement(own_, m.its_colour);
    met_ += 1;
    must(m.who.send(change{own_}));
    go_to_place();
  }
  void on(change m) {
    own_ = m.to;
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
    if (meetings_left_ == 0) return must(m.who.send(closed{}));
    if (!waiting_) {
      waiting_ = std::move(m.who);
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

// big: whoever has had all his answers tells the collector.

class big_member;

struct meet_everybody {
  std::shared_ptr<const std::vector<ref<big_member>>> everybody;
};
struct big_ping {
  std::uint64_t from;
};
struct big_pong {
  std::uint64_t from;
};

class big_member : public actor<big_member, meet_everybody, begin, big_ping, big_pong> {
 public:
  big_member(std::uint64_t index, std::uint64_t pings, ref<collector> to)
      : index_(index), pings_(pings), picker_(index, savina::big_actors), to_(std::move(to)) {}

  void on(meet_everybody m) { everybody_ = std::move(m.everybody); }
  void on(begin) { ping_next(); }
  void on(big_ping m) { must((*everybody_)[m.from].send(big_pong{index_})); }
  void on(big_pong m) {
    expect_equal(m.from, asked_, "who answered");
    if (++answered_ < pings_) return ping_next();
    must(to_.send(end{answered_}));
  }

 private:
  void ping_next() {
    asked_ = picker_.next();
    must((*everybody_)[asked_].send(big_ping{index_}));
  }

  std::uint64_t index_;
  std::uint64_t pings_;
  savina::partner_picker picker_;
  ref<collector> to_;
  std::shared_ptr<const std::vector<ref<big_member>>> everybody_;
  std::uint64_t asked_ = 0;
  std::uint64_t answered_ = 0;
};

tally big(scale size) {
  const std::uint64_t pings = size.of(savina::big_pings);
  const std::uint64_t all = pings * savina::big_actors;
  finish_line done;
  sluice_system system;
  const ref<collector> to = system->spawn<collector>(savina::big_actors, &done);
  std::vector<ref<big_member>> members;
  for (std::uint64_t i = 0; i < savina::big_actors; ++i) {
    members.push_back(system->spawn<big_member>(i, pings, to));
  }
  const auto everybody = std::make_shared<const std::vector<ref<big_member>>>(members);
  for (const ref<big_member>& each : members) must(each.send(meet_everybody{everybody}));
  return run_to_the_end(all, all, done, [&] {
    for (const ref<big_member>& each : members) must(each.send(begin{}));
  });
}

// bank-transaction: the account that pays handles nothing else until it is told that the other has
// the money.

class account;

struct pay {
  std::uint64_t amount;
  ref<account> to;
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
  explicit account(ref<teller> of) : of_(std::move(of)) {}

  task<> on(pay m) {
    balance_ -= m.amount;
    co_await m.to.ask(receive{m.amount});
    must(of_.send(paid{}));
  }
  void on(receive m) { balance_ += m.amount; }
  void on(report) { must(of_.send(balance{balance_})); }

 private:
  ref<teller> of_;
  std::uint64_t balance_ = savina::first_balance;
};

task<> teller::on(begin) {
  for (std::uint64_t i = 0; i < savina::accounts; ++i) {
    accounts_.push_back(spawn<account>(self()));
  }
  savina::transfer_picker picker;
  for (std::uint64_t i = 0; i < transactions_; ++i) {
    const savina::transfer next = picker.next();
    pay m{next.amount, accounts_[next.to]};
    const ref<account>& from = accounts_[next.from];
    if (!from.try_send_ref(m)) must(co_await from.async_send(std::move(m)));
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
  o.mailbox.capacity = savina::transactions;  // the answers gather while he still gives orders
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
