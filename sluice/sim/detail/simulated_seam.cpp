// The seam of a simulated build, in place of base/seam.cpp.

#include <new>

#include "sluice/base/detail/run_local.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/sim/detail/scheduler.hpp"
#include "sluice/sim/detail/simulated_atomic.hpp"

namespace sluice::seam {
namespace {

using sim::detail::active;
using sim::detail::exploring;
using sim::detail::operation;
using sim::detail::own_work;

constinit thread_local parker* own_parker = nullptr;
std::atomic<std::uint32_t> outside_numbers{sim::detail::threads_max};

}  // namespace

namespace detail {
constinit std::atomic<bool> free_light_barrier{true};
}  // namespace detail

constinit thread_local std::uint32_t known_thread_number = 0;

time_point now() noexcept {
  return std::chrono::steady_clock::now();
}

std::uint32_t first_thread_number() noexcept {
  known_thread_number =
      exploring ? active->self().number + 1 : outside_numbers.fetch_add(1, relaxed) + 1;
  return known_thread_number;
}

void sim_pause() noexcept {
  if (exploring) active->spin("pause");
}
void yield() noexcept {
  if (exploring) active->spin("yield");
}
void nap(std::chrono::microseconds duration) noexcept {
  if (!exploring) return;
  active->forward(duration.count() * 1000);
  active->spin("nap");
}

// Only one thread runs at a time.
bool can_spin() noexcept {
  return false;
}

bool light_barrier_is_free() noexcept {
  return true;
}
void light_barrier() noexcept {}
void heavy_barrier() noexcept {
  if (!exploring) return;
  const own_work work;
  active->point({operation::kind::everything, nullptr, "a fence on every thread"},
                std::source_location{});
  active->memory().fence_all();
  if (active->writes_down()) active->note("a fence on every thread", std::source_location{});
}

parker& this_parker() noexcept {
  // A waker may use it after its thread has ended, so it lives until the end of the schedule.
  if (own_parker == nullptr) {
    if (exploring) {
      const own_work work;
      own_parker = static_cast<parker*>(active->run_local(
          &active->self(), []() -> void* { return new parker; },
          [](void* at) { delete static_cast<parker*>(at); }));
    } else {
      own_parker = new parker;
    }
  }
  return *own_parker;
}

void run_forever(void (*body)(void*), void* argument) {
  if (!exploring) {
    thread([body, argument] { body(argument); }).detach();
    return;
  }
  struct call {
    void (*body)(void*);
    void* argument;
  };
  const own_work work;
  auto* const made = static_cast<call*>(active->run_local(
      reinterpret_cast<const void*>(body), []() -> void* { return new call{}; },
      [](void* at) { delete static_cast<call*>(at); }));
  *made = {body, argument};
  active->start(
      [](void* at) -> void* {
        const auto todo = *static_cast<call*>(at);
        todo.body(todo.argument);
        return nullptr;
      },
      made, true);
}

void* local_of_run(const void* key, void* (*make)(), void (*destroy)(void*)) {
  if (exploring) return active->run_local(key, make, destroy);
  return nullptr;
}

void contract_broken_in_run(const char* text) noexcept {
  if (exploring) active->fault(sim::failure_kind::check, text);
}

}  // namespace sluice::seam
