#pragma once

// What a process has one of, made when it is first asked for and never destroyed: a clock with its
// timers, a depot of memory. In a simulated build (sluice/sim) every schedule has one of its own.
//
//     clock& real_clock() { return run_local<steady>(); }

namespace sluice {

namespace seam {

// Runs on a thread of its own for the rest of the process. `body` returns at most at its end.
void run_forever(void (*body)(void*), void* argument);

#if defined(SLUICE_SIM)
// Null outside of a schedule.
void* local_of_run(const void* key, void* (*make)(), void (*destroy)(void*));
#endif

}  // namespace seam

template <class T>
T& run_local() {
#if defined(SLUICE_SIM)
  static constinit char key = 0;
  if (void* const made = seam::local_of_run(
          &key, []() -> void* { return new T; }, [](void* at) { delete static_cast<T*>(at); })) {
    return *static_cast<T*>(made);
  }
#endif
  static auto* const instance = new T;
  return *instance;
}

}  // namespace sluice
