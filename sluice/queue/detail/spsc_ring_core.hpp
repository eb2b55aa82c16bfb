#pragma once

// The two ends of spsc_ring.hpp, where a side waits, and closing.

#include "sluice/base/shared.hpp"
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
  if (!name_.empty()) watch::set_name(this, name_);
}

template <class T>
std::uint64_t spsc_ring<T>::mask_for(const options& o) {
  const char* const expected = o.problem();
  check_named(expected == nullptr, type, o.name.c_str(), expected);
  return std::bit_ceil(std::uint64_t{o.capacity}) - 1;
}

template <class T>
spsc_ring<T>::~spsc_ring() {
  // The item that the consumer took, or the room that the producer saw, is there before the other
  // side's call is quite over. acquire: pairs with the release in end_push and end_pop.
  for (backoff again; pushing_.load(acquire) || popped_.load(acquire) != head_.load(relaxed);) {
    again.pause();
  }
  {
    const std::lock_guard hold(guard_);  // a close may still be about to let go of it
    check_named(consumer_.list.empty(), type, name_.c_str(),
                "no consumer waiting inside at its destruction");
    check_named(producer_.list.empty(), type, name_.c_str(),
                "no producer waiting inside at its destruction");
  }
  const auto tail = tail_.load(acquire);
  for (auto head = head_.load(acquire); head != tail; ++head) std::destroy_at(at(head));
  std::allocator<T>().deallocate(slots_, static_cast<std::size_t>(mask_ + 1));
  watch::gone(this);
}

// ---- the producer's end

template <class T>
inline std::size_t spsc_ring<T>::room(std::uint64_t tail) {
  if (tail - head_seen_ >= capacity_) {
    watch::used(this, watch::side::gives);
    // acquire: pairs with the release in end_pop; the slots are free to be written.
    head_seen_ = head_.load(acquire);
    saw(most_by_producer_, static_cast<std::size_t>(tail - head_seen_));
  }
  return capacity_ - static_cast<std::size_t>(tail - head_seen_);
}

// False: it is closed.
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
  if (room(tail) == 0) [[unlikely]] return refuse(done);
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
    const auto count = std::min(items.size() - result.count, room(tail));
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

// Every look at the other side's index takes its cache line away while it is in use. So a consumer
// whose last look found little waits about as long as a look costs before the next: a producer that
// is busy gets ahead, and a stream moves half as fast again. One that found nothing, or a single
// item, does not wait: that is no stream.
inline constexpr std::uint64_t little_found = 32;
inline constexpr int pauses_before_look = 4;

// How many the consumer knows of, after looking again if that is fewer than it wants.
template <class T>
inline std::size_t spsc_ring<T>::items(std::uint64_t head, std::size_t wanted) {
  if (tail_seen_ - head < wanted) {
    watch::used(this, watch::side::takes);
    if (found_ - 2 < little_found && capacity_ > 2 * little_found) {
      for (int left = pauses_before_look; left > 0; --left) seam::pause();
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
  head_.store(head, release);  // release: pairs with the acquire in room
  seam::light_barrier();       // pairs with the heavy one in enlist
  if (producer_.waits.load(relaxed)) [[unlikely]] {
    claim(producer_, wakes, [this] { return has_room(); });
  }
  popped_.store(head, release);  // release: pairs with the acquire in the destructor
}

template <class T>
[[gnu::always_inline]] inline bool spsc_ring<T>::poll(std::optional<T>& slot, status& done) {
  const auto head = head_.load(relaxed);
  check_named(popped_.load(relaxed) == head, type, name_.c_str(), "one consumer at a time");
  if (items(head, 1) == 0) [[unlikely]] {
    // acquire: what went in before the seal is seen by looking again after it.
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
  const auto most = std::min(max, taken.capacity());  // growing it could throw and lose some
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
    if (taken.empty()) throw;  // else those taken must not be lost with the exception
  }
  if (next != head) end_pop(next);
}

// ---- waiting

template <class T>
template <class Found>
enlisted spsc_ring<T>::enlist(side& mine, wait_node& node, waiter& who, const char* alone,
                              Found&& found) {
  mine.waits.store(true, relaxed);
  seam::heavy_barrier();
  const std::lock_guard hold(guard_);
  check_named(mine.list.empty(), type, name_.c_str(), alone);
  if (!found()) {
    const auto joined = join(mine.list, node, who);
    if (joined == enlisted::waiting) return joined;
    mine.waits.store(false, relaxed);
    return joined;
  }
  mine.waits.store(false, relaxed);
  return enlisted::finished;
}

template <class T>
void spsc_ring<T>::retract(side& mine, wait_node& node) noexcept {
  const std::lock_guard hold(guard_);
  if (node.linked()) node.unlink();
  mine.waits.store(false, relaxed);
}

template <class T>
template <class Found>
void spsc_ring<T>::claim(side& other, wake_batch& wakes, Found&& found) noexcept {
  const std::lock_guard hold(guard_);
  // It may be on its way in, and will look; or it looked, took what this call has put there, came
  // back and waits for the next: then it is not for this call to wake it.
  if (other.list.empty() || !found()) return;
  if (auto* const node = claim_front(other.list)) wakes.add(*node->who);
  other.waits.store(false, relaxed);
}

// ---- either side, and others

template <class T>
bool spsc_ring<T>::close() {
  // acq_rel: what the closer did before is seen by whoever sees it closed.
  const bool first = !closed_.exchange(true, acq_rel);
  seam::heavy_barrier();  // pairs with the light one in begin_push: it sees this, or we see it
  // acquire: the item of a push that was under way is seen before the seal.
  for (backoff again; pushing_.load(acquire);) again.pause();
  seal();
  return first;
}

// By a closer when no push is under way, or by the producer, which knows that none is.
template <class T>
void spsc_ring<T>::seal() {
  if (sealed_.load(acquire)) return;
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  sealed_.store(true, release);  // release: pairs with the acquire in poll
  for (side* waiting : {&consumer_, &producer_}) {
    if (auto* const node = claim_front(waiting->list)) wakes.add(*node->who);
    waiting->waits.store(false, relaxed);
  }
}

template <class T>
std::size_t spsc_ring<T>::size() const noexcept {
  // In this order the difference cannot be negative; it may have grown in between.
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
