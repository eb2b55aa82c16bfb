#include "sluice/sync/detail/wait_report.hpp"

#include <array>
#include <utility>

#include "sluice/base/detail/thread_id.hpp"
#include "sluice/base/detail/user_code.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/work.hpp"
#include "sluice/sync/detail/task_step.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::wait_report {

namespace detail {
constinit atomic<std::uint64_t> generation{0};
}

namespace {

constinit atomic<observer*> installed{nullptr};
constinit atomic<std::uint64_t> generations{1};

constinit thread_local party known_thread{};
constinit thread_local party acting{};
constinit thread_local party stepping{};  // the task that the thread runs a step of

// Uses that the calling thread has reported, so that most of them are not reported again.
struct note {
  const void* object = nullptr;
  std::uint64_t generation = 0;
};
constexpr std::size_t notes_max = 8;  // for each side
constinit thread_local std::array<std::array<note, notes_max>, 2> notes{};

// The index of the object's note. The cache line is enough: each queue has lines of its own.
std::size_t place_of(const void* object) noexcept {
  return (reinterpret_cast<std::uintptr_t>(object) >> 6) % notes_max;
}

// Returns the party that a thread with this observer works for; none: for itself.
party acts_for(const sleep_observer* innermost) noexcept {
  for (auto* at = innermost; at != nullptr; at = at->around()) {
    if (const party p = at->acts_for()) return p;
  }
  return {};
}

// acquire: pairs with the exchange in observe, so that the observer is seen fully constructed.
observer* current_observer() noexcept {
  return installed.load(acquire);
}

// Returns the address of the user's code that made this call, if the place is in a header of the
// library or of the standard library: without optimization the call's own return address is in a
// header, too, so the stack is walked from there. In optimized code the return address is enough.
const void* user_code_of(const call_site& at) noexcept {
  if (at.address() != nullptr && !seam::is_library_code(at.address())) return at.address();
  if (!seam::is_library_file(at.file())) return at.address();
  const void* const found = seam::user_code_on_stack(at.address());
  return found != nullptr ? found : at.address();
}

// Called before reporting a wait that others could end: frees what other parties wait for in this
// thread (an actor: capacity of its mailbox). The thread does so in any case before it sleeps or
// ends its turn, but a report in between would show those parties as stuck.
void release_debts() noexcept {
  const acting_as themselves{party()};  // a coroutine that becomes ready may run right here
  report_helping();
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

acting_as::acting_as(party p) noexcept : before_(std::exchange(acting, p)) {}
acting_as::~acting_as() {
  acting = before_;
}

task_step::task_step(party task) noexcept : before_(std::exchange(stepping, task)) {}
task_step::~task_step() {
  stepping = before_;
}

observer* observe(observer* by) noexcept {
  auto* const before = installed.exchange(by, acq_rel);
  // relaxed: a thread that sees it late reports late, or to no observer.
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
  auto* const observer = current_observer();
  if (observer == nullptr) return;
  const void* const code = user_code_of(h.at);
  if (code == h.at.address()) return observer->took(h);
  hold taken = h;
  taken.at = h.at.with_address(code);
  observer->took(taken);
}

void gave(const void* object, party by, std::int64_t count) noexcept {
  if (auto* const observer = current_observer()) observer->gave(object, by, count);
}

void used(const void* object, side which) noexcept {
  const auto now = generation.load(relaxed);
  const party p = party::current();
  // For another party every use is reported: the notes are the thread's own.
  if (p == known_thread) {
    auto& last = notes[which == side::consumer ? 0 : 1][place_of(object)];
    if (last.object == object && last.generation == now) [[likely]]
      return;
    last = {object, now};
  }
  if (auto* const observer = current_observer()) observer->used(object, which, p);
}

void destroyed(const void* object) noexcept {
  if (auto* const observer = current_observer()) observer->destroyed(object);
}

}  // namespace detail

party taker_of(party coroutine, const work_sink* sink) noexcept {
  const auto* const of = dynamic_cast<const party_sink*>(sink);
  const party p = of != nullptr ? of->acts_for() : party();
  return p ? p : coroutine;
}

void wait_record::report(const waiter& waiting, const wait_limits& limits, party by,
                         const work_sink* sink) noexcept {
  auto* const observer = current_observer();
  if (observer == nullptr) return;
  waiting_ = &waiting;
  limits_ = &limits;
  by_ = by;
  if (waiting.is_thread()) {
    thread_ = party::this_thread();
    if (by_ == thread_ && stepping) by_ = stepping;
    works_ = this_sleep_observer();
    code_ = user_code_of(limits.at);
    // They register their names now: a later reader holds a lock.
    for (auto* at = works_; at != nullptr; at = at->around()) (void)at->acts_for();
  }
  // Not where a coroutine starts to wait for the lock of its condition: this runs on the notifier's
  // thread, maybe with the lock held.
  const bool is_here = waiting.is_thread() || party::current() == taker_of(by, sink);
  if (is_here && number == 0 && (subjects_ != nullptr || subject_.by != served_by::unknown)) {
    release_debts();
  }
  sink_ = dynamic_cast<const party_sink*>(sink);
  observer_ = observer;
  observer->wait_started(*this);
}

void wait_record::end() noexcept {
  if (observer_ == nullptr) return;
  observer_->wait_ended(*this);
  observer_ = nullptr;
}

call_site wait_record::at() const noexcept {
  return code_ != nullptr ? limits_->at.with_address(code_) : limits_->at;
}

// Evaluated on each call: a handler that was exclusive may have become reentrant meanwhile.
party wait_record::by() const noexcept {
  const party p = sink_ != nullptr ? sink_->acts_for() : party();
  return p ? p : by_;
}

std::size_t wait_record::blocked(party* out, std::size_t capacity) const noexcept {
  std::size_t count = 0;
  const auto add = [&](party p) {
    if (p && p != by_ && count < capacity) out[count++] = p;
  };
  add(thread_);
  // The observers are in outer frames of the sleeping thread's stack, and exist until it wakes.
  for (auto* at = works_; at != nullptr; at = at->around()) add(at->acts_for());
  return count;
}

}  // namespace sluice::wait_report
