#pragma once

// Where submissions and posts wait until an executor runs them: a bounded queue for the user's
// submissions, with all its policies and waits, and beside it a lane of posts that has no bound.
//
// It is an `exchange`, so closing, waiting producers, deadlines, stops, dropping and counting are
// those of every queue. The two lanes are served in turn while both have something, so that
// neither can starve the other. A post comes out as a submission that runs it.

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
#include "sluice/queue/exchange.hpp"
#include "sluice/queue/priority_store.hpp"
#include "sluice/queue/ring_store.hpp"

namespace sluice::detail {

class intake_store {
 public:
  using ring = ring_store<submission>;
  using by_priority = priority_store<submission, default_priority>;

  intake_store(std::size_t capacity, const std::optional<by_priority::order>& order) {
    if (order.has_value()) {
      queued_.emplace<by_priority>(capacity, default_priority{}, *order);
    } else {
      queued_.emplace<ring>(capacity, ring::weights::none);
    }
  }

  bool empty() noexcept { return !ready(); }
  // When there is nothing else, one that was lent and not begun comes back.
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
  std::size_t evict_latest(Sink&& sink) {
    return visit([&](auto& store) { return store.evict_latest(sink); });
  }
  bool matters_least(const submission& f) const {
    const auto* const store = std::get_if<by_priority>(&queued_);
    return store != nullptr && store->matters_least(f);
  }

  // What does not count against the capacity: posts, and one that came back. Read without the
  // lock, a guess.
  std::size_t uncounted() const noexcept { return beside_.load(relaxed); }
  void add_post(work& item) noexcept {
    posts_.push_back(item);
    count_beside(+1);
  }

  // Lets the next `take` be of a submission. False: there is none.
  bool queued_is_next() noexcept {
    post_is_next_ = false;
    return returned_ || (!lent_.empty() && take_back_one()) || !queued_empty();
  }

  // How many of those inside may be lent at once: posts and the most urgent go one by one.
  bool may_lend() const noexcept { return posts_.empty() && std::holds_alternative<ring>(queued_); }
  void lend(lent_batch& batch) noexcept { batch.begin(lent_, ++lends_); }
  // Something was lent so many batches ago and has not begun: the next `take` is of that. Its
  // thread must be busy with something long, and those that came later must not go on before it.
  bool has_overdue(std::size_t batches) noexcept {
    if (returned_) return true;
    return !lent_.empty() && lends_ - lent_.front().turn() >= batches && take_back_one();
  }

  // Threads that are awake and will look for something in a moment, without being woken.
  std::size_t about_to_look() const noexcept { return looking_.load(relaxed); }
  // relaxed: who stops looking gets the lock after that, and sees what came in before.
  void look(int change) noexcept { looking_.fetch_add(static_cast<std::size_t>(change), relaxed); }
  // Lent, and not begun yet.
  std::size_t lent_count() const noexcept {
    std::size_t count = returned_ ? 1 : 0;
    lent_.for_each([&](const lent_batch& each) { count += each.left(); });
    return count;
  }

  // One submission in so many (0: none), the first included, is marked with the time.
  void time_one_in(std::uint32_t so_many, const clock& time) noexcept {
    time_every_ = so_many;
    until_timed_ = so_many == 0 ? 0 : 1;
    time_ = &time;
  }

  bool retired = false;  // nobody will take anything any more

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
      lent_.pop_front();  // all of it has begun
    }
    return false;
  }
  void count_beside(int change) noexcept {  // under the lock alone
    beside_.store(beside_.load(relaxed) + static_cast<std::size_t>(change), relaxed);
  }
  work& pop_post() noexcept {
    count_beside(-1);
    return posts_.pop_front();
  }

  std::variant<std::monostate, ring, by_priority> queued_;  // never the first
  intrusive_list<work> posts_;
  intrusive_list<lent_batch> lent_;  // of which something may not have begun
  std::uint64_t lends_ = 0;
  submission returned_;              // one of those, on its way to another thread
  atomic<std::size_t> beside_{0};
  atomic<std::size_t> looking_{0};
  bool post_is_next_ = true;
  std::uint32_t time_every_ = 0;
  std::uint32_t until_timed_ = 0;
  const clock* time_ = nullptr;
};

class intake : public exchange<submission, intake_store> {
  using base = exchange<submission, intake_store>;

 public:
  // `type` is named in messages. With an order the most urgent first, else as they came.
  intake(const char* type, queue_options<submission> o,
         const std::optional<intake_store::by_priority::order>& order = {})
      : intake(type, o.capacity, std::move(o), order) {}

  // As in the store; before anything is put in.
  void time_one_in(std::uint32_t so_many, const clock& time) noexcept {
    store_.time_one_in(so_many, time);
  }

  // False: it has retired, and the caller must run the item some other way.
  bool post(work& item) noexcept {
    return alter([&](intake_store& store) {
      if (store.retired) return false;
      store.add_post(item);
      return true;
    });
  }

  // The last consumer's last call. False: something has come in between, go on.
  bool retire() noexcept {
    return alter([&](intake_store& store) {
      store.retired = is_closed() && store.empty();
      return store.retired;
    });
  }

  // Submissions and posts inside; read without the lock, a guess.
  std::size_t pending() const noexcept { return size() + store_.uncounted(); }

  // A pop that joins the line at once: the caller has looked long enough.
  outcome<submission> wait_for_one(const wait_limits& limits) {
    return block_on(patient_pop(*this), limits);
  }

  // Takes out every submission, in the order in which they would have been run. Posts stay.
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

  // Lends what is there without waiting: one, or more for a thread that comes to a long queue, up
  // to half of its share when `threads` divide it. False: there is nothing.
  bool lend(lent_batch& to, std::size_t threads) {
    std::size_t wanted = 0;
    std::size_t given = 0;
    base::take_while(
        [&](intake_store& store) {
          if (given == 0) {
            to.clear();
            wanted = store.may_lend()
                         ? std::clamp<std::size_t>(size() / (2 * threads), 1, lent_batch::most)
                         : 1;
          }
          if (given < wanted && (store.has_overdue(2 * threads) || store.ready())) {
            ++given;
            return true;
          }
          store.lend(to);
          return false;
        },
        [&](submission&& f) { to.add(std::move(f)); });
    return given > 0;
  }

  // Between the two, the calling thread looks for something by itself, and need not be woken. It
  // must look once more, under the lock, after that.
  void start_looking() noexcept { store_.look(+1); }
  void stop_looking() noexcept { store_.look(-1); }

  // The owner has begun all of it and will not come back for more.
  void give_up(lent_batch& batch) {
    alter([&](intake_store&) { batch.clear(); });
  }

  // Submissions inside, those included that are lent and have not begun.
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
