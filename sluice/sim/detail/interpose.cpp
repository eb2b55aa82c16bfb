// Replacements for functions of the C library in a simulated program. Defined in the executable, so
// that calls from it and from libstdc++ resolve to them; dlsym finds the originals.

#include "sluice/sim/detail/interpose.hpp"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "sluice/base/check.hpp"
#include "sluice/sim/detail/scheduler.hpp"
#include "sluice/sim/detail/simulated_atomic.hpp"

using sluice::sim::failure_kind;
using sluice::sim::detail::active;
using sluice::sim::detail::exploring;
using sluice::sim::detail::never_ns;
using sluice::sim::detail::operation;
using sluice::sim::detail::own_work;
using sluice::sim::detail::scheduler;
using sluice::sim::detail::simulated_thread;

namespace {

// Returns the original function, which is the next definition after ours.
template <class F>
F* real(F*& known, const char* name) noexcept {
  if (known == nullptr) known = reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
  return known;
}
#define REAL(name) (real(real_##name, #name))
#define KNOW(name) constinit decltype(&::name) real_##name = nullptr

KNOW(pthread_create);
KNOW(pthread_join);
KNOW(pthread_detach);
KNOW(pthread_self);
KNOW(pthread_setname_np);
KNOW(pthread_mutex_lock);
KNOW(pthread_mutex_trylock);
KNOW(pthread_mutex_unlock);
KNOW(pthread_mutex_timedlock);
KNOW(pthread_mutex_clocklock);
KNOW(pthread_cond_wait);
KNOW(pthread_cond_timedwait);
KNOW(pthread_cond_clockwait);
KNOW(pthread_cond_signal);
KNOW(pthread_cond_broadcast);
KNOW(pthread_rwlock_rdlock);
KNOW(pthread_rwlock_tryrdlock);
KNOW(pthread_rwlock_wrlock);
KNOW(pthread_rwlock_trywrlock);
KNOW(pthread_rwlock_unlock);
KNOW(pthread_once);
KNOW(sched_yield);
KNOW(nanosleep);
KNOW(clock_nanosleep);
KNOW(clock_gettime);
KNOW(syscall);

// The difference between the wall clock and the steady clock of a schedule.
constexpr std::int64_t wall_ahead_ns = 1'700'000'000'000'000'000;
constexpr std::int64_t second_ns = 1'000'000'000;

std::int64_t to_ns(const timespec& t) noexcept {
  return t.tv_sec * second_ns + t.tv_nsec;
}

// Converts a deadline of a clock to the schedule's time.
std::int64_t until(clockid_t clock, const timespec* at) noexcept {
  if (at == nullptr) return never_ns;
  return to_ns(*at) - (clock == CLOCK_REALTIME ? wall_ahead_ns : 0);
}

void object_point(const void* at, const char* text) {
  active->point({operation::kind::write, at, text}, std::source_location{});
}

bool is_recursive(const pthread_mutex_t* m) noexcept {
  return (m->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE;
}

void note_object(const char* text, const void* at) {
  auto& s = *active;
  if (s.writes_down()) s.note_call(std::string(text) + " " + s.name_of(at));
}

// Returns 0, EBUSY (only if `waits` is false) or ETIMEDOUT.
int lock_within(pthread_mutex_t* m, std::int64_t until_ns, bool waits) {
  const own_work scope;
  auto& s = *active;
  object_point(m, "lock a mutex");
  for (;;) {
    auto& o = s.object_at(m);
    const auto me = s.self().number;
    if (o.owner == scheduler::none || (o.owner == me && is_recursive(m))) {
      o.owner = me;
      ++o.depth;
      s.take(o.memory);
      note_object("lock", m);
      return 0;
    }
    if (!waits) return EBUSY;
    if (!s.block(m, "a mutex", until_ns)) return ETIMEDOUT;
  }
}

int unlock(pthread_mutex_t* m) {
  const own_work scope;
  auto& s = *active;
  object_point(m, "unlock a mutex");
  auto& o = s.object_at(m);
  if (o.owner != s.self().number) {
    s.fail(failure_kind::check, "a mutex is unlocked by a thread that does not hold it");
  }
  if (--o.depth > 0) return 0;
  o.owner = scheduler::none;
  s.give(o.memory);
  note_object("unlock", m);
  s.wake(m, UINT32_MAX);
  return 0;
}

int wait_within(pthread_cond_t* c, pthread_mutex_t* m, std::int64_t until_ns) {
  const own_work scope;
  auto& s = *active;
  object_point(c, "wait for a condition");
  auto& o = s.object_at(m);
  const auto depth = o.depth;
  o.owner = scheduler::none;
  o.depth = 0;
  s.give(o.memory);
  s.wake(m, UINT32_MAX);
  const bool woken = s.block(c, "a condition", until_ns);
  (void)lock_within(m, never_ns, true);
  s.object_at(m).depth = depth;
  return woken ? 0 : ETIMEDOUT;
}

int notify(pthread_cond_t* c, std::uint32_t most) {
  const own_work scope;
  object_point(c, "notify");
  note_object(most == 1 ? "notify one" : "notify all", c);
  active->wake(c, most);
  return 0;
}

int read_lock(pthread_rwlock_t* l, bool waits) {
  const own_work scope;
  auto& s = *active;
  object_point(l, "lock to read");
  while (s.object_at(l).owner != scheduler::none) {
    if (!waits) return EBUSY;
    s.block(l, "a read-write lock, to read", never_ns);
  }
  auto& o = s.object_at(l);
  ++o.readers;
  s.take(o.memory);
  return 0;
}

int write_lock(pthread_rwlock_t* l, bool waits) {
  const own_work scope;
  auto& s = *active;
  object_point(l, "lock to write");
  while (s.object_at(l).owner != scheduler::none || s.object_at(l).readers > 0) {
    if (!waits) return EBUSY;
    s.block(l, "a read-write lock, to write", never_ns);
  }
  auto& o = s.object_at(l);
  o.owner = s.self().number;
  s.take(o.memory);
  return 0;
}

int read_write_unlock(pthread_rwlock_t* l) {
  const own_work scope;
  auto& s = *active;
  object_point(l, "unlock");
  auto& o = s.object_at(l);
  if (o.owner == s.self().number) {
    o.owner = scheduler::none;
  } else if (o.readers > 0) {
    --o.readers;
  } else {
    s.fail(failure_kind::check, "a read-write lock is unlocked that is not held");
  }
  s.give(o.memory);
  s.wake(l, UINT32_MAX);
  return 0;
}

long futex(std::uint32_t* word, int operation_asked, std::uint32_t value, const timespec* at) {
  const own_work scope;
  auto& s = *active;
  const int command = operation_asked & FUTEX_CMD_MASK;
  if (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET) {
    object_point(word, "wake");
    note_object("wake the sleepers at", word);
    return static_cast<long>(s.wake(word, value));
  }
  if (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET) {
    s.fail(failure_kind::check, "a futex operation that sluice::sim does not know");
  }
  object_point(word, "sleep");
  std::uint32_t now = 0;
  std::memcpy(&now, word, sizeof now);
  // Not a sluice::atomic: all stores to it by std::atomic are treated as synchronized.
  const bool is_foreign = !s.memory().tracks(word);
  if (now != value) {
    if (is_foreign) s.learn_everything();
    errno = EAGAIN;
    return -1;
  }
  std::int64_t until_ns = never_ns;
  if (at != nullptr) {
    const bool wall = (operation_asked & FUTEX_CLOCK_REALTIME) != 0;
    until_ns = command == FUTEX_WAIT ? s.now_ns() + to_ns(*at)
                                     : until(wall ? CLOCK_REALTIME : CLOCK_MONOTONIC, at);
  }
  const bool woken = s.block(word, "a wake-up", until_ns);
  if (is_foreign) s.learn_everything();
  if (woken) return 0;
  errno = ETIMEDOUT;
  return -1;
}

void sleep_within(std::int64_t until_ns) {
  const own_work scope;
  auto& s = *active;
  static constexpr char here = 0;
  while (s.block(&here, "its time", until_ns)) {
  }
}

void on_fault(int signal, siginfo_t* info, void*) {
  if (active == nullptr) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    return;
  }
  static char text[96];
  if (signal == SIGABRT) {
    std::snprintf(text, sizeof text, "abort");
  } else {
    std::snprintf(text, sizeof text, "a bad address, %p (0xdd... is memory that was freed)",
                  info->si_addr);
  }
  active->fault(failure_kind::crash, text);
}

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (exploring && active->self().untracked == 0) {
    const own_work scope;
    return active->heap().allocate(bytes, alignment, active->steps());
  }
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return std::malloc(bytes == 0 ? 1 : bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* const got = allocate(bytes, alignment);
  if (got == nullptr) throw std::bad_alloc();
  return got;
}

// The arena of the last schedule, to recognize its addresses afterwards.
constinit const sluice::sim::detail::arena* last_arena = nullptr;

void release(void* at) noexcept {
  if (at == nullptr) return;
  if (active != nullptr) {
    auto& heap = active->heap();
    last_arena = &heap;
    if (heap.owns(at)) {
      const own_work scope;
      if (!heap.release(at)) {
        active->fail(failure_kind::use_after_free, "memory is freed twice");
      }
      return;
    }
  } else if (last_arena != nullptr && last_arena->owns(at)) {
    return;  // a static kept it from a schedule: the arena has already freed it
  }
  std::free(at);
}

}  // namespace

namespace sluice::sim::detail {

std::chrono::nanoseconds real_now() noexcept {
  timespec t{};
  REAL(clock_gettime)(CLOCK_MONOTONIC, &t);
  return std::chrono::nanoseconds(to_ns(t));
}

namespace {
struct old_handlers {
  struct sigaction segv, bus, abrt;
  stack_t stack;
};
constinit old_handlers before{};
constexpr std::size_t signal_stack_bytes = 64 << 10;
alignas(16) constinit char signal_stack[signal_stack_bytes]{};
}  // namespace

catch_faults::catch_faults() {
  stack_t own{};
  own.ss_sp = signal_stack;
  own.ss_size = sizeof signal_stack;
  ::sigaltstack(&own, &before.stack);
  struct sigaction act {};
  act.sa_sigaction = &on_fault;
  act.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigaction(SIGSEGV, &act, &before.segv);
  ::sigaction(SIGBUS, &act, &before.bus);
  ::sigaction(SIGABRT, &act, &before.abrt);
}

catch_faults::~catch_faults() {
  ::sigaction(SIGSEGV, &before.segv, nullptr);
  ::sigaction(SIGBUS, &before.bus, nullptr);
  ::sigaction(SIGABRT, &before.abrt, nullptr);
  ::sigaltstack(&before.stack, nullptr);
  last_arena = nullptr;
}

}  // namespace sluice::sim::detail

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                   void* argument) noexcept {
  if (!exploring) return REAL(pthread_create)(thread, attributes, routine, argument);
  // The process has one real thread; libstdc++ would omit the synchronization of
  // std::stop_callback.
  __libc_single_threaded = 0;
  auto& made = active->start(routine, argument, false);
  *thread = reinterpret_cast<pthread_t>(&made);
  active->point({operation::kind::nothing, nullptr, "start a thread"}, std::source_location{});
  return 0;
}
int pthread_join(pthread_t thread, void** result) {
  if (!exploring) return REAL(pthread_join)(thread, result);
  void* const made = active->join(*reinterpret_cast<simulated_thread*>(thread));
  if (result != nullptr) *result = made;
  return 0;
}
int pthread_detach(pthread_t thread) noexcept {
  if (!exploring) return REAL(pthread_detach)(thread);
  return 0;
}
pthread_t pthread_self() noexcept {
  if (active == nullptr || !exploring) return REAL(pthread_self)();
  // Called by std::stop_source: its callbacks happen after everything that was done before they
  // were registered.
  active->learn_everything();
  return reinterpret_cast<pthread_t>(&active->self());
}
int pthread_setname_np(pthread_t thread, const char* name) noexcept {
  if (!exploring) return REAL(pthread_setname_np)(thread, name);
  auto& shown = reinterpret_cast<simulated_thread*>(thread)->name;
  std::strncpy(shown.data(), name, shown.size() - 1);
  return 0;
}

int pthread_mutex_lock(pthread_mutex_t* m) noexcept {
  return exploring ? lock_within(m, never_ns, true) : REAL(pthread_mutex_lock)(m);
}
int pthread_mutex_trylock(pthread_mutex_t* m) noexcept {
  return exploring ? lock_within(m, 0, false) : REAL(pthread_mutex_trylock)(m);
}
int pthread_mutex_timedlock(pthread_mutex_t* m, const timespec* at) noexcept {
  return exploring ? lock_within(m, until(CLOCK_REALTIME, at), true)
                   : REAL(pthread_mutex_timedlock)(m, at);
}
int pthread_mutex_clocklock(pthread_mutex_t* m, clockid_t clock, const timespec* at) noexcept {
  return exploring ? lock_within(m, until(clock, at), true)
                   : REAL(pthread_mutex_clocklock)(m, clock, at);
}
int pthread_mutex_unlock(pthread_mutex_t* m) noexcept {
  return exploring ? unlock(m) : REAL(pthread_mutex_unlock)(m);
}

int pthread_cond_wait(pthread_cond_t* c, pthread_mutex_t* m) {
  return exploring ? wait_within(c, m, never_ns) : REAL(pthread_cond_wait)(c, m);
}
int pthread_cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m, const timespec* at) {
  return exploring ? wait_within(c, m, until(CLOCK_REALTIME, at))
                   : REAL(pthread_cond_timedwait)(c, m, at);
}
int pthread_cond_clockwait(pthread_cond_t* c, pthread_mutex_t* m, clockid_t clock,
                           const timespec* at) {
  return exploring ? wait_within(c, m, until(clock, at))
                   : REAL(pthread_cond_clockwait)(c, m, clock, at);
}
int pthread_cond_signal(pthread_cond_t* c) noexcept {
  return exploring ? notify(c, 1) : REAL(pthread_cond_signal)(c);
}
int pthread_cond_broadcast(pthread_cond_t* c) noexcept {
  return exploring ? notify(c, UINT32_MAX) : REAL(pthread_cond_broadcast)(c);
}

int pthread_rwlock_rdlock(pthread_rwlock_t* l) noexcept {
  return exploring ? read_lock(l, true) : REAL(pthread_rwlock_rdlock)(l);
}
int pthread_rwlock_tryrdlock(pthread_rwlock_t* l) noexcept {
  return exploring ? read_lock(l, false) : REAL(pthread_rwlock_tryrdlock)(l);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* l) noexcept {
  return exploring ? write_lock(l, true) : REAL(pthread_rwlock_wrlock)(l);
}
int pthread_rwlock_trywrlock(pthread_rwlock_t* l) noexcept {
  return exploring ? write_lock(l, false) : REAL(pthread_rwlock_trywrlock)(l);
}
int pthread_rwlock_unlock(pthread_rwlock_t* l) noexcept {
  return exploring ? read_write_unlock(l) : REAL(pthread_rwlock_unlock)(l);
}

int pthread_once(pthread_once_t* once, void (*routine)()) {
  if (!exploring) return REAL(pthread_once)(once, routine);
  // 0: not begun; 1: in progress; 2: done.
  object_point(once, "once");
  auto& s = *active;
  while (*once == 1) {
    const own_work scope;
    s.block(once, "a once-flag", never_ns);
  }
  if (*once == 0) {
    *once = 1;
    try {
      routine();
    } catch (...) {
      *once = 0;
      s.wake(once, UINT32_MAX);
      throw;
    }
    *once = 2;
    const own_work scope;
    s.give(s.object_at(once).memory);
    s.wake(once, UINT32_MAX);
  }
  const own_work scope;
  s.take(s.object_at(once).memory);
  return 0;
}

int sched_yield() noexcept {
  if (!exploring) return REAL(sched_yield)();
  active->spin("yield");
  // Called by libstdc++, which spins on a std::atomic before it sleeps; Sluice yields by the seam.
  const own_work scope;
  active->learn_everything();
  return 0;
}
int nanosleep(const timespec* duration, timespec* left) {
  if (!exploring) return REAL(nanosleep)(duration, left);
  sleep_within(active->now_ns() + to_ns(*duration));
  return 0;
}
int clock_nanosleep(clockid_t clock, int flags, const timespec* at, timespec* left) {
  if (!exploring) return REAL(clock_nanosleep)(clock, flags, at, left);
  sleep_within((flags & TIMER_ABSTIME) != 0 ? until(clock, at) : active->now_ns() + to_ns(*at));
  return 0;
}
int clock_gettime(clockid_t clock, timespec* into) noexcept {
  if (!exploring) return REAL(clock_gettime)(clock, into);
  const auto ns = active->now_ns() + (clock == CLOCK_REALTIME ? wall_ahead_ns : 0);
  into->tv_sec = ns / second_ns;
  into->tv_nsec = ns % second_ns;
  return 0;
}

long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long a[6];
  for (auto& one : a) one = va_arg(list, long);
  va_end(list);
  if (exploring && number == SYS_futex) {
    return futex(reinterpret_cast<std::uint32_t*>(a[0]), static_cast<int>(a[1]),
                 static_cast<std::uint32_t>(a[2]), reinterpret_cast<const timespec*>(a[3]));
  }
  return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

// Destroys the thread_local objects of a simulated thread at its end.
int __cxa_thread_atexit(void (*destroy)(void*), void* object, void* library) noexcept {
  if (exploring) {
    const own_work scope;
    active->self().at_ends.push_back({destroy, object});
    return 0;
  }
  using known = int (*)(void (*)(void*), void*, void*);
  static constinit known behind = nullptr;
  if (behind == nullptr) {
    behind = reinterpret_cast<known>(::dlsym(RTLD_NEXT, "__cxa_thread_atexit_impl"));
  }
  return behind(destroy, object, library);
}

// A static constructed in a schedule outlives it: its memory must not come from the arena.
int __cxa_guard_acquire(long long* guard) {
  using known = int (*)(long long*);
  static constinit known behind = nullptr;
  if (behind == nullptr) {
    behind = reinterpret_cast<known>(::dlsym(RTLD_NEXT, "__cxa_guard_acquire"));
  }
  const int must_make = behind(guard);
  if (must_make != 0 && exploring) ++active->self().untracked;
  return must_make;
}
void __cxa_guard_release(long long* guard) noexcept {
  using known = void (*)(long long*);
  static constinit known behind = nullptr;
  if (behind == nullptr) {
    behind = reinterpret_cast<known>(::dlsym(RTLD_NEXT, "__cxa_guard_release"));
  }
  if (exploring && active->self().untracked > 0) --active->self().untracked;
  behind(guard);
}
void __cxa_guard_abort(long long* guard) noexcept {
  using known = void (*)(long long*);
  static constinit known behind = nullptr;
  if (behind == nullptr) {
    behind = reinterpret_cast<known>(::dlsym(RTLD_NEXT, "__cxa_guard_abort"));
  }
  if (exploring && active->self().untracked > 0) --active->self().untracked;
  behind(guard);
}

}  // extern "C"

void* operator new(std::size_t bytes) {
  return allocate_or_throw(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new[](std::size_t bytes) {
  return allocate_or_throw(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void operator delete(void* at) noexcept {
  release(at);
}
void operator delete[](void* at) noexcept {
  release(at);
}
void operator delete(void* at, std::size_t) noexcept {
  release(at);
}
void operator delete[](void* at, std::size_t) noexcept {
  release(at);
}
void operator delete(void* at, std::align_val_t) noexcept {
  release(at);
}
void operator delete[](void* at, std::align_val_t) noexcept {
  release(at);
}
void operator delete(void* at, std::size_t, std::align_val_t) noexcept {
  release(at);
}
void operator delete[](void* at, std::size_t, std::align_val_t) noexcept {
  release(at);
}
