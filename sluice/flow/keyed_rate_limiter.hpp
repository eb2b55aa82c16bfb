#pragma once

// A rate limit for each customer, address or tenant: one token bucket per key, created on the first
// request and dropped when it is full again.
//
// Use it where one busy client must not take the share of the others. Prefer `rate_limiter` for
// one limit over all.
//
// Guarantees: any thread may call anything. Each key behaves as a `rate_limiter` of its own, in
// order, precision, cancel safety and where you resume. A bucket that is full and unused is
// equivalent to a new one, so it may be dropped at any time: memory follows the active keys, and
// there are never more than `keys_max`. When all of these are active, a request with another key
// gets `full` at once; so does a request for more than the burst. Destroying it with waiters
// inside is a broken contract. Hash and Equal must not throw.
// Cost: one short lock and one look-up a call; a new key allocates; finding a key to drop is
// O(log keys). Nothing runs in the background.
//
//     keyed_rate_limiter<std::string> per_client({.rate = {10, 1s}, .burst = 20,
//                                                 .keys_max = 100'000});
//     if (!per_client.try_acquire(client)) reply(429);
//     (void)co_await per_client.async_acquire(client);

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/base/work.hpp"
#include "sluice/flow/rate_limiter.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/named.hpp"

namespace sluice {

struct keyed_rate_limiter_options {
  sluice::rate rate;
  std::int64_t burst = 1;
  std::size_t keys_max = 0;        // at least 1
  sluice::clock* clock = nullptr;  // null: the real clock; outlives the limiter
  std::string name{};              // shown in reports; empty: none
};

template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
class keyed_rate_limiter {
  struct entry;
  class op;

 public:
  using options = keyed_rate_limiter_options;
  using count_type = rate_limiter::count_type;

  explicit keyed_rate_limiter(options o)
      : options_(std::move(o)), clock_(options_.clock != nullptr ? *options_.clock : real_clock()) {
    check(options_.keys_max > 0, "sluice::keyed_rate_limiter", "keys_max of at least 1");
    // Checks the rate and the burst.
    (void)detail::token_bucket(options_.rate, options_.burst, -1, clock_.now());
    if (!options_.name.empty()) wait_report::set_name(this, options_.name);
  }
  keyed_rate_limiter(const keyed_rate_limiter&) = delete;
  keyed_rate_limiter& operator=(const keyed_rate_limiter&) = delete;
  ~keyed_rate_limiter() { wait_report::destroyed(this); }

  status acquire(const Key& key, count_type n = 1, call_site at = {}) {
    return acquire(key, n, wait_limits(at));
  }
  // Blocks until n tokens are taken, within the limits. Returns ok, full, timed_out or stopped.
  status acquire(const Key& key, count_type n, const wait_limits& limits) {
    return block_on(op(*this, key, n, &limits.at), limits);
  }
  status acquire(const Key& key, const wait_limits& limits) { return acquire(key, 1, limits); }
  bool try_acquire(const Key& key, count_type n = 1, call_site at = {}) {
    const pin held(*this, key);
    return held.bucket() != nullptr && held.bucket()->try_acquire(n, at);
  }
  // co_await returns a status. The key is needed only during the call.
  auto async_acquire(const Key& key, count_type n = 1, wait_limits limits = {}) {
    const call_site at = limits.at;
    return awaitable<op>(std::move(limits), *this, key, n, &at);
  }

  // Sets the rate and burst of every key.
  void set(sluice::rate r, count_type burst) {
    const run_scope coroutines_last;  // woken coroutines must not run inside the lock
    const std::lock_guard hold(mutex_);
    options_.rate = r;
    options_.burst = burst;
    for (auto& [key, one] : entries_) {
      one.limiter.set(r, burst);
      one.not_full_before = time_point::min();  // must be checked again
    }
  }

  // Drops every key whose bucket is full and unused. New keys do the same, two at a time.
  std::size_t forget_idle() {
    const std::lock_guard hold(mutex_);
    return forget(entries_.size());
  }

  std::size_t keys() const {
    const std::lock_guard hold(mutex_);
    return entries_.size();
  }
  // The number of waiters for tokens of this key.
  std::size_t waiting(const Key& key) const {
    const std::lock_guard hold(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? 0 : found->second.limiter.waiting();
  }
  // The number of requests refused because all keys were in use.
  std::uint64_t turned_away() const {
    const std::lock_guard hold(mutex_);
    return turned_away_;
  }

 private:
  struct entry {
    explicit entry(const options& o)
        : limiter({.rate = o.rate, .burst = o.burst, .clock = o.clock}) {}
    rate_limiter limiter;
    const Key* key = nullptr;
    std::size_t users = 0;                           // calls that are inside
    time_point not_full_before = time_point::min();  // as of the last check
  };

  // One call's use of a bucket, which is not dropped meanwhile.
  class pin {
   public:
    pin(keyed_rate_limiter& in, const Key& key) : in_(in), entry_(in.enter(key)) {}
    pin(const pin&) = delete;
    pin& operator=(const pin&) = delete;
    ~pin() {
      if (entry_ != nullptr) in_.leave(*entry_);
    }
    const keyed_rate_limiter& in() const noexcept { return in_; }
    rate_limiter* bucket() const noexcept { return entry_ != nullptr ? &entry_->limiter : nullptr; }

   private:
    keyed_rate_limiter& in_;
    entry* const entry_;
  };

  class op {
   public:
    op(keyed_rate_limiter& in, const Key& key, count_type n, const call_site* at) : pin_(in, key) {
      if (pin_.bucket() != nullptr) inner_.emplace(*pin_.bucket(), n, at);
    }
    bool ready() const noexcept { return false; }
    bool attempt() noexcept { return !inner_ || inner_->attempt(); }
    enlisted enlist(waiter& waiting) noexcept { return inner_->enlist(waiting); }
    bool woken() const noexcept { return true; }
    void retract() noexcept { inner_->retract(); }
    bool spins_linked() const noexcept { return true; }
    spin_budget& spin() noexcept { return inner_->spin(); }
    status result(status ended) const noexcept {
      if (!inner_) return ended ? status(status::full) : ended;
      return inner_->result(ended);
    }
    wait_report::subject wait_subject() const noexcept {
      auto bucket = inner_->wait_subject();
      bucket.object = &pin_.in();
      bucket.type = "sluice::keyed_rate_limiter";
      return bucket;
    }

   private:
    const pin pin_;
    std::optional<rate_limiter::op> inner_;
  };

  entry* enter(const Key& key) {
    const std::lock_guard hold(mutex_);
    auto found = entries_.find(key);
    if (found == entries_.end()) {
      forget(2);  // more than are added, so that new keys drain the keys of an earlier peak
      if (entries_.size() >= options_.keys_max) {
        ++turned_away_;
        return nullptr;
      }
      oldest_.reserve(entries_.size() + 1);
      found = entries_.try_emplace(key, options_).first;
      found->second.key = &found->first;
      put_in_order(found->second);
    }
    ++found->second.users;
    return &found->second;
  }
  void leave(entry& one) {
    const std::lock_guard hold(mutex_);
    --one.users;
  }

  // A heap by the time before which a bucket is not full. That time only grows while tokens are
  // taken, so an entry is checked, and put back in its place, when it reaches the front.
  static bool later(const entry* a, const entry* b) noexcept {
    return a->not_full_before > b->not_full_before;
  }
  void put_in_order(entry& one) {
    oldest_.push_back(&one);
    std::push_heap(oldest_.begin(), oldest_.end(), later);
  }
  std::size_t forget(std::size_t most) {  // must hold mutex_
    const auto now = clock_.now();
    std::size_t dropped = 0;
    std::vector<entry*> in_use;
    while (dropped < most && !oldest_.empty() && oldest_.front()->not_full_before <= now) {
      std::pop_heap(oldest_.begin(), oldest_.end(), later);
      entry& first = *oldest_.back();
      oldest_.pop_back();
      first.not_full_before = first.limiter.full_at();
      if (first.not_full_before > now) {
        put_in_order(first);
      } else if (first.users > 0) {
        in_use.push_back(&first);
      } else {
        entries_.erase(entries_.find(*first.key));
        ++dropped;
      }
    }
    for (entry* const one : in_use) put_in_order(*one);
    return dropped;
  }

  mutable mutex mutex_;
  // Protected by mutex_, except the entries' limiters, which have their own locks.
  options options_;
  clock& clock_;
  std::unordered_map<Key, entry, Hash, Equal> entries_;
  std::vector<entry*> oldest_;
  std::uint64_t turned_away_ = 0;
};

}  // namespace sluice
