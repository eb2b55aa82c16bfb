#pragma once

// The queue of an executor: a bounded queue for the user's submissions, with all policies and
// waits, and an unbounded lane for posts.
//
// It is a `queue_core`, so closing, waiting producers, deadlines, stops, dropping and counting are
// those of every queue. While both lanes have items they alternate, so neither can starve the
// other. A post comes out as a submission that runs it.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/base/atomic.hpp"
#include "sluice/base/work.hpp"
#include "sluice/executor/detail/lent_batch.hpp"
#include "sluice/executor/submission.hpp"
#include "sluice/queue/detail/queue_core.hpp"
#include "sluice/queue/default_priority.hpp"
#include "sluice/queue/detail/priority_store.hpp"
#include "sluice/queue/detail/ring_store.hpp"

namespace sluice::detail {

class intake_store {
 public:
  using ring = detail::ring_store<submission>;
  using by_priority = detail::priority_store<submission, default_priority>;

  intake_store(std::size_t capacity, const std::optional<by_priority::order>& order) {
    if (order.has_value()) {
      queued_.emplace<by_priority>(capacity, default_priority{}, *order);
    } else {
      queued_.emplace<ring>(capacity, ring::weights::none);
    }
  }

  bool empty() noexcept { return !ready(); }
  // If both lanes are empty, steals back a lent submission that has not begun.
  bool ready() noexcept {
    return !posts_.empty() || !queued_empty() || returned_ || (!lent_.empty() && take_back_one());
  }
  bool settle(bool) const noexcept { return false; }

  void put(submission& f, std::size_t weight) {
    if (until_timed_ != 0 && --until_timed_ == 0) [[unlikely]] stamp(f);
    if (auto* const r = std::get_if<ring>(&queued_)) [[likely]] {
      r->put(f, weight);
    } else {
      std::get<by_priority>(queued_).put(f, weight);
    }
  }

  template <class Sink>
  std::size_t take(Sink&& sink) {
    if (returned_) [[unlikely]] {
      count_beside(-1);
      sink(std::exchange(returned_, submission()));
      return 0;
    }
    const bool posts_turn = !posts_.empty() && (post_is_next_ || queued_empty());
    post_is_next_ = !posts_turn;
    if (posts_turn) {
      submission resumption([item = &pop_post()] { item->run(); });
      resumption.mark = submission::kind::posted;
      sink(std::move(resumption));
      return 0;
    }
    return visit([&](auto& store) { return store.take(sink); });
  }
  template <class Sink>
  std::size_t evict_oldest(Sink&& sink) {
    return visit([&](auto& store) { return store.evict_oldest(sink); });
  }
  template <class Sink>
  std::size_t evict_newest(Sink&& sink) {
    return visit([&](auto& store) { return store.evict_newest(sink); });
  }
  bool matters_least(const submission& f) const {
    const auto* const store = std::get_if<by_priority>(&queued_);
    return store != nullptr && store->matters_least(f);
  }

  // Items that do not count against the capacity: posts, and a stolen-back submission. A guess when
  // read without the lock.
  std::size_t uncounted() const noexcept { return beside_.load(relaxed); }
  void add_post(work& item) noexcept {
    posts_.push_back(item);
    count_beside(+1);
  }

  // Makes the next `take` take a submission. Returns false if no submission is inside.
  bool queued_is_next() noexcept {
    post_is_next_ = false;
    return returned_ || (!lent_.empty() && take_back_one()) || !queued_empty();
  }

  // Returns true if several submissions may be lent at once: with posts inside, or by priority,
  // items are taken one by one.
  bool may_lend() const noexcept { return posts_.empty() && std::holds_alternative<ring>(queued_); }
  void lend(lent_batch& batch) noexcept { batch.begin(lent_, ++lends_); }
  // Returns true if a submission was lent at least `batches` batches ago and has not begun; the
  // next `take` takes it. Its thread runs a long function, and later submissions must not overtake.
  bool has_overdue(std::size_t batches) noexcept {
    if (returned_) return true;
    return !lent_.empty() && lends_ - lent_.front().number() >= batches && take_back_one();
  }

  // Threads that poll for work and need not be woken.
  std::size_t searching_threads() const noexcept { return looking_.load(relaxed); }
  // relaxed: a thread that stops polling then takes the lock, and sees work added before.
  void look(int change) noexcept { looking_.fetch_add(static_cast<std::size_t>(change), relaxed); }
  // Submissions that are lent and have not begun.
  std::size_t lent_count() const noexcept {
    std::size_t count = returned_ ? 1 : 0;
    lent_.for_each([&](const lent_batch& each) { count += each.left(); });
    return count;
  }

  // Marks the first and then every `every`th submission with the time; 0: none.
  void time_one_in(std::uint32_t every, const clock& time) noexcept {
    time_every_ = every;
    until_timed_ = every == 0 ? 0 : 1;
    time_ = &time;
  }

  bool retired = false;  // closed, and no consumer is left: posts are refused

 private:
  bool queued_empty() const noexcept {
    const auto* const r = std::get_if<ring>(&queued_);
    return r != nullptr ? r->empty() : std::get<by_priority>(queued_).empty();
  }
  template <class F>
  decltype(auto) visit(F&& f) {
    if (auto* const r = std::get_if<ring>(&queued_)) [[likely]] return f(*r);
    return f(std::get<by_priority>(queued_));
  }
  void stamp(submission& f) noexcept {
    f.mark = submission::kind::timed;
    f.stamp = time_->now().time_since_epoch().count();
    until_timed_ = time_every_;
  }
  bool take_back_one() noexcept {
    while (!lent_.empty()) {
      if (lent_.front().take(returned_)) {
        count_beside(+1);
        return true;
      }
      lent_.pop_front();  // the whole batch has begun
    }
    return false;
  }
  void count_beside(int change) noexcept {  // must hold the queue's lock
    beside_.store(beside_.load(relaxed) + static_cast<std::size_t>(change), relaxed);
  }
  work& pop_post() noexcept {
    count_beside(-1);
    return posts_.pop_front();
  }

  std::variant<std::monostate, ring, by_priority> queued_;  // never monostate
  intrusive_list<work> posts_;
  intrusive_list<lent_batch> lent_;  // batches with submissions that may not have begun
  std::uint64_t lends_ = 0;
  submission returned_;              // a stolen-back submission, for the next `take`
  atomic<std::size_t> beside_{0};
  atomic<std::size_t> looking_{0};
  bool post_is_next_ = true;
  std::uint32_t time_every_ = 0;
  std::uint32_t until_timed_ = 0;
  const clock* time_ = nullptr;
};

class intake : public detail::queue_core<submission, intake_store> {
  using base = detail::queue_core<submission, intake_store>;

 public:
  // `type` is used in messages. With an order the most urgent submission comes first, else FIFO.
  intake(const char* type, queue_options<submission> o,
         const std::optional<intake_store::by_priority::order>& order = {})
      : intake(type, o.capacity, std::move(o), order) {}

  // As in the store. Call it before the first submission.
  void time_one_in(std::uint32_t every, const clock& time) noexcept {
    store_.time_one_in(every, time);
  }

  // Returns false if the intake has retired: the caller must run the item another way.
  bool post(work& item) noexcept {
    return alter([&](intake_store& store) {
      if (store.retired) return false;
      store.add_post(item);
      return true;
    });
  }

  // Called by the last consumer before it ends. Returns false if work has arrived: continue.
  bool retire() noexcept {
    return alter([&](intake_store& store) {
      store.retired = is_closed() && store.empty();
      return store.retired;
    });
  }

  // Submissions and posts inside. A guess: reads without the lock.
  std::size_t pending() const noexcept { return size() + store_.uncounted(); }

  // A pop that enlists immediately: the caller has polled already.
  outcome<submission> wait_for_one(const wait_limits& limits) {
    return block_on(patient_pop(*this), limits);
  }

  // Removes every submission, in the order in which they would have run. Posts stay.
  std::vector<submission> take_back() {
    std::vector<submission> unstarted;
    while (const auto inside = queued()) {
      unstarted.reserve(unstarted.size() + inside);  // not under the lock
      base::take_while(
          [&](intake_store& store) {
            return unstarted.size() < unstarted.capacity() && store.queued_is_next();
          },
          [&](submission&& f) { unstarted.push_back(std::move(f)); });
    }
    return unstarted;
  }

  // Fills `batch` without waiting: with one submission, or with more if the queue is long, up to
  // half of the caller's share among `threads`. Returns false if the queue is empty.
  bool lend(lent_batch& batch, std::size_t threads) {
    std::size_t wanted = 0;
    std::size_t given = 0;
    base::take_while(
        [&](intake_store& store) {
          if (given == 0) {
            batch.clear();
            wanted = store.may_lend()
                         ? std::clamp<std::size_t>(size() / (2 * threads), 1, lent_batch::most)
                         : 1;
          }
          if (given < wanted && (store.has_overdue(2 * threads) || store.ready())) {
            ++given;
            return true;
          }
          store.lend(batch);
          return false;
        },
        [&](submission&& f) { batch.add(std::move(f)); });
    return given > 0;
  }

  // Between the two calls the calling thread polls for work and need not be woken. After the
  // second it must check once more under the lock.
  void start_looking() noexcept { store_.look(+1); }
  void stop_looking() noexcept { store_.look(-1); }

  // Called by the owner of a batch that has begun completely, before it leaves.
  void give_up(lent_batch& batch) {
    alter([&](intake_store&) { batch.clear(); });
  }

  // Submissions inside, including lent submissions that have not begun.
  std::size_t queued() const noexcept {
    return base::look([&](const intake_store& store) { return size() + store.lent_count(); });
  }

 private:
  class patient_pop : public base::pop_op {
   public:
    using base::pop_op::pop_op;
    static constexpr bool spins_linked() noexcept { return true; }
  };

  intake(const char* type, std::size_t capacity, queue_options<submission>&& o,
         const std::optional<intake_store::by_priority::order>& order)
      : base(type, std::move(o), base::zero_capacity::refused, capacity, order) {}
};

}  // namespace sluice::detail
