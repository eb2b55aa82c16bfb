#include "sluice/inspect/detail/registry.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "sluice/sync/named.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::inspect::detail {
namespace {

std::size_t shard_of(wait_report::party by, std::size_t count) noexcept {
  const auto word = by.word();
  return static_cast<std::size_t>((word >> 4) ^ word ^ (word >> 12)) % count;
}

// Returns the key that counts the waits for this subject. All subjects of an actor share one.
const void* counted_by(const wait_report::subject& s) noexcept {
  return s.target.type() == wait_report::party::kind::actor ? wait_report::key_of(s.target)
                                                            : s.object;
}

// Returns the subject whose contention the wait counts as: its only one, else none.
wait_report::subject counted_for(const wait_report::wait_record& w) noexcept {
  std::array<wait_report::subject, 2> on;
  const auto count = w.wait_subject(on.data(), on.size());
  return count == 1 || (count > 1 && counted_by(on[0]) == counted_by(on[1]))
             ? on[0]
             : wait_report::subject{};
}

// The registry's word in a wait record: its shard, and its contention counter. The counter is
// stored because the subject of a future changes when the future is completed.
struct record_word {
  std::uint32_t shard = 0;
  std::uint32_t counter = none;  // the place in the table
  std::uint16_t life = 0;        // of that counter

  static constexpr std::uint32_t none = 0x7ff;

  static record_word of(const wait_report::wait_record& w) noexcept {
    return {w.shard & 0x1f, (w.shard >> 5) & none, static_cast<std::uint16_t>(w.shard >> 16)};
  }
  std::uint32_t word() const noexcept {
    return shard | (counter << 5) | (static_cast<std::uint32_t>(life) << 16);
  }
};

bool is_lock(wait_report::held_as mode) noexcept {
  return mode == wait_report::held_as::alone || mode == wait_report::held_as::shared;
}

}  // namespace

registry& registry::get() {
  static auto* const one = new registry;
  return *one;
}

registry::registry() : clock_(&real_clock()) {}

void registry::turn_on(clock& time, bool with_lock_order, inversion_report report) {
  clock_.store(&time, release);  // release: pairs with the acquire in now
  with_order_.store(with_lock_order, relaxed);
  order_.start(std::move(report));
  on_.store(true, relaxed);
  wait_report::observe(this);
}

void registry::turn_off() {
  wait_report::observe(nullptr);
  on_.store(false, relaxed);
  order_.start({});
  // A report that is in progress may still add an entry. The entry is correct, and the next
  // `turn_off` removes it.
  holds_.clear();
  runners_.clear();
  crews_.clear();
  uses_.clear();
  contention_.clear();
  signals_.clear();
  left_out_.store(0, relaxed);
  clock_.store(&real_clock(), release);
}

// ---- snapshots

bool registry::copy(wait_shard& from, wait_copies& copies) {
  copies.clear();
  bool has_room = true;
  const std::lock_guard hold(from.guard);
  from.all.for_each_while(
      [&](const wait_report::wait_record& w) { return has_room = copies.add(w); });
  return has_room;
}

std::vector<seen_wait> registry::waits() {
  std::vector<seen_wait> found;
  wait_copies copies;
  for (auto& shard : waits_) {
    while (!copy(shard, copies)) copies.grow();
    copies.append_to(found);
  }
  std::ranges::sort(found, {}, &seen_wait::number);
  return found;
}

std::vector<seen_hold> registry::holds() {
  auto found = holds_.copies();
  std::ranges::sort(found, {}, &seen_hold::number);
  return found;
}

std::vector<seen_hold> registry::runners() {
  auto found = runners_.copies();
  std::ranges::sort(found, {}, &seen_hold::number);
  return found;
}

std::vector<seen_crew> registry::crews() {
  return crews_.copies();
}

std::vector<seen_uses> registry::uses() {
  return uses_.copies();
}

std::vector<seen_contention> registry::contention() {
  auto found = contention_.copies();
  std::ranges::sort(found, std::greater<>(), &seen_contention::waited);
  return found;
}

bool registry::is_signal(const void* object) {
  return signals_.of(object)->find(object) != nullptr;
}

// ---- reports

void registry::wait_started(wait_report::wait_record& w) noexcept {
  const bool again = w.number != 0;
  w.again_since = now();
  if (!again) {
    w.since = w.again_since;
    w.number = numbers_.fetch_add(1, relaxed);  // relaxed: only has to be unique
    w.shard = static_cast<std::uint32_t>(shard_of(w.by(), waits_.size()));
  }
  count_wait(w, again);
  auto& shard = waits_[record_word::of(w).shard];
  const std::lock_guard hold(shard.guard);
  shard.all.push_back(w);
}

void registry::wait_ended(wait_report::wait_record& w) noexcept {
  {
    const std::lock_guard hold(waits_[record_word::of(w).shard].guard);
    w.unlink();
  }
  count_end(w);
}

void registry::count_wait(wait_report::wait_record& w, bool again) noexcept {
  static_assert(shards <= 32 && decltype(contention_)::places < record_word::none);
  record_word noted{.shard = record_word::of(w).shard};
  w.shard = noted.word();
  const auto on = counted_for(w);
  const void* const object = counted_by(on);
  if (object == nullptr) return;
  const auto shard = contention_.of(object);
  auto* entry = shard->find(object);
  if (entry == nullptr) {
    if (shard->is_full()) {
      // Not all objects report their destruction (futures do not): evicts the one with the least
      // waiting time.
      auto* const least =
          shard->victim([](const seen_contention& c) { return c.waiting == 0; },
                        [](const auto& a, const auto& b) { return a.waited < b.waited; });
      if (least == nullptr) return leave_out();
      shard->erase(*least);
    }
    entry = shard->add(object);
    entry->type = on.type;
    if (object != on.object) entry->actor = on.target;
    entry->life = static_cast<std::uint16_t>(numbers_.fetch_add(1, relaxed));
  }
  ++(again ? entry->futile_wakes : entry->waits);
  ++entry->waiting;
  entry->waiting_max = std::max(entry->waiting_max, entry->waiting);
  noted.counter = static_cast<std::uint32_t>(contention_.place_of(shard, *entry));
  noted.life = entry->life;
  w.shard = noted.word();
}

void registry::count_end(const wait_report::wait_record& w) noexcept {
  const auto noted = record_word::of(w);
  if (noted.counter == record_word::none) return;
  const auto ended = now();
  const auto shard = contention_.with(noted.counter);
  auto& entry = contention_.entry_at(shard, noted.counter);
  // The object was destroyed, or inspect was turned off meanwhile.
  if (entry.object == nullptr || entry.life != noted.life) return;
  if (entry.waiting > 0) --entry.waiting;
  entry.waited += std::max(ended - w.again_since, time_point::duration(0));
  entry.longest = std::max(entry.longest, std::chrono::nanoseconds(ended - w.since));
}

namespace {

// A coroutine may release it on another thread, under the name of that thread.
bool is_with_coroutine(const seen_hold& h) noexcept {
  return h.awaited || h.by.type() == wait_report::party::kind::coroutine;
}

}  // namespace

void registry::join_crew(const wait_report::hold& h) noexcept {
  const auto shard = crews_.of(h.object);
  auto* entry = shard->find(h.object, [&](const seen_crew& c) { return c.by == h.by; });
  if (entry == nullptr) entry = shard->add(h.object);
  if (entry == nullptr) return leave_out();
  entry->by = h.by;
  entry->count = h.count;
}

bool registry::leave_crew(const void* executor, wait_report::party by) noexcept {
  const auto shard = crews_.of(executor);
  auto* const entry = shard->find(executor, [&](const seen_crew& c) { return c.by == by; });
  if (entry != nullptr) shard->erase(*entry);
  return entry != nullptr;
}

// A runner that does not fit is not recorded: the join needs the end of the recorded ones all the
// same.
void registry::begin_job(const wait_report::hold& h) noexcept {
  const auto since = now();
  const auto shard = runners_.of(h.object);
  auto* entry = shard->find(h.object, [&](const seen_hold& e) { return e.by == h.by; });
  if (entry != nullptr) return;
  entry = shard->add(h.object);
  if (entry == nullptr) return leave_out();
  entry->number = numbers_.fetch_add(1, relaxed);
  entry->type = h.type;
  entry->mode = h.mode;
  entry->by = h.by;
  entry->count = 1;
  entry->since = since;
  entry->at = h.at;
}

bool registry::end_job(const void* object, wait_report::party by) noexcept {
  const auto shard = runners_.of(object);
  auto* const entry = shard->find(object, [&](const seen_hold& e) { return e.by == by; });
  if (entry == nullptr) return shard->find(object) != nullptr;
  shard->erase(*entry);
  return true;
}

void registry::took(const wait_report::hold& h) noexcept {
  if (h.mode == wait_report::held_as::crew) return join_crew(h);
  if (h.mode == wait_report::held_as::running) return begin_job(h);
  const auto since = now();
  const bool noted = [&] {
    const auto shard = holds_.of(h.object);
    seen_hold* entry = nullptr;
    if (h.mode != wait_report::held_as::alone) {
      entry = shard->find(h.object,
                          [&](const seen_hold& e) { return e.by == h.by && e.mode == h.mode; });
    }
    if (entry == nullptr) {
      entry = shard->add(h.object);
      if (entry == nullptr) return false;
      entry->number = numbers_.fetch_add(1, relaxed);
      entry->type = h.type;
      entry->mode = h.mode;
      entry->by = h.by;
      entry->since = since;
      entry->at = h.at;
      entry->awaited = h.awaited;
    }
    entry->count += h.count;
    return true;
  }();
  if (!noted) {
    leave_out();
    // An unrecorded holder has permits and can release some.
    if (h.mode == wait_report::held_as::permits) mark_signal(h.object, known_as::semaphore);
    return;
  }
  if (h.mode == wait_report::held_as::permits) is_semaphore(h.object);
  // The lock order is per thread; a coroutine carries its locks to other threads.
  if (with_order_.load(relaxed) && is_lock(h.mode) && !h.awaited) order_.took(h);
}

void registry::gave(const void* object, wait_report::party by, std::int64_t count) noexcept {
  bool is_foreign = false;
  auto known = known_as::anything;
  {
    const auto shard = holds_.of(object);
    while (count > 0 && !is_foreign) {
      const auto from = holder_for(*shard.of, object, by);
      // A coroutine without a record acquired it before inspect was turned on.
      if (from == nullptr && by.type() == wait_report::party::kind::coroutine) break;
      is_foreign = from == nullptr || (from->mode == wait_report::held_as::permits &&
                                       from->by != by && !is_with_coroutine(*from));
      if (from == nullptr) break;
      if (is_foreign) known = known_as::semaphore;
      const auto taken = std::min(count, from->count);
      count -= taken;
      from->count -= taken;
      if (from->count <= 0) shard->erase(*from);
    }
  }
  if (count > 0 && end_job(object, by)) return;
  if (is_foreign && leave_crew(object, by)) return;
  if (is_foreign) mark_signal(object, known);
  if (with_order_.load(relaxed)) order_.gave(object);
}

// A coroutine releases under the name of the thread that it runs on. If several holders match, the
// erased entry is a guess: the number of the remaining holders is right, but not their identity, so
// they are marked as guesses until they are released.
seen_hold* registry::holder_for(hold_table::shard& all, const void* object,
                                wait_report::party by) noexcept {
  const auto is_own = [&](const seen_hold& e) { return e.by == by; };
  auto* const own = all.find(object, is_own);
  // A coroutine that releases under its own name.
  if (by.type() == wait_report::party::kind::coroutine) return own;
  // An exclusive lock has one holder.
  if (own != nullptr && own->mode == wait_report::held_as::alone) return own;
  auto* const coroutine = all.find(object, is_with_coroutine);
  auto* const found = own != nullptr ? own : coroutine != nullptr ? coroutine : all.find(object);
  if (found == nullptr) return nullptr;
  const auto could_be = [&](const seen_hold& e) {
    return &e == found || (coroutine != nullptr ? is_with_coroutine(e) : own == nullptr);
  };
  const auto another = [&](const seen_hold& e) { return &e != found && could_be(e); };
  if (all.find(object, another) == nullptr) return found;
  (void)all.find(object, [&](seen_hold& e) {
    e.is_guess = e.is_guess || could_be(e);
    return false;  // visits all of them
  });
  return found;
}

// Also called for a lock that was acquired before inspect was on: it is indistinguishable from a
// semaphore that is released before any acquisition. So a full shard evicts the oldest object that
// was never seen to be a semaphore.
void registry::mark_signal(const void* object, known_as known) noexcept {
  const auto shard = signals_.of(object);
  auto* mark = shard->find(object);
  if (mark == nullptr) {
    if (shard->is_full()) {
      auto* const oldest =
          shard->victim([](const signal_mark& m) { return !m.is_semaphore; },
                        [](const auto& a, const auto& b) { return a.number < b.number; });
      if (oldest == nullptr) return leave_out();
      shard->erase(*oldest);
    }
    mark = shard->add(object);
    mark->number = numbers_.fetch_add(1, relaxed);
  }
  mark->is_semaphore = mark->is_semaphore || known == known_as::semaphore;
}

void registry::is_semaphore(const void* object) noexcept {
  const auto shard = signals_.of(object);
  if (auto* const mark = shard->find(object)) mark->is_semaphore = true;
}

void registry::used(const void* object, wait_report::side which, wait_report::party by) noexcept {
  const auto shard = uses_.of(object);
  auto* entry = shard->find(object);
  if (entry == nullptr) entry = shard->add(object);
  if (entry == nullptr) return leave_out();
  const auto side = static_cast<std::size_t>(which);
  for (auto& known : entry->parties[side]) {
    if (known == by) return;
    if (!known) {
      known = by;
      return;
    }
  }
  entry->more[side] = true;
}

void registry::forget_user(const void* object, wait_report::side which,
                           wait_report::party by) noexcept {
  const auto shard = uses_.of(object);
  auto* const entry = shard->find(object);
  if (entry == nullptr) return;
  auto& all = entry->parties[static_cast<std::size_t>(which)];
  const auto place = std::ranges::find(all, by);
  if (place == all.end()) return;
  const auto last = std::ranges::find(all, wait_report::party()) - 1;  // without gaps
  *place = *last;
  *last = {};
}

void registry::destroyed(const void* object) noexcept {
  {
    const auto shard = holds_.of(object);
    while (auto* const entry = shard->find(object)) shard->erase(*entry);
  }
  {
    const auto shard = runners_.of(object);
    while (auto* const entry = shard->find(object)) shard->erase(*entry);
  }
  bool was_used = false;
  {
    const auto shard = uses_.of(object);
    if (auto* const entry = shard->find(object)) {
      shard->erase(*entry);
      was_used = true;
    }
  }
  {
    const auto shard = contention_.of(object);
    if (auto* const entry = shard->find(object)) shard->erase(*entry);
  }
  {
    const auto shard = signals_.of(object);
    if (auto* const entry = shard->find(object)) shard->erase(*entry);
  }
  if (with_order_.load(relaxed)) order_.destroyed(object);
  // The next object at this address has other users: they must report again.
  if (was_used) wait_report::start_over();
}

}  // namespace sluice::inspect::detail
