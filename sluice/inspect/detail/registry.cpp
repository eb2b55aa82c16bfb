#include "sluice/inspect/detail/registry.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "sluice/sync/named.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::inspect::detail {
namespace {

std::size_t shard_of(watch::party by, std::size_t count) noexcept {
  const auto word = by.word();
  return static_cast<std::size_t>((word >> 4) ^ word ^ (word >> 12)) % count;
}

// What waits for this are counted by. An actor is one, whatever is wanted of it.
const void* counted_by(const watch::subject& s) noexcept {
  return s.whom.what() == watch::party::kind::actor ? watch::key_of(s.whom) : s.object;
}

// For which object a wait counts as contention: the only one that it is for. Without one: none.
watch::subject counted_for(const watch::wait_record& w) noexcept {
  std::array<watch::subject, 2> on;
  const auto count = w.about(on.data(), on.size());
  return count == 1 || (count > 1 && counted_by(on[0]) == counted_by(on[1])) ? on[0]
                                                                             : watch::subject{};
}

// What a record keeps in its word for the registry: the shard that it is in, and the counter that
// it counts in, because what a future waits for is another when it ends.
struct record_word {
  std::uint32_t shard = 0;
  std::uint32_t counter = none;  // its place in the table
  std::uint16_t life = 0;        // of that counter

  static constexpr std::uint32_t none = 0x7ff;

  static record_word of(const watch::wait_record& w) noexcept {
    return {w.shard & 0x1f, (w.shard >> 5) & none, static_cast<std::uint16_t>(w.shard >> 16)};
  }
  std::uint32_t word() const noexcept {
    return shard | (counter << 5) | (static_cast<std::uint32_t>(life) << 16);
  }
};

bool is_lock(watch::held_as how) noexcept {
  return how == watch::held_as::alone || how == watch::held_as::shared;
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
  watch::observe(this);
}

void registry::turn_off() {
  watch::observe(nullptr);
  on_.store(false, relaxed);
  order_.start({});
  // One that is reporting this very moment may leave an entry behind: it is of an earlier time, and
  // gone with the next `turn_off` at the latest. What it says was true when it was said.
  holds_.clear();
  runners_.clear();
  crews_.clear();
  uses_.clear();
  contention_.clear();
  signals_.clear();
  left_out_.store(0, relaxed);
  clock_.store(&real_clock(), release);
}

// ---- looking

bool registry::copy(wait_shard& from, wait_copies& to) {
  to.clear();
  bool has_room = true;
  const std::lock_guard hold(from.guard);
  from.all.for_each_while([&](const watch::wait_record& w) { return has_room = to.add(w); });
  return has_room;
}

std::vector<seen_wait> registry::waits() {
  std::vector<seen_wait> found;
  wait_copies copies;
  for (auto& shard : waits_) {
    while (!copy(shard, copies)) copies.make_room();
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

// ---- what is reported

void registry::waits(watch::wait_record& w) noexcept {
  const bool again = w.number != 0;
  w.again_since = now();
  if (!again) {
    w.since = w.again_since;
    w.number = numbers_.fetch_add(1, relaxed);  // only to tell one from another
    w.shard = static_cast<std::uint32_t>(shard_of(w.by(), waits_.size()));
  }
  count_wait(w, again);
  auto& shard = waits_[record_word::of(w).shard];
  const std::lock_guard hold(shard.guard);
  shard.all.push_back(w);
}

void registry::waits_no_more(watch::wait_record& w) noexcept {
  {
    const std::lock_guard hold(waits_[record_word::of(w).shard].guard);
    w.unlink();
  }
  count_end(w);
}

void registry::count_wait(watch::wait_record& w, bool again) noexcept {
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
      // Not all objects say when they are gone (futures do not): the one that was waited for least
      // makes room.
      auto* const least =
          shard->first_to_go([](const seen_contention& c) { return c.waiting == 0; },
                             [](const auto& a, const auto& b) { return a.waited < b.waited; });
      if (least == nullptr) return leave_out();
      shard->erase(*least);
    }
    entry = shard->add(object);
    entry->type = on.type;
    if (object != on.object) entry->actor = on.whom;
    entry->life = static_cast<std::uint16_t>(numbers_.fetch_add(1, relaxed));
  }
  ++(again ? entry->in_vain : entry->waits);
  ++entry->waiting;
  entry->waiting_most = std::max(entry->waiting_most, entry->waiting);
  noted.counter = static_cast<std::uint32_t>(contention_.place_of(shard, *entry));
  noted.life = entry->life;
  w.shard = noted.word();
}

void registry::count_end(const watch::wait_record& w) noexcept {
  const auto noted = record_word::of(w);
  if (noted.counter == record_word::none) return;
  const auto ended = now();
  const auto shard = contention_.with(noted.counter);
  auto& entry = contention_.entry_at(shard, noted.counter);
  // The object is gone, or inspect was turned off in between.
  if (entry.object == nullptr || entry.life != noted.life) return;
  if (entry.waiting > 0) --entry.waiting;
  entry.waited += std::max(ended - w.again_since, time_point::duration(0));
  entry.longest = std::max(entry.longest, std::chrono::nanoseconds(ended - w.since));
}

namespace {

// It may be given back on another thread, and under another name.
bool is_with_coroutine(const seen_hold& h) noexcept {
  return h.awaited || h.by.what() == watch::party::kind::coroutine;
}

}  // namespace

void registry::join_crew(const watch::hold& h) noexcept {
  const auto shard = crews_.of(h.object);
  auto* entry = shard->find(h.object, [&](const seen_crew& c) { return c.by == h.by; });
  if (entry == nullptr) entry = shard->add(h.object);
  if (entry == nullptr) return leave_out();
  entry->by = h.by;
  entry->count = h.count;
}

bool registry::leave_crew(const void* executor, watch::party by) noexcept {
  const auto shard = crews_.of(executor);
  auto* const entry = shard->find(executor, [&](const seen_crew& c) { return c.by == by; });
  if (entry != nullptr) shard->erase(*entry);
  return entry != nullptr;
}

// One that finds no room is not known: the others have to end all the same.
void registry::begin_job(const watch::hold& h) noexcept {
  const auto since = now();
  const auto shard = runners_.of(h.object);
  auto* entry = shard->find(h.object, [&](const seen_hold& e) { return e.by == h.by; });
  if (entry != nullptr) return;
  entry = shard->add(h.object);
  if (entry == nullptr) return leave_out();
  entry->number = numbers_.fetch_add(1, relaxed);
  entry->type = h.type;
  entry->how = h.how;
  entry->by = h.by;
  entry->count = 1;
  entry->since = since;
  entry->at = h.at;
}

bool registry::end_job(const void* object, watch::party by) noexcept {
  const auto shard = runners_.of(object);
  auto* const entry = shard->find(object, [&](const seen_hold& e) { return e.by == by; });
  if (entry == nullptr) return shard->find(object) != nullptr;
  shard->erase(*entry);
  return true;
}

void registry::took(const watch::hold& h) noexcept {
  if (h.how == watch::held_as::crew) return join_crew(h);
  if (h.how == watch::held_as::running) return begin_job(h);
  const auto since = now();
  const bool noted = [&] {
    const auto shard = holds_.of(h.object);
    seen_hold* entry = nullptr;
    if (h.how != watch::held_as::alone) {
      entry =
          shard->find(h.object, [&](const seen_hold& e) { return e.by == h.by && e.how == h.how; });
    }
    if (entry == nullptr) {
      entry = shard->add(h.object);
      if (entry == nullptr) return false;
      entry->number = numbers_.fetch_add(1, relaxed);
      entry->type = h.type;
      entry->how = h.how;
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
    // One who is not known has permits, and can give some.
    if (h.how == watch::held_as::permits) mark_signal(h.object, known_as::semaphore);
    return;
  }
  if (h.how == watch::held_as::permits) is_semaphore(h.object);
  // The order is that of threads: what a coroutine holds goes with it.
  if (with_order_.load(relaxed) && is_lock(h.how) && !h.awaited) order_.took(h);
}

void registry::gave(const void* object, watch::party by, std::int64_t count) noexcept {
  bool marks = false;
  auto what = known_as::anything;
  {
    const auto shard = holds_.of(object);
    while (count > 0 && !marks) {
      const auto from = holder_for(*shard.of, object, by);
      // One that says who it is, and is not known, began before it was looked at.
      if (from == nullptr && by.what() == watch::party::kind::coroutine) break;
      marks = from == nullptr ||
              (from->how == watch::held_as::permits && from->by != by && !is_with_coroutine(*from));
      if (from == nullptr) break;
      if (marks) what = known_as::semaphore;
      const auto taken = std::min(count, from->count);
      count -= taken;
      from->count -= taken;
      if (from->count <= 0) shard->erase(*from);
    }
  }
  if (count > 0 && end_job(object, by)) return;
  if (marks && leave_crew(object, by)) return;
  if (marks) mark_signal(object, what);
  if (with_order_.load(relaxed)) order_.gave(object);
}

// A coroutine gives back on whatever thread it runs, and under the name of that thread: whose entry
// goes is a guess when more than one could be meant. The number of those that are left is right
// then, but not who they are: they are marked as guesses until they are gone.
seen_hold* registry::holder_for(hold_table::shard& all, const void* object,
                                watch::party by) noexcept {
  const auto is_his = [&](const seen_hold& e) { return e.by == by; };
  auto* const his = all.find(object, is_his);
  // It says who it is.
  if (by.what() == watch::party::kind::coroutine) return his;
  // A lock that one has alone.
  if (his != nullptr && his->how == watch::held_as::alone) return his;
  auto* const coroutine = all.find(object, is_with_coroutine);
  auto* const found = his != nullptr ? his : coroutine != nullptr ? coroutine : all.find(object);
  if (found == nullptr) return nullptr;
  const auto could_be = [&](const seen_hold& e) {
    return &e == found || (coroutine != nullptr ? is_with_coroutine(e) : his == nullptr);
  };
  const auto another = [&](const seen_hold& e) { return &e != found && could_be(e); };
  if (all.find(object, another) == nullptr) return found;
  (void)all.find(object, [&](seen_hold& e) {
    e.is_guess = e.is_guess || could_be(e);
    return false;  // all of them
  });
  return found;
}

// Also for a lock that was taken before anybody looked: it cannot be told from a semaphore that is
// given to before anybody has taken from it. So the oldest of those that were never seen to be
// semaphores makes room.
void registry::mark_signal(const void* object, known_as what) noexcept {
  const auto shard = signals_.of(object);
  auto* mark = shard->find(object);
  if (mark == nullptr) {
    if (shard->is_full()) {
      auto* const oldest =
          shard->first_to_go([](const signal_mark& m) { return !m.is_semaphore; },
                             [](const auto& a, const auto& b) { return a.number < b.number; });
      if (oldest == nullptr) return leave_out();
      shard->erase(*oldest);
    }
    mark = shard->add(object);
    mark->number = numbers_.fetch_add(1, relaxed);
  }
  mark->is_semaphore = mark->is_semaphore || what == known_as::semaphore;
}

void registry::is_semaphore(const void* object) noexcept {
  const auto shard = signals_.of(object);
  if (auto* const mark = shard->find(object)) mark->is_semaphore = true;
}

void registry::used(const void* object, watch::side which, watch::party by) noexcept {
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

void registry::forget_user(const void* object, watch::side which, watch::party by) noexcept {
  const auto shard = uses_.of(object);
  auto* const entry = shard->find(object);
  if (entry == nullptr) return;
  auto& all = entry->parties[static_cast<std::size_t>(which)];
  const auto place = std::ranges::find(all, by);
  if (place == all.end()) return;
  const auto last = std::ranges::find(all, watch::party()) - 1;  // there are no gaps
  *place = *last;
  *last = {};
}

void registry::gone(const void* object) noexcept {
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
  if (with_order_.load(relaxed)) order_.gone(object);
  // The next object at this address is another one: those who use it must say so again.
  if (was_used) watch::start_over();
}

}  // namespace sluice::inspect::detail
