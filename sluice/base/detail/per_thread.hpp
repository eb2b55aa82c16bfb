#pragma once

// Marks an inline function that accesses a thread_local, so that coroutines may call it.
//
// A coroutine may resume on another thread after every wait. g++ computes the address of a
// thread_local again then; clang 16 keeps it across the suspension if the access was inlined into
// the coroutine, which then reads and writes another thread's variable. A call that is not inlined
// prevents this.
//
//     SLUICE_PER_THREAD inline std::uint32_t thread_number() noexcept { return number; }

#if defined(__clang__)
#define SLUICE_PER_THREAD [[gnu::noinline]]
#else
#define SLUICE_PER_THREAD
#endif
