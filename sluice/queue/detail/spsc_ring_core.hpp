#pragma once

// Bodies of spsc_ring: push and pop without waiting, the waiting state of a side, closing.

#include "sluice/base/race_checked.hpp"
#include "sluice/queue/spsc_ring.hpp"
#include "sluice/sync/backoff.hpp"

namespace sluice {

template <class T>
spsc_ring<T>::spsc_ring(options o)
    : name_(o.name),
      capacity_(o.capacity),
      mask_(mask_for(o)),
      slots_(std::allocator<T>().allocate(static_cast<std::size_t>(mask_ + 1))),
      rejects_(o.overflow == overflow::reject) {
  if (!name_.empty()) wait_report::set_name(this, name_);
}

template <class T>
std::uint64_t spsc_ring<T>::mask_for(const options& o) {
  const char* const expected = o.problem();
  check_named(expected == nullptr, type, o.name.c_str(), expected);
  return std::bit_ceil(std::uint64_t{o.capacity}) - 1;
}

template <class T>
spsc_ring<T>::~spsc_ring() {
  // A side may have seen the other's index, and destroy the ring, before the other's call has
  // ended: waits for its end. acquire: pairs with the release in end_push and end_pop.
  for (backoff again; pushing_.load(acquire) || popped_.load(acquire) != head_.load(relaxed);) {
    again.pause();
  }
  {
    const std::lock_guard hold(guard_);  // a close may still have to release it
    check_named(consumer_.list.empty(), type, name_.c_str(),
                "no consumer waiting inside at its destruction");
    check_named(producer_.list.empty(), type, name_.c_str(),
                "no producer waiting inside at its destruction");
  }
  const auto tail = tail_.load(acquire);
  for (auto head = head_.load(acquire); head != tail; ++head) std::destroy_at(at(head));
  std::allocator<T>().deallocate(slots_, static_cast<std::size_t>(mask_ + 1));
  wait_report::destroyed(this);
}

// ---- the producer's end

template <class T>
inline std::size_t spsc_ring<T>::free_slots(std::uint64_t tail) {
  if (tail - head_seen_ >= capacity_) {
    wait_report::used(this, wait_report::side::producer);
    // acquire: pairs with the release in end_pop, so the consumer has finished with the slots.
    head_seen_ = head_.load(acquire);
    saw(most_by_producer_, static_cast<std::size_t>(tail - head_seen_));
  }
  return capacity_ - static_cast<std::size_t>(tail - head_seen_);
}

// Returns false if the ring is closed.
template <class T>
inline bool spsc_ring<T>::begin_push() {
  check_named(!pushing_.load(relaxed), type, name_.c_str(), "one producer at a time");
  pushing_.store(true, relaxed);
  seam::light_barrier();  // pairs with the heavy one in close
  if (!closed_.load(relaxed)) [[likely]] return true;
  pushing_.store(false, release);
  seal();
  return false;
}

template <class T>
inline void spsc_ring<T>::end_push(std::uint64_t tail) {
  wake_batch wakes;
  tail_.store(tail, release);  // release: pairs with the acquire in items
  seam::light_barrier();       // pairs with the heavy one in enlist
  if (consumer_.waits.load(relaxed)) [[unlikely]] {
    claim(consumer_, wakes, [this] { return has_items(); });
  }
  pushing_.store(false, release);  // release: pairs with the acquire in close and the destructor
}

template <class T>
bool spsc_ring<T>::refuse(status& done) {
  if (closed_.load(relaxed)) {
    seal();
    done = status::closed;
    return true;
  }
  done = status::full;
  if (rejects_) note_rejected();
  return rejects_;
}

template <class T>
[[gnu::always_inline]] inline bool spsc_ring<T>::offer(T& item, status& done) {
  const auto tail = tail_.load(relaxed);
  if (free_slots(tail) == 0) [[unlikely]] return refuse(done);
  if (!begin_push()) [[unlikely]] {
    done = status::closed;
    return true;
  }
  try {
    seam::writes_plain(at(tail));
    std::construct_at(at(tail), std::move(item));
  } catch (...) {
    end_push(tail);
    throw;
  }
  end_push(tail + 1);
  done = status::ok;
  return true;
}

template <class T>
bool spsc_ring<T>::offer_some(std::span<T> items, batch_result& result) {
  while (result.count < items.size()) {
    const auto tail = tail_.load(relaxed);
    const auto count = std::min(items.size() - result.count, free_slots(tail));
    if (count == 0) return refuse(result.status);
    if (!begin_push()) {
      result.status = status::closed;
      return true;
    }
    auto end = tail;
    try {
      for (; end != tail + count; ++end) {
        seam::writes_plain(at(end));
        std::construct_at(at(end), std::move(items[result.count]));
        ++result.count;
      }
    } catch (...) {
      end_push(end);
      throw;
    }
    end_push(end);
  }
  result.status = status::ok;
  return true;
}

// ---- the consumer's end

// Reading tail_ takes its cache line from the producer. So a consumer whose last read found few
// items pauses for about the cost of a read before it reads again: a busy producer gets ahead,
// which makes a stream about 1.5 times as fast. It does not pause after finding no item or one:
// that is no stream.
inline constexpr std::uint64_t few_found = 32;
inline constexpr int pauses_before_read = 4;

// Returns the number of available items. Reads tail_ again only if fewer than `wanted` are known.
template <class T>
inline std::size_t spsc_ring<T>::items(std::uint64_t head, std::size_t wanted) {
  if (tail_seen_ - head < wanted) {
    wait_report::used(this, wait_report::side::consumer);
    if (found_ - 2 < few_found && capacity_ > 2 * few_found) {
      for (int left = pauses_before_read; left > 0; --left) seam::pause();
    }
    const auto tail = tail_.load(acquire);  // acquire: pairs with the release in end_push
    found_ = tail - tail_seen_;
    tail_seen_ = tail;
    saw(most_by_consumer_, static_cast<std::size_t>(tail - head));
  }
  return static_cast<std::size_t>(tail_seen_ - head);
}

template <class T>
inline void spsc_ring<T>::end_pop(std::uint64_t head) {
  wake_batch wakes;
  head_.store(head, release);  // release: pairs with the acquire in free_slots
  seam::light_barrier();       // pairs with the heavy one in enlist
  if (producer_.waits.load(relaxed)) [[unlikely]] {
    claim(producer_, wakes, [this] { return has_free_slots(); });
  }
  popped_.store(head, release);  // release: pairs with the acquire in the destructor
}

template <class T>
[[gnu::always_inline]] inline bool spsc_ring<T>::poll(std::optional<T>& slot, status& done) {
  const auto head = head_.load(relaxed);
  check_named(popped_.load(relaxed) == head, type, name_.c_str(), "one consumer at a time");
  if (items(head, 1) == 0) [[unlikely]] {
    // acquire: pairs with the release in seal, so reading tail_ again finds every item.
    const bool sealed = sealed_.load(acquire);
    if (!sealed || items(head, 1) == 0) {
      done = sealed ? status::closed : status::empty;
      return sealed;
    }
  }
  T* const first = at(head);
  seam::writes_plain(first);
  slot.emplace(std::move(*first));  // if it throws, nothing has changed
  std::destroy_at(first);
  end_pop(head + 1);
  done = status::ok;
  return true;
}

template <class T>
void spsc_ring<T>::take_more(std::vector<T>& taken, std::size_t max) {
  const auto head = head_.load(relaxed);
  check_named(popped_.load(relaxed) == head, type, name_.c_str(), "one consumer at a time");
  const auto most = std::min(max, taken.capacity());  // growing could throw and lose items
  const auto wanted = most - std::min(most, taken.size());
  const auto end = head + std::min(items(head, wanted), wanted);
  auto next = head;
  try {
    for (; next != end; ++next) {
      seam::writes_plain(at(next));
      taken.push_back(std::move(*at(next)));
      std::destroy_at(at(next));
    }
  } catch (...) {
    if (taken.empty()) throw;  // otherwise the taken items must not be lost with the exception
  }
  if (next != head) end_pop(next);
}

// ---- waiting

template <class T>
template <class Found>
enlisted spsc_ring<T>::enlist(side& waiting_side, wait_node& node, waiter& waiting,
                              const char* alone, Found&& found) {
  waiting_side.waits.store(true, relaxed);
  seam::heavy_barrier();
  const std::lock_guard hold(guard_);
  check_named(waiting_side.list.empty(), type, name_.c_str(), alone);
  if (!found()) {
    const auto joined = link_waiter(waiting_side.list, node, waiting);
    if (joined == enlisted::waiting) return joined;
    waiting_side.waits.store(false, relaxed);
    return joined;
  }
  waiting_side.waits.store(false, relaxed);
  return enlisted::finished;
}

template <class T>
void spsc_ring<T>::retract(side& waiting_side, wait_node& node) noexcept {
  const std::lock_guard hold(guard_);
  if (node.linked()) node.unlink();
  waiting_side.waits.store(false, relaxed);
}

template <class T>
template <class Found>
void spsc_ring<T>::claim(side& waiting_side, wake_batch& wakes, Found&& found) noexcept {
  const std::lock_guard hold(guard_);
  // An empty list: the side has not joined yet and will check the indices itself. `found` is false:
  // the side has already taken this call's item or slot and waits for the next one.
  if (waiting_side.list.empty() || !found()) return;
  if (auto* const node = claim_front(waiting_side.list)) wakes.add(*node->waiting);
  waiting_side.waits.store(false, relaxed);
}

// ---- closing and counters

template <class T>
bool spsc_ring<T>::close() {
  // acq_rel: a thread that sees the ring closed also sees the closer's earlier writes.
  const bool first = !closed_.exchange(true, acq_rel);
  seam::heavy_barrier();  // pairs with the light one in begin_push: one side sees the other's store
  // acquire: pairs with the release in end_push, so a push in progress is complete before the seal.
  for (backoff again; pushing_.load(acquire);) again.pause();
  seal();
  return first;
}

// Called by a closer when no push is in progress, or by the producer outside of a push.
template <class T>
void spsc_ring<T>::seal() {
  if (sealed_.load(acquire)) return;
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  sealed_.store(true, release);  // release: pairs with the acquire in poll
  for (side* either : {&consumer_, &producer_}) {
    if (auto* const node = claim_front(either->list)) wakes.add(*node->waiting);
    either->waits.store(false, relaxed);
  }
}

template <class T>
std::size_t spsc_ring<T>::size() const noexcept {
  // In this order the difference cannot be negative; it may be too large, hence the min.
  const auto head = head_.load(acquire);
  const auto tail = tail_.load(acquire);
  return std::min(static_cast<std::size_t>(tail - head), capacity_);
}

template <class T>
std::size_t spsc_ring<T>::count(const side& s) const noexcept {
  if (!s.waits.load(relaxed)) return 0;
  const std::lock_guard hold(guard_);
  return s.list.size();
}

template <class T>
queue_stats spsc_ring<T>::stats() const {
  queue_stats s;
  s.popped = head_.load(acquire);
  s.pushed = tail_.load(acquire);
  s.rejected = rejected_.load(relaxed);
  s.push_waits = push_waits_.load(relaxed);
  s.pop_waits = pop_waits_.load(relaxed);
  s.high_water =
      std::max({most_by_producer_.load(relaxed), most_by_consumer_.load(relaxed), size()});
  return s;
}

}  // namespace sluice
