#include "sluice/actor/actor_counters.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/detail/json_text.hpp"
#include "sluice/actor/detail/live_cells.hpp"
#include "sluice/actor/detail/time_text.hpp"

namespace sluice {
namespace {

using std::chrono::nanoseconds;

void add(actor_times& sum, nanoseconds took) {
  took = std::max(took, nanoseconds(0));
  ++sum.count;
  sum.total += took;
  sum.largest = std::max(sum.largest, took);
}

void add_all(actor_times& sum, const actor_times& more) {
  sum.count += more.count;
  sum.total += more.total;
  sum.largest = std::max(sum.largest, more.largest);
}

void set_quantiles(actor_times& of, const histogram& from) {
  const histogram::snapshot all = from.read();
  of.p50 = nanoseconds(all.quantile(0.5));
  of.p99 = nanoseconds(all.quantile(0.99));
}

std::uint64_t rank(const actor_count& a, actor_order by) {
  switch (by) {
    case actor_order::queued:
      return a.queued;
    case actor_order::queue_time:
      return static_cast<std::uint64_t>(a.in_queue.total.count());
    case actor_order::handler_time:
      return static_cast<std::uint64_t>(a.in_handler.total.count());
    case actor_order::messages:
      return a.messages;
    case actor_order::failures:
      return a.failures;
  }
  return 0;
}

constexpr std::size_t columns = 12;
using line = std::array<std::string, columns>;

std::string or_dash(const std::optional<nanoseconds>& time) {
  return time ? detail::time_text(*time) : "-";
}

line line_of(const actor_count& a, bool lives) {
  return {a.name,
          lives ? std::to_string(a.queued) : "-",
          std::to_string(a.messages),
          std::to_string(a.failures),
          std::to_string(a.restarts),
          std::to_string(a.lost),
          or_dash(a.in_queue.p50),
          or_dash(a.in_queue.p99),
          detail::time_text(a.in_queue.largest),
          or_dash(a.in_handler.p50),
          or_dash(a.in_handler.p99),
          detail::time_text(a.in_handler.total)};
}

void append_times(std::string& out, std::string_view key, const actor_times& t) {
  const auto ns = [](nanoseconds time) { return static_cast<std::uint64_t>(time.count()); };
  out += ",";
  detail::append_json_string(out, key);
  out += ":{";
  detail::append_json_field(out, "count", t.count);
  detail::append_json_field(out, "total", ns(t.total));
  detail::append_json_field(out, "max", ns(t.largest));
  if (t.p50) detail::append_json_field(out, "p50", ns(*t.p50));
  if (t.p99) detail::append_json_field(out, "p99", ns(*t.p99));
  out += "}";
}

void append_counts(std::string& out, const actor_count& a) {
  detail::append_json_field(out, "messages", a.messages);
  detail::append_json_field(out, "failures", a.failures);
  detail::append_json_field(out, "restarts", a.restarts);
  detail::append_json_field(out, "lost", a.lost);
  append_times(out, "in_queue_ns", a.in_queue);
  append_times(out, "in_handler_ns", a.in_handler);
}

}  // namespace

// ---- snapshots

actor_counts actor_counts::top(std::size_t count, actor_order by) const {
  actor_counts best = *this;
  std::ranges::stable_sort(best.actors, [&](const actor_count& a, const actor_count& b) {
    return rank(a, by) > rank(b, by);
  });
  if (best.actors.size() > count) best.actors.resize(count);
  return best;
}

std::string actor_counts::table() const {
  std::vector<line> lines{{"actor", "queued", "messages", "failures", "restarts", "lost",
                           "queue p50", "p99", "max", "handler p50", "p99", "total"}};
  for (const actor_count& a : actors) lines.push_back(line_of(a, true));
  if (ended.messages + ended.lost + ended.failures > 0) lines.push_back(line_of(ended, false));
  std::array<std::size_t, columns> widths{};
  for (const line& l : lines) {
    for (std::size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], l[i].size());
  }
  std::string text;
  for (const line& l : lines) {
    text += l[0];
    std::size_t missing = widths[0] - l[0].size();
    for (std::size_t i = 1; i < columns; ++i) {
      text.append(missing + 2 + widths[i] - l[i].size(), ' ');
      text += l[i];
      missing = 0;
    }
    text += "\n";
  }
  return text;
}

std::string actor_counts::json() const {
  std::string text = "{\"actors\":[";
  for (const actor_count& a : actors) {
    text += &a == &actors.front() ? "\n{" : ",\n{";
    detail::append_json_field(text, "id", a.id);
    detail::append_json_field(text, "name", a.name);
    detail::append_json_field(text, "queued", a.queued);
    append_counts(text, a);
    text += "}";
  }
  text += "],\n\"ended\":{";
  append_counts(text, ended);
  return text + "}}\n";
}

// ---- counting

actor_counters::actor_counters(options o)
    : quantiles_max_(o.quantiles_max), time_(o.time != nullptr ? *o.time : real_clock()) {}

actor_counts actor_counters::read(const actor_system& of) {
  actor_counts all;
  for (const detail::cell_ptr& c : detail::live_cells(of.core().root())) {
    actor_count one;
    entries_.with_existing(c->id(), [&](const entry& e) {
      one = e.count;
      if (e.exact == nullptr) return;
      set_quantiles(one.in_queue, e.exact->in_queue);
      set_quantiles(one.in_handler, e.exact->in_handler);
    });
    one.id = c->id();
    one.name = c->name();
    one.queued = c->queued();
    all.actors.push_back(std::move(one));
  }
  all.ended = ended_.with([](const actor_count& sum) { return sum; });
  all.ended.name = "(ended)";
  return all;
}

// The first message of an actor decides whether it has quantiles.
actor_counters::entry& actor_counters::known(entry& e) {
  if (std::exchange(e.is_known, true)) return e;
  // relaxed: a count on which no other data depends.
  if (with_quantiles_.fetch_add(1, relaxed) < quantiles_max_) {
    e.exact = std::make_unique<quantiles>();
  } else {
    with_quantiles_.fetch_sub(1, relaxed);
  }
  return e;
}

std::uint64_t actor_counters::stamp() const noexcept {
  const auto ns = static_cast<std::uint64_t>(time_.now().time_since_epoch().count());
  return ns >> unit_bits & ((std::uint64_t{1} << stamp_bits) - 1);
}

void actor_counters::ended(actor_id id, end_reason) noexcept {
  entries_.take(id, [&](entry& e) {
    if (e.exact != nullptr) with_quantiles_.fetch_sub(1, relaxed);
    ended_.with([&](actor_count& sum) {
      sum.messages += e.count.messages;
      sum.failures += e.count.failures;
      sum.restarts += e.count.restarts;
      sum.lost += e.count.lost;
      add_all(sum.in_queue, e.count.in_queue);
      add_all(sum.in_handler, e.count.in_handler);
    });
  });
}

std::uint64_t actor_counters::sent(actor_id, actor_id, std::string_view) noexcept {
  return std::max<std::uint64_t>(stamp(), 1);  // 0: not sent, as a timer
}

void actor_counters::begun(actor_id id, std::string_view, std::uint64_t note) noexcept {
  const time_point now = time_.now();
  const std::uint64_t units = (stamp() - note) & ((std::uint64_t{1} << stamp_bits) - 1);
  entries_.with(id, [&](entry& found) {
    entry& e = known(found);
    ++e.count.messages;
    e.since = now;
    if (note == 0) return;
    const nanoseconds waited(units << unit_bits);
    add(e.count.in_queue, waited);
    if (e.exact != nullptr) e.exact->in_queue.record(waited);
  });
}

void actor_counters::resumed(actor_id id, std::string_view, std::uint64_t) noexcept {
  const time_point now = time_.now();
  entries_.with(id, [&](entry& e) { known(e).since = now; });
}

void actor_counters::handled(actor_id id, std::string_view, std::uint64_t) noexcept {
  const time_point now = time_.now();
  entries_.with_existing(id, [&](entry& e) {
    add(e.count.in_handler, now - e.since);
    if (e.exact != nullptr) e.exact->in_handler.record(now - e.since);
  });
}

void actor_counters::failed(actor_id id, const std::exception_ptr&) noexcept {
  entries_.with(id, [&](entry& e) { ++known(e).count.failures; });
}

void actor_counters::restarted(actor_id id) noexcept {
  entries_.with(id, [&](entry& e) { ++known(e).count.restarts; });
}

void actor_counters::lost(actor_id receiver, std::string_view, std::uint64_t, loss) noexcept {
  // No new entry for an actor that has ended.
  const bool lives = entries_.with_existing(receiver, [](entry& e) { ++e.count.lost; });
  if (!lives) ended_.with([](actor_count& sum) { ++sum.lost; });
}

}  // namespace sluice
