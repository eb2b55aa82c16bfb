// The hooks of a simulated build's seam: atomics and plain data.

#include <cstring>
#include <string>

#include "sluice/base/race_checked.hpp"
#include "sluice/sim/detail/happens_before.hpp"
#include "sluice/sim/detail/report.hpp"
#include "sluice/sim/detail/scheduler.hpp"
#include "sluice/sim/detail/simulated_atomic.hpp"

namespace sluice::sim::detail {
namespace {

const char* to_string(std::memory_order order) noexcept {
  switch (order) {
    case std::memory_order_relaxed:
      return "relaxed";
    case std::memory_order_consume:
    case std::memory_order_acquire:
      return "acquire";
    case std::memory_order_release:
      return "release";
    case std::memory_order_acq_rel:
      return "acq_rel";
    case std::memory_order_seq_cst:
      break;
  }
  return "seq_cst";
}

std::uint64_t bits_at(const void* at, std::size_t bytes) noexcept {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, bytes);
  return bits;
}

std::string shown(std::uint64_t bits) {
  if (bits < 1'000'000) return std::to_string(bits);
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (; bits != 0; bits >>= 4) text.insert(text.begin(), digits[bits & 15]);
  return "0x" + text;
}

void check_not_freed(scheduler& s, const void* at, const std::source_location& where) {
  if (!s.heap().is_freed(at)) [[likely]]
    return;
  s.self().where = where;
  if (s.writes_down()) s.note("uses freed memory", where);
  s.fail(failure_kind::use_after_free, std::string("freed memory is used at ") + place(where));
}

// Begins an access: a switch point, then a check that the object still exists.
location& reach(scheduler& s, const void* at, std::size_t bytes, operation::kind type,
                const char* text, const std::source_location& where) {
  s.point({type, at, text}, where);
  check_not_freed(s, at, where);
  const auto thread = s.self().number;
  s.memory().tick(thread);
  auto& cell = s.memory().find(at, bits_at(at, bytes));
  if (s.memory().construction_may_be_unseen(thread, cell)) {
    if (s.writes_down()) s.note("uses an atomic that may not be constructed yet", where);
    s.fail(failure_kind::race, std::string("an atomic is used by a thread that is not synchronized "
                                           "with its construction, at ") +
                                   place(where));
  }
  return cell;
}

void report(scheduler& s, const race& found, bool writes, const std::source_location& where) {
  if (!found.found) return;
  const auto& earlier = found.earlier;
  if (s.writes_down()) s.note(writes ? "writes, unguarded" : "reads, unguarded", where);
  s.fail(failure_kind::race,
         std::string("plain data is ") + (writes ? "written" : "read") + " at " + place(where) +
             " and " + (found.earlier_wrote ? "written" : "read") + " at " + place(earlier.where) +
             " by " + s.thread_name(earlier.thread) + ", without synchronization between the two");
}

}  // namespace

// thread_local variables are excluded: other threads do not see them, and each thread's copy has
// the same address.
void atomic_made(const void* at, std::uint64_t bits) noexcept {
  if (thread_variables::contain(at)) return;
  const own_work scope;
  auto& s = *active;
  s.memory().construct(s.self().number, at, bits);
}

std::uint64_t atomic_load(const void* at, std::size_t bytes, std::memory_order order,
                          const std::source_location& where) noexcept {
  if (thread_variables::contain(at)) return bits_at(at, bytes);
  const own_work scope;
  auto& s = *active;
  auto& cell = reach(s, at, bytes, operation::kind::read, "load", where);
  const auto thread = s.self().number;
  std::uint32_t age = 0;
  if (s.weak_memory()) {
    const auto choices = s.memory().choices(thread, cell, order);
    if (choices > 1) age = s.choose_value(choices, 'r');
  }
  const auto bits = s.memory().read(thread, cell, age, order);
  if (s.writes_down()) {
    s.note("load " + s.name_of(at) + " " + to_string(order) + " = " + shown(bits) +
               (age != 0 ? " (stale: " + shown(cell.newest().value) + " is newer)" : ""),
           where);
  }
  return bits;
}

void atomic_store(void* at, std::size_t bytes, std::uint64_t bits, std::memory_order order,
                  const std::source_location& where) noexcept {
  if (thread_variables::contain(at)) {
    std::memcpy(at, &bits, bytes);
    return;
  }
  const own_work scope;
  auto& s = *active;
  auto& cell = reach(s, at, bytes, operation::kind::write, "store", where);
  s.memory().write(s.self().number, cell, bits, order);
  std::memcpy(at, &bits, bytes);
  s.wrote();
  if (s.writes_down()) {
    s.note("store " + s.name_of(at) + " " + to_string(order) + " = " + shown(bits), where);
  }
}

std::uint64_t atomic_begin_change(const void* at, std::size_t bytes,
                                  const std::source_location& where) noexcept {
  if (thread_variables::contain(at)) return bits_at(at, bytes);
  const own_work scope;
  reach(*active, at, bytes, operation::kind::write, "change", where);
  return bits_at(at, bytes);
}

void atomic_end_change(void* at, std::size_t bytes, std::uint64_t bits,
                       std::memory_order order) noexcept {
  if (thread_variables::contain(at)) {
    std::memcpy(at, &bits, bytes);
    return;
  }
  const own_work scope;
  auto& s = *active;
  const auto before = bits_at(at, bytes);
  auto& cell = s.memory().find(at, before);
  const auto thread = s.self().number;
  s.memory().read(thread, cell, 0, order);
  s.memory().write(thread, cell, bits, order, true);
  std::memcpy(at, &bits, bytes);
  s.wrote();
  if (s.writes_down()) {
    s.note("change " + s.name_of(at) + " " + to_string(order) + ": " + shown(before) + " to " +
               shown(bits),
           s.self().where);
  }
}

void atomic_leave(const void* at, std::memory_order order) noexcept {
  if (thread_variables::contain(at)) return;
  const own_work scope;
  auto& s = *active;
  auto& cell = s.memory().find(at, 0);
  const auto bits = s.memory().read(s.self().number, cell, 0, order);
  if (s.writes_down()) {
    s.note("compare " + s.name_of(at) + " finds " + shown(bits), s.self().where);
  }
}

void atomic_pass_fence(std::memory_order order, const std::source_location& where) noexcept {
  const own_work scope;
  auto& s = *active;
  s.point({operation::kind::everything, nullptr, "fence"}, where);
  s.memory().tick(s.self().number);
  s.memory().fence(s.self().number, order);
  if (s.writes_down()) s.note(std::string("fence ") + to_string(order), where);
}

bool atomic_fails_spuriously() noexcept {
  const own_work scope;
  return active->weak_memory() && active->choose_value(2, 'f') != 0;
}

void release_through(const void* at) noexcept {
  if (!exploring) return;
  const own_work scope;
  active->give(active->object_at(at).memory);
}

void acquire_through(const void* at) noexcept {
  if (!exploring) return;
  const own_work scope;
  active->take(active->object_at(at).memory);
}

}  // namespace sluice::sim::detail

namespace sluice::seam {

using namespace sim::detail;

void may_switch(const void* at, std::source_location where) noexcept {
  if (!sim::detail::exploring || thread_variables::contain(at)) return;
  const own_work scope;
  active->point({operation::kind::write, at, "plain access"}, where);
}

void reads_plain(const void* at, std::source_location where) noexcept {
  if (!sim::detail::exploring || thread_variables::contain(at)) return;
  const own_work scope;
  auto& s = *active;
  check_not_freed(s, at, where);
  s.memory().tick(s.self().number);
  report(s, s.memory().read_plain(s.self().number, at, where), false, where);
  if (s.writes_down()) s.note("read plain " + s.name_of(at), where);
}

void writes_plain(const void* at, std::source_location where) noexcept {
  if (!sim::detail::exploring || thread_variables::contain(at)) return;
  const own_work scope;
  auto& s = *active;
  check_not_freed(s, at, where);
  s.memory().tick(s.self().number);
  report(s, s.memory().write_plain(s.self().number, at, where), true, where);
  s.wrote();
  if (s.writes_down()) s.note("write plain " + s.name_of(at), where);
}

void begins_plain(const void* at) noexcept {
  if (!sim::detail::exploring || thread_variables::contain(at)) return;
  const own_work scope;
  active->memory().forget_plain(at);
}

}  // namespace sluice::seam
