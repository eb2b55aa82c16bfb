#include "sluice/actor/actor_trace.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "sluice/actor/detail/error_text.hpp"
#include "sluice/actor/detail/trace_text.hpp"
#include "sluice/base/check.hpp"

namespace sluice {

actor_trace::actor_trace(options o)
    : capacity_(o.capacity), time_(o.time != nullptr ? *o.time : real_clock()), names_(4096) {
  check(capacity_ > 0 && capacity_ <= capacity_max, "sluice::actor_trace",
        "a capacity from 1 to 2^23 events");
}

actor_trace::~actor_trace() {
  delete[] slots_.load(relaxed);  // relaxed: there are no other users left
}

void actor_trace::start() {
  const std::lock_guard hold(starting_);
  if (is_on()) return;
  // release: pairs with the acquire of every reader.
  if (slots_.load(relaxed) == nullptr) slots_.store(new slot[capacity_], release);
  places_.clear();  // left from before the last stop
  is_on_.store(true, relaxed);
}

void actor_trace::stop() noexcept {
  is_on_.store(false, relaxed);
}

void actor_trace::clear() {
  check(!is_on(), "sluice::actor_trace", "to be off during clear()");
  slot* const slots = slots_.load(acquire);  // acquire: pairs with the release in `start`
  for (std::size_t i = 0; slots != nullptr && i < capacity_; ++i) {
    const std::lock_guard hold(slots[i].guard);
    slots[i].event = {};
  }
  places_.clear();
  next_.store(1, relaxed);
  traces_.store(0, relaxed);
}

std::vector<trace_event> actor_trace::events() const {
  std::vector<trace_event> all;
  slot* const slots = slots_.load(acquire);  // acquire: pairs with the release in `start`
  for (std::size_t i = 0; slots != nullptr && i < capacity_; ++i) {
    const std::lock_guard hold(slots[i].guard);
    if (slots[i].event.number != 0) all.push_back(slots[i].event);
  }
  std::ranges::sort(all, {}, &trace_event::number);
  return all;
}

std::uint64_t actor_trace::lost_events() const noexcept {
  const std::uint64_t made = next_.load(relaxed) - 1;
  return made > capacity_ ? made - capacity_ : 0;
}

std::string actor_trace::mermaid(const mermaid_options& o) const {
  return detail::mermaid_of(events(), names_, o, lost_events());
}

std::string actor_trace::chrome_json() const {
  return detail::chrome_json_of(events(), names_, lost_events());
}

// ---- for the system

void actor_trace::spawned(actor_id id, actor_id, std::string_view name,
                          std::string_view type) noexcept {
  names_.spawned(id, name, type);
}

void actor_trace::ended(actor_id id, end_reason) noexcept {
  names_.ended(id);
  places_.erase(id);
}

std::uint64_t actor_trace::sent(actor_id from, actor_id receiver,
                                std::string_view message) noexcept {
  if (!is_on()) return 0;
  trace_event e;
  e.event = trace_event::kind::sent;
  e.from = from;
  e.receiver = receiver;
  e.type = message;
  if (from != 0) {
    places_.with_existing(from, [&](const place& p) {
      if (p.is_busy) e.trace = p.trace;
    });
  }
  if (e.trace == 0) e.trace = traces_.fetch_add(1, relaxed) + 1;
  return record(std::move(e)) & ((std::uint64_t{1} << number_bits) - 1);
}

void actor_trace::begun(actor_id id, std::string_view message, std::uint64_t note) noexcept {
  if (is_on()) take_up(id, message, note, trace_event::kind::begun);
}

void actor_trace::resumed(actor_id id, std::string_view message, std::uint64_t note) noexcept {
  if (is_on()) take_up(id, message, note, trace_event::kind::resumed);
}

void actor_trace::take_up(actor_id id, std::string_view message, std::uint64_t note,
                          trace_event::kind event) {
  place now = origin(id, note);
  now.type = message;
  now.is_busy = true;
  if (now.trace == 0) now.trace = traces_.fetch_add(1, relaxed) + 1;
  places_.with(id, [&](place& p) { p = now; });
  trace_event e;
  e.event = event;
  e.from = now.from;
  e.receiver = id;
  e.trace = now.trace;
  e.message = now.message;
  e.type = message;
  (void)record(std::move(e));
}

void actor_trace::handled(actor_id id, std::string_view message, std::uint64_t) noexcept {
  if (!is_on()) return;
  trace_event e;
  e.event = trace_event::kind::handled;
  e.receiver = id;
  e.type = message;
  const bool was_seen = places_.with_existing(id, [&](place& p) {
    p.is_busy = false;
    e.from = p.from;
    e.trace = p.trace;
    e.message = p.message;
  });
  if (was_seen) (void)record(std::move(e));  // else it was begun before the start
}

void actor_trace::failed(actor_id id, const std::exception_ptr& error) noexcept {
  if (!is_on()) return;
  trace_event e;
  e.event = trace_event::kind::failed;
  e.receiver = id;
  e.text = detail::error_text(error);
  // The actor has begun no other message since.
  places_.with_existing(id, [&](const place& p) {
    e.from = p.from;
    e.trace = p.trace;
    e.message = p.message;
    e.type = p.type;
  });
  (void)record(std::move(e));
}

void actor_trace::lost(actor_id receiver, std::string_view message, std::uint64_t note,
                       loss why) noexcept {
  if (!is_on()) return;
  const place was = origin(receiver, note);
  trace_event e;
  e.event = trace_event::kind::lost;
  e.from = was.from;
  e.receiver = receiver;
  e.trace = was.trace;
  e.message = was.message;
  e.type = message;
  e.text = to_string(why);
  (void)record(std::move(e));
}

std::uint64_t actor_trace::record(trace_event e) noexcept {
  slot* const slots = slots_.load(acquire);  // acquire: pairs with the release in `start`
  if (slots == nullptr) return 0;
  e.when = time_.now();
  const std::uint64_t number = next_.fetch_add(1, relaxed);
  e.number = number;
  if (e.event == trace_event::kind::sent) e.message = number;
  slot& at = slots[number % capacity_];
  const std::lock_guard hold(at.guard);
  // A slow writer must not overwrite a newer event.
  if (at.event.number < number) std::swap(at.event, e);
  return number;
}

actor_trace::place actor_trace::origin(actor_id receiver, std::uint64_t note) const noexcept {
  place found;
  slot* const slots = slots_.load(acquire);  // acquire: pairs with the release in `start`
  if (note == 0 || slots == nullptr) return found;
  constexpr std::uint64_t span = std::uint64_t{1} << number_bits;
  const std::uint64_t latest = next_.load(relaxed);
  std::uint64_t number = (latest & ~(span - 1)) | note;
  if (number > latest) number = number > span ? number - span : 0;
  const slot& at = slots[number % capacity_];
  const std::lock_guard hold(at.guard);
  const trace_event& e = at.event;
  if (e.number != number || e.event != trace_event::kind::sent || e.receiver != receiver)
    return found;
  found.trace = e.trace;
  found.message = number;
  found.from = e.from;
  return found;
}

}  // namespace sluice
