#include "sluice/sync/watch.hpp"

#include <array>
#include <utility>

#include "sluice/base/seam.hpp"
#include "sluice/base/thread_id.hpp"
#include "sluice/base/user_code.hpp"
#include "sluice/base/work.hpp"
#include "sluice/sync/task_step.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::watch {

namespace detail {
constinit atomic<std::uint64_t> generation{0};
}

namespace {

constinit atomic<observer*> watching{nullptr};
constinit atomic<std::uint64_t> generations{1};

constinit thread_local party known_thread{};
constinit thread_local party acting{};
constinit thread_local party stepping{};  // the task in whose step the thread is

// What the calling thread has reported of its uses, so that most of them are not reported again.
struct note {
  const void* object = nullptr;
  std::uint64_t generation = 0;
};
constexpr std::size_t notes_max = 8;  // for each side
constinit thread_local std::array<std::array<note, notes_max>, 2> notes{};

// Where a note of this object is: queues lie on cache lines of their own.
std::size_t place_of(const void* object) noexcept {
  return (reinterpret_cast<std::uintptr_t>(object) >> 6) % notes_max;
}

// For whom a thread works that has this observer; nobody: for itself.
party acts_for(const sleep_observer* innermost) noexcept {
  for (auto* at = innermost; at != nullptr; at = at->around()) {
    if (const party who = at->acts_for()) return who;
  }
  return {};
}

// acquire: pairs with the exchange in observe; the watcher is seen whole.
observer* watcher() noexcept {
  return watching.load(acquire);
}

// The address of the user's code that made this call, if the place is in a header of the library or
// of the standard library: without optimization the call's own return address is in a header, too,
// so the stack is walked from there. Optimized code is found by its first look.
const void* user_code_of(const call_site& at) noexcept {
  if (at.address() != nullptr && !seam::is_library_code(at.address())) return at.address();
  if (!seam::is_library_file(at.file())) return at.address();
  const void* const found = seam::user_code_on_stack(at.address());
  return found != nullptr ? found : at.address();
}

// Before a wait is told of that others could end: what this thread owes to those who wait for it
// (an actor owes room in its mailbox). It pays before it sleeps or leaves its turn in any case, but
// whoever looked in between would find them stuck.
void pay_what_is_owed() noexcept {
  const acting_as themselves{party()};  // a coroutine that is let go on may run right here
  tell_of_helping();
}

}  // namespace

party party::this_thread() noexcept {
  if (!known_thread) {
    known_thread = party(kind::thread,
                         (std::uint64_t{seam::kernel_thread_id()} << 24) | seam::thread_number());
  }
  return known_thread;
}

party party::current() noexcept {
  if (acting) return acting;
  const party actor = acts_for(this_sleep_observer());
  return actor ? actor : this_thread();
}

acting_as::acting_as(party who) noexcept : before_(std::exchange(acting, who)) {}
acting_as::~acting_as() {
  acting = before_;
}

task_step::task_step(party task) noexcept : before_(std::exchange(stepping, task)) {}
task_step::~task_step() {
  stepping = before_;
}

observer* observe(observer* by) noexcept {
  auto* const before = watching.exchange(by, acq_rel);
  // relaxed: a thread that sees it late reports late, or reports to nobody.
  detail::generation.store(by == nullptr ? 0 : generations.fetch_add(1, relaxed), relaxed);
  return before;
}

void start_over() noexcept {
  const auto next = generations.fetch_add(1, relaxed);
  auto now = detail::generation.load(relaxed);
  while (now != 0 && !detail::generation.compare_exchange_weak(now, next, relaxed, relaxed)) {
  }
}

namespace detail {

void took(const hold& h) noexcept {
  auto* const to = watcher();
  if (to == nullptr) return;
  const void* const code = user_code_of(h.at);
  if (code == h.at.address()) return to->took(h);
  hold taken = h;
  taken.at = h.at.with_address(code);
  to->took(taken);
}

void gave(const void* object, party by, std::int64_t count) noexcept {
  if (auto* const to = watcher()) to->gave(object, by, count);
}

void used(const void* object, side which) noexcept {
  const auto now = generation.load(relaxed);
  const party who = party::current();
  // Of another party every use is reported: the notes are of the thread alone.
  if (who == known_thread) {
    auto& mine = notes[which == side::takes ? 0 : 1][place_of(object)];
    if (mine.object == object && mine.generation == now) [[likely]]
      return;
    mine = {object, now};
  }
  if (auto* const to = watcher()) to->used(object, which, who);
}

void gone(const void* object) noexcept {
  if (auto* const to = watcher()) to->gone(object);
}

}  // namespace detail

party taker_of(party coroutine, const work_sink* sink) noexcept {
  const auto* const of = dynamic_cast<const party_sink*>(sink);
  const party who = of != nullptr ? of->acts_for() : party();
  return who ? who : coroutine;
}

void wait_record::report(const waiter& who, const wait_limits& limits, party by,
                         const work_sink* sink) noexcept {
  auto* const to = watcher();
  if (to == nullptr) return;
  who_ = &who;
  limits_ = &limits;
  by_ = by;
  if (who.is_thread()) {
    thread_ = party::this_thread();
    if (by_ == thread_ && stepping) by_ = stepping;
    works_ = this_sleep_observer();
    code_ = user_code_of(limits.at);
    // They say their names now: whoever looks later has a lock then.
    for (auto* at = works_; at != nullptr; at = at->around()) (void)at->acts_for();
  }
  // Not where a coroutine is made to wait for the lock of its condition: that is by whoever
  // notifies, on that one's thread, and maybe with the lock held.
  const bool is_here = who.is_thread() || party::current() == taker_of(by, sink);
  if (is_here && number == 0 && (about_ != nullptr || subject_.by != served_by::unknown)) {
    pay_what_is_owed();
  }
  sink_ = dynamic_cast<const party_sink*>(sink);
  told_ = to;
  to->waits(*this);
}

void wait_record::end() noexcept {
  if (told_ == nullptr) return;
  told_->waits_no_more(*this);
  told_ = nullptr;
}

call_site wait_record::at() const noexcept {
  return code_ != nullptr ? limits_->at.with_address(code_) : limits_->at;
}

// One that has kept others out may let them in meanwhile, from another place.
party wait_record::by() const noexcept {
  const party who = sink_ != nullptr ? sink_->acts_for() : party();
  return who ? who : by_;
}

std::size_t wait_record::held_up(party* out, std::size_t room) const noexcept {
  std::size_t count = 0;
  const auto add = [&](party who) {
    if (who && who != by_ && count < room) out[count++] = who;
  };
  add(thread_);
  // It stands further down the stack of the thread that sleeps, and stays there until it wakes.
  for (auto* at = works_; at != nullptr; at = at->around()) add(at->acts_for());
  return count;
}

}  // namespace sluice::watch
