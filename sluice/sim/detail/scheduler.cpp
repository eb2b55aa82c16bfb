#include "sluice/sim/detail/scheduler.hpp"

#include <cxxabi.h>
#include <sys/single_threaded.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <typeinfo>

#include "sluice/base/check.hpp"
#include "sluice/sim/detail/report.hpp"
#include "sluice/sim/detail/simulated_atomic.hpp"

namespace sluice::sim::detail {

constinit scheduler* active = nullptr;
constinit bool exploring = false;

namespace {

constexpr std::size_t stack_bytes = 512 << 10;
// The start time of every schedule, on both clocks after their epochs.
constexpr std::int64_t first_ns = 1'000'000'000'000'000;

}  // namespace

own_work::own_work() noexcept : was_(exploring) {
  exploring = false;
}
own_work::~own_work() {
  exploring = was_;
}

scheduler::scheduler(const options& asked) : options_(asked) {
  threads_.reserve(threads_max);
  for (std::uint32_t i = 0; i < threads_max; ++i) {
    threads_.push_back(std::make_unique<simulated_thread>());
    threads_.back()->number = i;
  }
}

scheduler::~scheduler() = default;

scheduler::ended scheduler::run(const std::function<void()>& body, strategy& chooser,
                                bool write_down) {
  memory_.begin_run();
  heap_.reset();
  thread_count_ = 0;
  enabled_ = spinning_ = 0;
  ++runs_;
  step_ = 0;
  now_ns_ = first_ns;
  blocked_.clear();
  objects_.clear();
  names_.clear();
  locals_.clear();
  all_ended_ = false;
  result_ = {};
  strategy_ = &chooser;
  write_down_ = write_down;
  steps_written_ = {};
  body_ = &body;
  active = this;
  // The C library counts one thread and libstdc++ relies on that: std::stop_source would then not
  // notify ~stop_callback when its callback has ended.
  __libc_single_threaded = 0;

  auto& first = start(
      [](void* self) -> void* {
        (*static_cast<scheduler*>(self)->body_)();
        return nullptr;
      },
      this, false);
  current_ = &first;
  exploring = true;
  fiber::change(outside_, *first.stack);
  exploring = false;

  if (!result_.failed && !result_.pruned) {
    // Destroys the schedule's own objects, while no thread runs.
    for (auto at = locals_.rbegin(); at != locals_.rend(); ++at) at->destroy(at->at);
    find_leaks();
  }
  active = nullptr;
  result_.steps = step_;
  result_.threads = thread_count_;
  chooser.end(step_);
  return std::move(result_);
}

void scheduler::find_leaks() {
  if (!options_.leaks || heap_.live_blocks() == 0) return;
  const auto one = heap_.first_live();
  result_.failed = true;
  result_.kind = failure_kind::leak;
  result_.message = std::to_string(heap_.live_blocks()) + " blocks were not freed; the first has " +
                    std::to_string(one.bytes) + " bytes, allocated at step " +
                    std::to_string(one.step);
}

simulated_thread& scheduler::start(void* (*routine)(void*), void* argument, bool is_background) {
  const own_work scope;
  auto& t = free_thread();
  if (t.stack == nullptr) t.stack = std::make_unique<fiber>(stack_bytes);
  t.status = simulated_thread::state::runnable;
  t.is_background = is_background;
  t.timed_out = false;
  t.untracked = is_background ? 1 : 0;
  t.blocked_at = nullptr;
  t.calls = {};
  t.next = {};
  t.next.text = "starts";
  t.start = routine;
  t.argument = argument;
  t.result = nullptr;
  t.joined = false;
  t.name = {};
  t.at_ends.clear();
  t.stack->begin(&scheduler::enter, &t);
  memory_.begin_thread(t.number, thread_count_ > 1 && current_ != nullptr
                                     ? &memory_.of(current_->number).now
                                     : nullptr);
  enabled_ |= bit(t);
  strategy_->thread_started(t.number);
  if (thread_count_ > 1) memory_.tick(current_->number);
  return t;
}

// Each thread gets a number of its own. When they are used up, a new thread takes the number of a
// joined thread whose every step happens before this start: it is then indistinguishable from its
// continuation, and no false order arises.
simulated_thread& scheduler::free_thread() {
  if (thread_count_ < threads_max) return *threads_[thread_count_++];
  for (std::uint32_t i = 0; i < threads_max; ++i) {
    const bool is_known = memory_.of(current_->number).now.before[i] >= memory_.of(i).now.before[i];
    if (threads_[i]->joined && is_known) return *threads_[i];
  }
  sluice::check(false, "sluice::sim", "at most 32 threads at a time in a schedule");
  __builtin_unreachable();
}

void scheduler::enter(void* thread) {
  auto& self = *active;
  auto& me = *static_cast<simulated_thread*>(thread);
  try {
    me.result = me.start(me.argument);
    while (!me.at_ends.empty()) {
      const auto last = me.at_ends.back();
      me.at_ends.pop_back();
      last.call(last.object);
    }
  } catch (const std::exception& e) {
    std::string text;
    {
      const own_work scope;
      text = std::string("an exception left thread ") + std::to_string(me.number) + ": " + e.what();
    }
    self.fail(failure_kind::exception, text);
  } catch (...) {
    self.fail(failure_kind::exception, "an exception left a thread");
  }
  const own_work scope;
  me.status = simulated_thread::state::finished;
  self.enabled_ &= ~self.bit(me);
  self.spinning_ &= ~self.bit(me);
  if (self.write_down_) self.note("ends", std::source_location{});
  self.wake(&me, UINT32_MAX);
  bool more = false;
  for (std::uint32_t i = 0; i < self.thread_count_; ++i) {
    const auto& t = *self.threads_[i];
    more = more || (!t.is_background && t.status != simulated_thread::state::finished);
  }
  self.all_ended_ = !more;
  self.reschedule(false);
  sluice::check(false, "sluice::sim", "an ended thread not to run");
}

void scheduler::end_run() {
  exploring = false;
  fiber::change(*current_->stack, outside_);
}

void scheduler::fail(failure_kind kind, const std::string& message) {
  exploring = false;
  result_.failed = true;
  result_.kind = kind;
  result_.message = message.c_str();  // a deep copy: the argument's memory is the schedule's
  end_run();
  __builtin_unreachable();
}

void scheduler::fault(failure_kind kind, const char* message) noexcept {
  exploring = false;
  fail(kind, message);
}

void scheduler::fail_in_loop(const call_stack& loop) noexcept {
  exploring = false;
  result_.loop = loop;
  const std::string loops =
      thread_name(current_->number) + " computes for " + std::to_string(options_.spin_max.count()) +
      " ms without a step of the explorer: no other thread can run, so its condition cannot "
      "change. In the loop, use sluice::atomic in place of std::atomic or a plain variable, or "
      "call sim::yield(); for a long computation, raise options::spin_max";
  fail(failure_kind::endless_loop, loops);
}

void scheduler::point(const operation& next, const std::source_location& where) {
  auto& me = *current_;
  me.next = next;
  me.where = where;
  if (write_down_) {
    const own_work scope;
    me.calls = where.line() == 0 ? calls_from_here() : call_stack{};
  }
  reschedule(true);
}

void scheduler::spin(const char* text) {
  auto& me = *current_;
  const own_work scope;
  // Its next read depends on all steps of the other threads.
  me.next = {operation::kind::everything, nullptr, text};
  memory_.see_everything(me.number);
  spinning_ |= bit(me);
  forward(100);
  reschedule(true);
}

void scheduler::forward(std::int64_t ns) {
  now_ns_ += ns;
  for (std::size_t i = 0; i < blocked_.size();) {
    if (blocked_[i]->until_ns <= now_ns_) {
      unblock(*blocked_[i], true);
    } else {
      ++i;
    }
  }
}

void scheduler::reschedule(bool self_can_run) {
  const own_work scope;
  auto& next = pick(self_can_run);
  if (&next != current_) switch_to(next);
}

simulated_thread& scheduler::pick(bool self_can_run) {
  auto& me = *current_;
  for (;;) {
    // Background threads run until they block: memory that they are about to free is no leak.
    if (all_ended_ && enabled_ == 0) end_run();
    ++step_;
    if (step_ > options_.steps_max) {
      fail(failure_kind::livelock,
           "no end after " + std::to_string(options_.steps_max) +
               " steps, though every thread had its turn in the second half of them" +
               thread_states());
    }
    auto may = enabled_ & ~spinning_;
    const bool spins = (spinning_ >> me.number & 1U) != 0;
    if (may == 0) {
      // All runnable threads spin: any of them may wait for time to pass.
      may = enabled_;
      spinning_ = 0;
      if (std::popcount(may) > 1 && spins) may &= ~bit(me);
    }
    bool waits_for_time = false;
    for (const auto* t : blocked_) {
      waits_for_time = waits_for_time || (t->until_ns != never_ns && !all_ended_);
    }
    if (may == 0) {
      if (!advance_time()) {
        fail(failure_kind::deadlock, "no thread can run" + thread_states());
      }
      continue;
    }
    if (std::popcount(may) == 1 && !waits_for_time) {
      return *threads_[static_cast<std::uint32_t>(std::countr_zero(may))];
    }
    const bool fair = step_ > options_.steps_max / 2;
    if (fair) {
      // Round robin, a few steps each.
      if (step_ % 8 != 0 && self_can_run && !spins && (may & bit(me)) != 0) return me;
      const auto above = me.number < 31 ? may & ~((2U << me.number) - 1) : 0;
      return *threads_[static_cast<std::uint32_t>(std::countr_zero(above != 0 ? above : may))];
    }
    std::array<const operation*, threads_max> next{};
    for (std::uint32_t i = 0; i < thread_count_; ++i) next[i] = &threads_[i]->next;
    const situation s{.step = step_,
                      .current = me.number,
                      .current_can_run = self_can_run && (may & bit(me)) != 0,
                      .is_spinning = spins,
                      .runnable = may,
                      .clock_can_advance = waits_for_time && options_.early_timeouts,
                      .next = next.data()};
    const auto chosen = strategy_->next(s);
    if (chosen == prune) {
      result_.pruned = true;
      end_run();
    }
    if (chosen == advance_clock) {
      advance_time();
      continue;
    }
    return *threads_[chosen];
  }
}

void scheduler::switch_to(simulated_thread& next) {
  auto& me = *current_;
  current_ = &next;
  exploring = true;  // for the next thread's code
  if (next.next.text[0] == 's' && std::strcmp(next.next.text, "starts") == 0) next.next.text = "";
  fiber::change(*me.stack, *next.stack);
  exploring = false;
}

bool scheduler::advance_time() {
  std::int64_t earliest = never_ns;
  for (const auto* t : blocked_) earliest = std::min(earliest, t->until_ns);
  if (earliest == never_ns) return false;
  if (write_down_) {
    note("the clock advances by " + std::to_string((std::max(earliest, now_ns_) - now_ns_) / 1000) +
             " us",
         std::source_location{});
  }
  forward(std::max<std::int64_t>(earliest - now_ns_, 0));
  return true;
}

void scheduler::unblock(simulated_thread& t, bool timed_out) {
  std::erase(blocked_, &t);
  t.status = simulated_thread::state::runnable;
  t.timed_out = timed_out;
  enabled_ |= bit(t);
}

bool scheduler::block(const void* address, const char* text, std::int64_t until_ns) {
  const own_work scope;
  auto& me = *current_;
  if (until_ns <= now_ns_) return false;
  me.status = simulated_thread::state::blocked;
  me.blocked_at = address;
  me.blocked_for = text;
  me.until_ns = until_ns;
  me.next = {operation::kind::everything, nullptr, text};
  blocked_.push_back(&me);
  enabled_ &= ~bit(me);
  spinning_ &= ~bit(me);
  if (write_down_) {
    steps_written_.add({step_, me.number, std::string("waits: ") + text, me.where, me.calls});
  }
  reschedule(false);
  return !me.timed_out;
}

std::uint32_t scheduler::wake(const void* address, std::uint32_t most) {
  const own_work scope;
  std::uint32_t woken = 0;
  for (std::size_t i = 0; i < blocked_.size() && woken < most;) {
    if (blocked_[i]->blocked_at == address) {
      unblock(*blocked_[i], false);
      ++woken;
    } else {
      ++i;
    }
  }
  wrote();
  return woken;
}

void* scheduler::join(simulated_thread& other) {
  point({operation::kind::everything, &other, "joins a thread"}, std::source_location{});
  while (other.status != simulated_thread::state::finished) {
    block(&other, "the end of a thread", never_ns);
  }
  const own_work scope;
  memory_.of(current_->number).now.learn(memory_.of(other.number).now, memory_.threads());
  other.joined = true;
  return other.result;
}

void scheduler::give(hand_over& through) {
  auto& me = memory_.of(current_->number);
  if (through.any) {
    through.given.learn(me.now, memory_.threads());
  } else {
    through.given = me.now;
    through.any = true;
  }
  memory_.tick(current_->number);
}

void scheduler::take(hand_over& through) {
  if (through.any) memory_.of(current_->number).now.learn(through.given, memory_.threads());
}

void scheduler::learn_everything() {
  auto& me = memory_.of(current_->number);
  for (std::uint32_t i = 0; i < memory_.threads(); ++i) {
    me.now.learn(memory_.of(i).now, memory_.threads());
  }
}

std::uint32_t scheduler::choose_value(std::uint32_t count, char type) {
  if (step_ > options_.steps_max / 2) return 0;  // fair scheduling: the newest value
  ++step_;
  return strategy_->value(step_, count, type);
}

scheduler::object& scheduler::object_at(const void* at) {
  return objects_[at];
}

void* scheduler::run_local(const void* key, void* (*make)(), void (*destroy)(void*)) {
  const own_work scope;
  for (const auto& one : locals_) {
    if (one.key == key) return one.at;
  }
  void* const made = make();
  locals_.push_back({key, made, destroy});
  return made;
}

const std::string& scheduler::thread_name(std::uint32_t number) {
  const auto& t = *threads_[number];
  shown_name_ = t.name[0] != '\0' ? t.name.data() : number == 0 ? "body" : "thread";
  if (number != 0) shown_name_ += " " + std::to_string(number);
  return shown_name_;
}

std::string scheduler::name_of(const void* at) {
  const auto number = names_.try_emplace(at, static_cast<std::uint32_t>(names_.size() + 1));
  return "#" + std::to_string(number.first->second);
}

void written_steps::add(step_line line) {
  if (lines.size() == 2 * lines_max) {  // a schedule may have millions of steps
    lines.erase(lines.begin(), lines.begin() + lines_max);
    before += lines_max;
  }
  lines.push_back(std::move(line));
}

void scheduler::note(std::string text, const std::source_location& where) {
  steps_written_.add({step_, current_->number, std::move(text), where, {}});
}

void scheduler::note_call(std::string text) {
  const auto& me = *current_;
  steps_written_.add({step_, me.number, std::move(text), me.where, me.calls});
}

std::string scheduler::place_of(const simulated_thread& t) const {
  return t.where.line() != 0 ? place(t.where) : caller_line(t.calls);
}

std::string scheduler::thread_states() {
  std::string text;
  for (std::uint32_t i = 0; i < thread_count_; ++i) {
    const auto& t = *threads_[i];
    if (t.status == simulated_thread::state::finished || t.is_background) continue;
    text += "\n  " + thread_name(i);
    if (t.status == simulated_thread::state::blocked) {
      text += std::string(" waits: ") + t.blocked_for;
    } else {
      text += std::string(" runs: ") + t.next.text;
    }
    const std::string where = place_of(t);
    if (!where.empty()) text += " (" + where + ")";
  }
  return text;
}

}  // namespace sluice::sim::detail
