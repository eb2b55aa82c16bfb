#pragma once

// A singleton of the process, constructed at its first use and never destroyed: a clock with its
// timers, for example. In a simulated build (sluice/sim) every schedule has its own instance.
//
//     clock& real_clock() { return run_local<steady>(); }

namespace sluice {

namespace seam {

// Runs `body` on a thread of its own for the rest of the process.
void run_forever(void (*body)(void*), void* argument);

#if defined(SLUICE_SIM)
// Returns the running schedule's instance for `key`; null outside of a schedule.
void* local_of_run(const void* key, void* (*make)(), void (*destroy)(void*));
#endif

}  // namespace seam

template <class T>
T& run_local() {
#if defined(SLUICE_SIM)
  static constinit char key = 0;
  if (void* const local = seam::local_of_run(
          &key, []() -> void* { return new T; }, [](void* at) { delete static_cast<T*>(at); })) {
    return *static_cast<T*>(local);
  }
#endif
  static auto* const instance = new T;
  return *instance;
}

}  // namespace sluice
