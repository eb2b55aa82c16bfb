#pragma once

// What the library tells whoever watches it: who waits for what, and who holds what. It is the
// door through which `inspect` sees all waits; without a watcher it is shut, and costs one load.
//
// A wait that is about to sleep or suspend reports a `wait_record`, which lives in the frame of the
// wait, and takes it back before it returns. Locks and semaphores report who took and who gave
// back, queues and channels who used which end, objects that they are gone.
//
// Guarantees: reports may be made with the short lock of a primitive held, so a watcher must not
// touch one. A report that begins under one watcher ends with that one, also when another has taken
// its place: so a watcher is never destroyed.
// Cost: off, one relaxed load at each place that could report. Waiting allocates nothing, on or
// off.
//
// For writers of primitives: an operation (wait.hpp) that has `watch::subject about() const` is
// listed as a wait for that (or, with `std::size_t about(subject*, std::size_t room) const`, for
// any of several); one that has `void taken_by(watch::party, call_site)` is told, when it has
// ended well, who has it now.

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "sluice/base/atomic.hpp"
#include "sluice/base/call_site.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/base/per_thread.hpp"

namespace sluice {

class waiter;
class sleep_observer;
class work_sink;
struct wait_limits;

namespace watch {

// Who waits or holds: a thread, a coroutine (with all that it awaits), an actor, a callback. Or who
// is waited for: an executor, which is any of its threads.
class party {
 public:
  enum class kind : std::uint8_t { nobody, thread, coroutine, actor, callback, executor };

  constexpr party() noexcept = default;  // nobody
  static party this_thread() noexcept;
  static party coroutine(const void* outermost) noexcept {
    return party(kind::coroutine, reinterpret_cast<std::uintptr_t>(outermost));
  }
  // Actors are numbered by their system: actor 1 of one system is not that of another.
  static constexpr party actor(std::uint64_t number, std::uint64_t system = 0) noexcept {
    return party(kind::actor, (number & actor_mask) | (system << actor_bits));
  }
  static party executor(const void* at) noexcept {
    return party(kind::executor, reinterpret_cast<std::uintptr_t>(at));
  }
  // Of which the calling thread does the work: the actor in whose turn it is, else itself, unless
  // it says otherwise by `acting_as`.
  static party current() noexcept;

  constexpr kind what() const noexcept { return static_cast<kind>(word_ >> 60); }
  // What tells it from others of its kind.
  constexpr std::uint64_t id() const noexcept { return word_ & id_mask; }
  // Of a thread: its number in the library, and in the operating system.
  constexpr std::uint32_t thread_number() const noexcept {
    return static_cast<std::uint32_t>(word_ & 0xff'ffff);
  }
  constexpr std::uint32_t kernel_thread() const noexcept {
    return static_cast<std::uint32_t>((word_ & id_mask) >> 24);
  }
  // Of a coroutine or an executor.
  const void* address() const noexcept { return reinterpret_cast<const void*>(id()); }
  // Of an actor: its number in its system.
  constexpr std::uint64_t actor_number() const noexcept { return word_ & actor_mask; }
  // As one number, to be kept in an atomic.
  constexpr std::uint64_t word() const noexcept { return word_; }
  static constexpr party from_word(std::uint64_t word) noexcept {
    party p;
    p.word_ = word;
    return p;
  }
  constexpr explicit operator bool() const noexcept { return word_ != 0; }
  friend constexpr bool operator==(party, party) noexcept = default;
  friend constexpr auto operator<=>(party, party) noexcept = default;

 private:
  static constexpr std::uint64_t id_mask = (std::uint64_t{1} << 60) - 1;
  static constexpr unsigned actor_bits = 44;
  static constexpr std::uint64_t actor_mask = (std::uint64_t{1} << actor_bits) - 1;
  constexpr party(kind k, std::uint64_t id) noexcept
      : word_((static_cast<std::uint64_t>(k) << 60) | (id & id_mask)) {}

  std::uint64_t word_ = 0;
};

// What the sink of coroutines derives from that do the work of another party: those of an actor's
// handler, which holds up the actor while it keeps the next message out.
class party_sink {
 public:
  // Nobody: they wait for themselves alone. Any thread asks, while one of them waits.
  virtual party acts_for() const noexcept = 0;

 protected:
  ~party_sink() = default;
};

// A coroutine that awaits something, as a whole: with those that await it.
template <class Promise>
party party_of(std::coroutine_handle<Promise> awaiting) noexcept {
  if constexpr (requires { awaiting.promise().outermost(); }) {
    return party::coroutine(awaiting.promise().outermost());
  } else {
    return party::coroutine(awaiting.address());
  }
}

// While it lives, what the calling thread waits for and takes is put down to this party.
class acting_as {
 public:
  explicit acting_as(party who) noexcept;
  acting_as(const acting_as&) = delete;
  acting_as& operator=(const acting_as&) = delete;
  ~acting_as();

 private:
  const party before_;
};

// The party that a coroutine with this sink (null: none) takes things for right now.
party taker_of(party coroutine, const work_sink* sink) noexcept;

// By whom a wait can be ended.
enum class served_by : std::uint8_t {
  unknown,  // anybody: an event, a condition, more work for one that is idle
  holders,  // those who hold it, when they let go
  takers,   // those who take from it: it is full
  givers,   // those who give to it: it hands over without keeping
  one,      // the one that is named with it
};

// What is waited for.
struct subject {
  const void* object = nullptr;
  const char* type = "";   // "sluice::mutex"
  const char* wants = "";  // "lock"
  served_by by = served_by::unknown;
  bool others_could = false;  // it may be left to somebody of whom nothing is known
  bool ends_in_time = false;  // by a timer or stop of its own, whatever the limits of the wait are
  std::size_t capacity = no_capacity;
  // For served_by::one: who that is, and what it does ("runs").
  party whom{};
  const char* how = "";

  static constexpr std::size_t no_capacity = std::numeric_limits<std::size_t>::max();
};

// How something is held.
enum class held_as : std::uint8_t {
  alone,    // a lock
  shared,   // a lock, with others: all of them must let go
  permits,  // of a semaphore: any of those who have some can give some back
  running,  // the one whose end is waited for: all of them must end
  crew,     // an executor, as one of its threads: any of them can run what is queued there
};

struct hold {
  const void* object = nullptr;
  const char* type = "";
  held_as how = held_as::alone;
  party by{};
  std::int64_t count = 1;  // of a crew: how many it has in all
  call_site at{};
  bool waited = true;    // false: taken by a try, which cannot deadlock
  bool awaited = false;  // by a coroutine, which may give it back on another thread
};

// The ends of a queue or channel.
enum class side : std::uint8_t { takes, gives };

class wait_record;

// What hears of it all. Any thread calls anything; nothing may throw, or wait for long.
class observer {
 public:
  virtual void waits(wait_record& w) noexcept = 0;
  virtual void waits_no_more(wait_record& w) noexcept = 0;
  virtual void took(const hold& h) noexcept = 0;
  virtual void gave(const void* object, party by, std::int64_t count) noexcept = 0;
  virtual void used(const void* object, side which, party by) noexcept = 0;
  virtual void gone(const void* object) noexcept = 0;

 protected:
  ~observer() = default;
};

// Sets the watcher (null: none), and returns the one before.
observer* observe(observer* by) noexcept;

namespace detail {
// 0: nobody watches. Else it changes with every watcher, and when what was noted is to be noted
// again (`start_over`).
extern atomic<std::uint64_t> generation;
void took(const hold& h) noexcept;
void gave(const void* object, party by, std::int64_t count) noexcept;
void used(const void* object, side which) noexcept;
void gone(const void* object) noexcept;
}  // namespace detail

// relaxed: a guess is enough; who acts on it loads the watcher with acquire.
inline bool is_on() noexcept {
  return glance(detail::generation) != 0;
}
// For a watcher: uses that a thread has reported are reported again.
void start_over() noexcept;

inline void took(const hold& h) noexcept {
  if (is_on()) [[unlikely]]
    detail::took(h);
}
inline void gave(const void* object, std::int64_t count = 1) noexcept {
  if (is_on()) [[unlikely]]
    detail::gave(object, party::current(), count);
}
inline void gave(const void* object, party by) noexcept {
  if (is_on()) [[unlikely]]
    detail::gave(object, by, 1);
}
// Reported once by each thread while nothing has changed.
inline void used(const void* object, side which) noexcept {
  if (is_on()) [[unlikely]]
    detail::used(object, which);
}

// One wait, from shortly before it sleeps until it was woken. One that was woken in vain, and waits
// again, is reported again. A watcher links it through its hook, and may read it for as long as it
// keeps `waits_no_more` from returning.
class wait_record : public list_hook {
 public:
  wait_record() = default;
  wait_record(const wait_record&) = delete;
  wait_record& operator=(const wait_record&) = delete;
  ~wait_record() {
    if (told_ != nullptr) [[unlikely]]
      end();
  }

  // Reports the wait, if it is not reported already. All must live until it ends. The sink is that
  // of a coroutine.
  template <class Op>
  void begin(const Op& op, const waiter& who, const wait_limits& limits, party by,
             const work_sink* sink = nullptr) noexcept {
    if (told_ != nullptr) return;
    if constexpr (requires(subject * out) { op.about(out, std::size_t{}); }) {
      op_ = &op;
      about_ = [](const void* at, subject* out, std::size_t room) noexcept {
        return static_cast<const Op*>(at)->about(out, room);
      };
    } else if constexpr (requires { op.about(); }) {
      subject_ = op.about();  // now: once it is served, the object may be gone
    }
    report(who, limits, by, sink);
  }
  void end() noexcept;

  // For the watcher. Up to `room` of what is waited for (any one of them ends the wait); returns
  // how many there are.
  std::size_t about(subject* out, std::size_t room) const noexcept {
    if (about_ != nullptr) return about_(op_, out, room);
    if (room > 0) *out = subject_;
    return 1;
  }
  const waiter& who() const noexcept { return *who_; }
  const wait_limits& limits() const noexcept { return *limits_; }
  // Where it was called.
  call_site at() const noexcept;
  party by() const noexcept;
  // Up to `room` of those that cannot go on either, because it holds up their thread: that thread,
  // if it is for another that it waits, and those for whom it works further down its stack. Returns
  // how many.
  std::size_t held_up(party* out, std::size_t room) const noexcept;
  bool is_reported() const noexcept { return told_ != nullptr; }

  // The watcher's own; they outlast an end, for the case that it waits again.
  time_point since{};
  time_point again_since{};
  std::uint64_t number = 0;  // 0: it was never reported
  std::uint32_t shard = 0;

 private:
  void report(const waiter& who, const wait_limits& limits, party by,
              const work_sink* sink) noexcept;

  subject subject_{};
  // In its place for one that waits for several at once, all of which stay until it has left them.
  const void* op_ = nullptr;
  std::size_t (*about_)(const void*, subject*, std::size_t) noexcept = nullptr;
  const waiter* who_ = nullptr;
  const wait_limits* limits_ = nullptr;
  party by_{};
  party thread_{};                         // that sleeps; nobody: it is a coroutine that waits
  const sleep_observer* works_ = nullptr;  // for whom that thread works
  const party_sink* sink_ = nullptr;       // for whom that coroutine waits
  const void* code_ = nullptr;             // that called, if the place is in a header
  observer* told_ = nullptr;
};

}  // namespace watch
}  // namespace sluice
