#pragma once

// Marks an inline function that touches a thread_local, so that coroutines may call it.
//
// A coroutine may go on on another thread after every wait. g++ looks for a thread_local anew then;
// clang 16 keeps its address across the suspension when the access was inlined into the coroutine,
// and so reads and writes what belongs to another thread. Behind a call it cannot.
//
//     SLUICE_PER_THREAD inline std::uint32_t thread_number() noexcept { return number; }

#if defined(__clang__)
#define SLUICE_PER_THREAD [[gnu::noinline]]
#else
#define SLUICE_PER_THREAD
#endif
