#include "sluice/sync/shared_mutex.hpp"

#include <array>
#include <mutex>

namespace sluice {
namespace {

// The mutexes that the calling thread reads, so that a thread that would wait for itself fails a
// check instead. A thread that reads more than `most` at once is not checked for the others.
class reading_list {
 public:
  void add(const shared_mutex* m) noexcept {
    for (auto& slot : slots_) {
      if (slot == nullptr) {
        slot = m;
        return;
      }
    }
  }
  void remove(const shared_mutex* m) noexcept {
    for (auto& slot : slots_) {
      if (slot == m) {
        slot = nullptr;
        return;
      }
    }
  }
  bool has(const shared_mutex* m) const noexcept {
    for (const auto* slot : slots_) {
      if (slot == m) return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t most = 4;
  std::array<const shared_mutex*, most> slots_{};
};

constinit thread_local reading_list reading;

}  // namespace

shared_mutex::~shared_mutex() {
  // The thread that admitted the last owner may still be about to release the guard.
  const std::lock_guard hold(guard_);
  check_object(word_.load(relaxed) == 0, this, type_name,
               "neither owner, readers nor waiters at its destruction");
  wait_report::destroyed(this);
}

std::size_t shared_mutex::waiting_to_lock() const noexcept {
  const std::lock_guard hold(guard_);
  return writers_.size();
}

std::size_t shared_mutex::waiting_to_share() const noexcept {
  const std::lock_guard hold(guard_);
  return readers_.size();
}

std::size_t shared_mutex::waiting() const noexcept {
  const std::lock_guard hold(guard_);
  return writers_.size() + readers_.size();
}

void shared_mutex::lock(call_site at) {
  if (!take_free(seam::thread_number())) {
    lock_op op(*this, lock_op::by_thread, &at);
    const auto ended = wait_blocking(op, at.called_from(__builtin_return_address(0)));
    check(static_cast<bool>(ended), type_name, "an unlimited wait to end with the lock", at);
  }
  if (wait_report::is_on()) [[unlikely]] report_taken(at.called_from(__builtin_return_address(0)));
}

void shared_mutex::unlock(call_site at) noexcept {
  wait_report::gave(this);
  word owner = seam::thread_number();
  // release: pairs with the acquire of the next party that enters.
  if (!word_.compare_exchange_strong(owner, 0, release, relaxed)) unlock_slowly(owner, at);
}

void shared_mutex::unlock_slowly(word seen, call_site at) noexcept {
  const auto owner = writer(seen);
  check_object(owner != 0, this, type_name, "to be locked exclusively when it is unlocked", at);
  check_object(owner == coroutine || owner == seam::thread_number(), this, type_name,
               "to be unlocked by the thread that locked it", at);
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  // Only the writer and the holder of guard_ change a word that has a writer.
  if (const auto entering = admit_readers(wakes); entering > 0) {
    word_.store(entering * one_reader | waiters_bit(), release);
  } else if (!admit_writer(wakes)) {
    word_.store(0, release);
  }
}

void shared_mutex::lock_shared(call_site at) {
  const auto from = at.called_from(__builtin_return_address(0));
  if (!enter_shared()) {
    lock_shared_op op(*this, lock_shared_op::by_thread, &from);
    const auto ended = wait_blocking(op, from);
    check(static_cast<bool>(ended), type_name, "an unlimited wait to end with the lock", from);
  }
  entered_shared(from, by_try::no);
}

// Records a shared hold of the calling thread.
void shared_mutex::entered_shared(const call_site& at, by_try tried) noexcept {
  reading.add(this);
  if (!wait_report::is_on()) [[likely]] return;
  wait_report::took({.object = this,
               .type = type_name,
               .mode = wait_report::held_as::shared,
               .by = wait_report::party::current(),
               .at = at,
               .waited = tried == by_try::no});
}

bool shared_mutex::try_lock_shared(call_site at) noexcept {
  if (!enter_shared()) return false;
  entered_shared(at.called_from(__builtin_return_address(0)), by_try::yes);
  return true;
}

status shared_mutex::lock_shared(const wait_limits& limits) {
  const auto ended =
      block_on(lock_shared_op(*this, lock_shared_op::by_thread, &limits.at), limits);
  if (ended) entered_shared(limits.at, by_try::no);
  return ended;
}

void shared_mutex::unlock_shared(call_site at) noexcept {
  reading.remove(this);
  wait_report::gave(this);
  leave_shared(at);
}

bool shared_mutex::enter_shared() noexcept {
  for (auto seen = word_.load(relaxed); (seen & (writer_mask | has_waiters)) == 0;) {
    check_object(readers(seen) < 0xffff'ffff, this, type_name, "fewer than 2^32 readers");
    // acquire: pairs with the release of the last writer.
    if (word_.compare_exchange_weak(seen, seen + one_reader, acquire, relaxed)) return true;
  }
  return false;
}

void shared_mutex::leave_shared(call_site at) noexcept {
  for (auto seen = word_.load(relaxed);;) {
    check_object(readers(seen) > 0, this, type_name,
                 "a reader inside when unlock_shared is called", at);
    // The last reader hands over. It stays inside until it has the guard, so that no party can be
    // admitted before, and destroy the mutex while it is in use here.
    if (readers(seen) == 1 && (seen & has_waiters) != 0) return leave_shared_slowly();
    // release: pairs with the acquire of the next writer. Until then the word is changed only by
    // read-modify-writes, so that writer synchronizes with every reader that left.
    if (word_.compare_exchange_weak(seen, seen - one_reader, release, relaxed)) return;
  }
}

void shared_mutex::leave_shared_slowly() noexcept {
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  for (auto seen = word_.load(acquire);;) {
    if (readers(seen) == 1 && (seen & has_waiters) != 0) break;
    // The waiters have given up, or readers were admitted, before this thread had the guard.
    if (word_.compare_exchange_weak(seen, seen - one_reader, release, acquire)) return;
  }
  // Only the last reader and the holder of guard_ change such a word, and this thread is both. The
  // acquire above pairs with the releases of the readers that left before, and admit_... publishes
  // them to the next party.
  if (admit_writer(wakes)) return;
  const auto entering = admit_readers(wakes);  // all writers have given up in the meantime
  word_.store(entering == 0 ? 0 : entering * one_reader | waiters_bit(), release);
}

void shared_mutex::check_not_held(word seen, word me, const call_site* at) const noexcept {
  if (me == coroutine) return;
  check_object(writer(seen) != me, this, type_name,
               "not to be locked again by the thread that holds it exclusively", at);
  check_object(!reading.has(this), this, type_name,
               "not to be waited for by a thread that reads it: release the shared hold first", at);
}

auto shared_mutex::admit_readers(wake_batch& wakes) noexcept -> word {
  word entering = 0;
  while (auto* const node = claim_front(readers_)) {
    wakes.add(*node->waiting);
    ++entering;
  }
  return entering;
}

bool shared_mutex::admit_writer(wake_batch& wakes) noexcept {
  auto* const node = claim_front<lock_op::node>(writers_);
  if (node == nullptr) return false;
  word_.store(node->owner | waiters_bit(), release);
  wakes.add(*node->waiting);
  return true;
}

auto shared_mutex::waiters_bit() const noexcept -> word {
  return writers_.empty() && readers_.empty() ? 0 : has_waiters;
}

// Called when a wait has ended by a limit. The mutex has an owner: a free one has no waiters.
void shared_mutex::leave_list(wait_node& node) noexcept {
  wake_batch wakes;
  const std::lock_guard hold(guard_);
  if (node.linked()) node.unlink();
  if (writers_.empty() && !readers_.empty() && writer(word_.load(relaxed)) == 0) {
    // Only the writer that gave up blocked these readers. Some readers are inside, and leave by
    // compare-and-swap, so the count is added. acquire: pairs with the release of the last writer.
    word_.fetch_add(admit_readers(wakes) * one_reader, acq_rel);
  }
  mark_waiters();
}

void shared_mutex::mark_waiters() noexcept {
  if (waiters_bit() == 0) word_.fetch_and(~has_waiters, relaxed);
}

enlisted shared_mutex::lock_op::enlist(waiter& waiting) noexcept {
  const std::lock_guard hold(mutex_.guard_);
  for (auto seen = mutex_.word_.load(relaxed);;) {
    if (seen == 0) {
      if (mutex_.word_.compare_exchange_weak(seen, node_.owner, acquire, relaxed)) {
        return enlisted::finished;
      }
      continue;
    }
    mutex_.check_not_held(seen, node_.owner, at_);
    if ((seen & has_waiters) != 0 ||
        mutex_.word_.compare_exchange_weak(seen, seen | has_waiters, relaxed, relaxed)) {
      break;
    }
  }
  const auto joined = link_waiter(mutex_.writers_, node_, waiting);
  if (joined == enlisted::ended) mutex_.mark_waiters();
  return joined;
}

void shared_mutex::lock_op::retract() noexcept {
  mutex_.leave_list(node_);
}

enlisted shared_mutex::lock_shared_op::enlist(waiter& waiting) noexcept {
  const std::lock_guard hold(mutex_.guard_);
  for (auto seen = mutex_.word_.load(relaxed);;) {
    if ((seen & (writer_mask | has_waiters)) == 0) {
      if (mutex_.word_.compare_exchange_weak(seen, seen + one_reader, acquire, relaxed)) {
        return enlisted::finished;
      }
      continue;
    }
    mutex_.check_not_held(seen, me_, at_);
    if ((seen & has_waiters) != 0 ||
        mutex_.word_.compare_exchange_weak(seen, seen | has_waiters, relaxed, relaxed)) {
      break;
    }
  }
  const auto joined = link_waiter(mutex_.readers_, node_, waiting);
  if (joined == enlisted::ended) mutex_.mark_waiters();
  return joined;
}

void shared_mutex::lock_shared_op::retract() noexcept {
  mutex_.leave_list(node_);
}

}  // namespace sluice
