#pragma once

// The implementation of batcher.hpp: due times, push and take, the handler, the end.

#include <algorithm>

#include "sluice/base/detail/callback.hpp"
#include "sluice/flow/batcher.hpp"

namespace sluice {

template <class T>
batcher<T>::batcher(options o, executor* on, std::function<void(batch)> handler)
    : name_(std::move(o.name)),
      size_(o.size),
      wait_(o.wait),
      capacity_(o.capacity != 0 ? o.capacity : o.size * 10),
      overflow_(o.overflow),
      clock_(o.clock != nullptr ? *o.clock : real_clock()),
      on_(on),
      use_(on, executor_user::batcher),
      handler_(std::move(handler)),
      on_drop_(std::move(o.on_drop)),
      on_error_(std::move(o.on_error)),
      items_(capacity_, detail::ring_store<slot>::weights::none),
      alarm_(new detail::wake_timer([this](wake_batch& wakes) {
        aftermath after(*this, &wakes);
        const std::lock_guard hold(guard_);
        disarm();  // it may have been armed again since it began to fire
        serve(after);
      })),
      ended_(*this) {
  const auto require = [&](bool holds, const char* expected) {
    check_named(holds, "sluice::batcher", name_.c_str(), expected);
  };
  require(size_ > 0, "batches of at least 1 item");
  require(capacity_ >= size_, "a capacity of at least one batch");
  require(wait_ >= std::chrono::nanoseconds::zero(), "a wait that is not negative");
  require(overflow_ != overflow::caller_runs,
          "a policy other than caller_runs, which is for executors");
  require(on_ == nullptr || handler_, "a handler to call");
  if (name_.empty()) return;
  wait_report::set_name(this, name_);
  wait_report::set_name(&ended_, name_);
}

template <class T>
batcher<T>::~batcher() {
  if (on_ != nullptr) drain();
  alarm_->leave(clock_);  // not under the lock: `due` may be running
  const std::lock_guard hold(guard_);
  check_named(takers_.empty(), "sluice::batcher", name_.c_str(),
              "no waiters for a batch at its destruction");
  check_named(producers_.empty(), "sluice::batcher", name_.c_str(),
              "no waiters for capacity at its destruction");
  wait_report::destroyed(this);
}

// ---- due times

template <class T>
time_point batcher<T>::due_at() const {
  const auto arrived = items_.front().arrived;
  const auto longest = time_point::max() - std::max(arrived, time_point{});
  return wait_ >= longest ? time_point::max() : arrived + wait_;
}

template <class T>
std::size_t batcher<T>::due() const {
  const auto inside = queued_.load(relaxed);
  if (inside >= size_) return size_;
  if (inside == 0) return 0;
  const bool now = closed_.load(relaxed) || flushed_ > 0 || clock_.now() >= due_at();
  return now ? inside : 0;
}

// The timer runs only while a consumer waits.
template <class T>
bool batcher<T>::arm() {
  const bool waited_for = on_ != nullptr ? !scheduled_ : !takers_.empty();
  if (!waited_for || queued_.load(relaxed) == 0) {
    disarm();
    return false;
  }
  const auto when = due_at();
  if (armed_for_ == when) return false;
  disarm();
  if (when == time_point::max() || alarm_->is_coming()) return false;  // it will check anyway
  if (!clock_.arm(*alarm_, when)) return true;
  armed_for_ = when;
  return false;
}

template <class T>
void batcher<T>::disarm() noexcept {
  if (!armed_for_.has_value()) return;
  clock_.disarm(*alarm_);
  armed_for_.reset();
}

// ---- push and take

template <class T>
void batcher<T>::accept(T& item) {
  slot made{std::move(item), clock_.now()};
  items_.put(made, 0);
  queued_.store(queued_.load(relaxed) + 1, release);  // release: pairs with the acquire in is_open
  ++counts_.pushed;
}

template <class T>
bool batcher<T>::offer(T& item, status& done, std::optional<T>& dropped, aftermath& after) {
  done = status::ok;
  if (closed_.load(relaxed)) {
    done = status::closed;
    return true;
  }
  if (queued_.load(relaxed) == capacity_) {
    done = status::full;
    if (overflow_ == overflow::block) return false;
    if (overflow_ == overflow::reject) {
      ++counts_.rejected;
      return true;
    }
    ++counts_.dropped;
    if (overflow_ == overflow::drop_newest) {
      dropped.emplace(std::move(item));
      done = status::dropped;
      return true;
    }
    const auto sink = [&](slot&& old) { dropped.emplace(std::move(old.item)); };
    if (overflow_ == overflow::drop_oldest) {
      items_.evict_oldest(sink);
    } else {
      items_.evict_newest(sink);
    }
    queued_.store(capacity_ - 1, relaxed);  // incremented again below
    done = status::ok;
  }
  accept(item);
  serve(after);
  return true;
}

template <class T>
void batcher<T>::take(batch& into, std::size_t count, aftermath& after) {
  for (std::size_t i = 0; i < count; ++i) {
    items_.take([&](slot&& from) { into.push_back(std::move(from.item)); });
  }
  flushed_ -= std::min(flushed_, count);
  const auto left = queued_.load(relaxed) - count;
  queued_.store(left, release);  // release: pairs with the acquire in is_open
  ++counts_.batches;
  if (count == size_) ++counts_.full;
  if (left == 0 && closed_.load(relaxed)) after.may_have_ended = true;
}

template <class T>
bool batcher<T>::serve_takers(aftermath& after) {
  if (on_ != nullptr) {
    if (scheduled_ || due() == 0) return false;
    scheduled_ = true;
    turns_.fetch_add(1, relaxed);  // under the lock, before queued_ can be seen to be 0
    after.turn = true;
    return false;
  }
  bool moved = false;
  while (!takers_.empty()) {
    const auto count = due();
    if (count == 0) break;
    auto* const node = claim_front<take_node>(takers_);
    if (node == nullptr) break;
    take(node->taken, count, after);
    after.wakes.add(*node->waiting);
    moved = true;
  }
  return moved;
}

template <class T>
bool batcher<T>::serve_producers(aftermath& after) {
  bool moved = false;
  while (!producers_.empty() && queued_.load(relaxed) < capacity_ && !closed_.load(relaxed)) {
    auto* const node = claim_front<push_node>(producers_);
    if (node == nullptr) break;
    accept(*node->item);
    after.wakes.add(*node->waiting);
    moved = true;
  }
  return moved;
}

template <class T>
void batcher<T>::serve(aftermath& after) {
  bool again = true;
  while (again) {
    again = serve_takers(after);
    again = serve_producers(after) || again;
    if (!again) again = arm();
  }
  if (!closed_.load(relaxed) || queued_.load(relaxed) > 0) return;
  while (auto* const node = claim_front<take_node>(takers_)) {
    node->result = status::closed;
    after.wakes.add(*node->waiting);
  }
}

// ---- the handler

template <class T>
void batcher<T>::run() noexcept {
  constexpr int batches_a_turn = 8;
  for (int left = batches_a_turn; left > 0; --left) {
    batch items;
    items.reserve(size_);
    {
      aftermath after(*this);
      const std::lock_guard hold(guard_);
      const auto count = due();
      if (count > 0) {
        take(items, count, after);
      } else {
        scheduled_ = false;
      }
      serve(after);
    }
    if (items.empty()) {
      // acq_rel: pairs with the acquire in is_open. The batcher may be destroyed once the guard is
      // released.
      ended_.open_gate([this] {
        turns_.fetch_sub(1, acq_rel);
        return ended_.is_open();
      });
      return;
    }
    handle(std::move(items));
  }
  on_->post(*this);  // to the back of the executor's queue
}

template <class T>
void batcher<T>::handle(batch&& items) noexcept {
  const auto* const before = std::exchange(handling_, this);
  try {
    handler_(std::move(items));
  } catch (...) {
    {
      const std::lock_guard hold(guard_);
      ++counts_.failed;
    }
    detail::report_to(on_error_, "the handler of batcher", name_, std::current_exception());
  }
  handling_ = before;
}

// ---- the end

template <class T>
void batcher<T>::flush() {
  aftermath after(*this);
  const std::lock_guard hold(guard_);
  flushed_ = queued_.load(relaxed);
  serve(after);
}

template <class T>
bool batcher<T>::close_intake(aftermath& after) {
  if (closed_.load(relaxed)) return false;
  closed_.store(true, release);  // release: pairs with the acquire in is_closed
  while (auto* const node = claim_front<push_node>(producers_)) {
    node->result = status::closed;
    after.wakes.add(*node->waiting);
  }
  after.may_have_ended = true;
  return true;
}

template <class T>
bool batcher<T>::close() {
  aftermath after(*this);
  const std::lock_guard hold(guard_);
  if (!close_intake(after)) return false;
  serve(after);
  return true;
}

template <class T>
void batcher<T>::check_outside() const noexcept {
  check_named(handling_ != this, "sluice::batcher", name_.c_str(),
              "not to be waited for in its own handler");
}

template <class T>
void batcher<T>::drain() {
  check_outside();
  close();
  ended_.wait();
}

template <class T>
std::vector<T> batcher<T>::stop() {
  check_outside();
  std::vector<T> left;
  left.reserve(capacity_);  // not under the lock
  {
    aftermath after(*this);
    const std::lock_guard hold(guard_);
    close_intake(after);
    while (!items_.empty()) {
      items_.take([&](slot&& from) { left.push_back(std::move(from.item)); });
    }
    queued_.store(0, release);  // release: pairs with the acquire in is_open
    after.may_have_ended = true;
    serve(after);
  }
  stop_.request_stop();
  ended_.wait();
  return left;
}

template <class T>
std::vector<T> batcher<T>::shutdown(const wait_limits& limits) {
  check_outside();
  close();
  return ended_.wait(limits) ? std::vector<T>() : stop();
}

template <class T>
status batcher<T>::wait_ended(const wait_limits& limits) {
  check_outside();
  return ended_.wait(limits);
}

// ---- state

template <class T>
std::size_t batcher<T>::waiting_to_push() const noexcept {
  const std::lock_guard hold(guard_);
  return producers_.size();
}

template <class T>
std::size_t batcher<T>::waiting_to_take() const noexcept {
  const std::lock_guard hold(guard_);
  return takers_.size();
}

template <class T>
batcher_stats batcher<T>::stats() const {
  const std::lock_guard hold(guard_);
  auto now = counts_;
  now.queued = queued_.load(relaxed);
  return now;
}

}  // namespace sluice
