#pragma once

// Reports of the library about waits: which party waits for what, and which party holds what.
// Through it `inspect` sees all waits; without an observer, reporting is off and costs one load.
//
// A wait that is about to sleep or suspend reports a `wait_record`, which lives in the frame of the
// wait, and withdraws it before it returns. Locks and semaphores report taking and giving back,
// queues and channels report the use of each end, objects report their destruction.
//
// Guarantees: reports may be made with the short lock of a primitive held, so an observer must not
// use a primitive. A report that begins with one observer ends with the same one, also after
// another has replaced it: so an observer is never destroyed.
// Cost: off, one relaxed load at each place that could report. Waiting allocates nothing, on or
// off.
//
// For writers of primitives: an operation (wait.hpp) with `wait_report::subject wait_subject()
// const` is listed as a wait for that subject (with `std::size_t wait_subject(subject*, std::size_t
// capacity) const`, for any of several). If it has `void taken_by(wait_report::party, call_site)`,
// this is called with the new holder when the wait has ended with ok.

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "sluice/base/atomic.hpp"
#include "sluice/base/call_site.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/base/detail/per_thread.hpp"
#include "sluice/base/intrusive_list.hpp"

namespace sluice {

class waiter;
class sleep_observer;
class work_sink;
struct wait_limits;

namespace wait_report {

// A party that waits or holds: a thread, a coroutine (with all that it awaits), an actor, a
// callback. Or an awaited party: an executor, which is any of its threads.
class party {
 public:
  enum class kind : std::uint8_t { none, thread, coroutine, actor, callback, executor };

  constexpr party() noexcept = default;  // none
  static party this_thread() noexcept;
  static party coroutine(const void* outermost) noexcept {
    return party(kind::coroutine, reinterpret_cast<std::uintptr_t>(outermost));
  }
  // Actors are numbered per system: actor 1 of one system is not actor 1 of another.
  static constexpr party actor(std::uint64_t number, std::uint64_t system = 0) noexcept {
    return party(kind::actor, (number & actor_mask) | (system << actor_bits));
  }
  static party executor(const void* at) noexcept {
    return party(kind::executor, reinterpret_cast<std::uintptr_t>(at));
  }
  // The party that the calling thread works for: the actor whose turn it runs, else the thread
  // itself. `acting_as` overrides.
  static party current() noexcept;

  constexpr kind type() const noexcept { return static_cast<kind>(word_ >> 60); }
  // Identifies it among the parties of its kind.
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
  // The party as one number, to be stored in an atomic.
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

// Base of the sink of coroutines that work for another party, such as those of an actor's handler,
// which block the actor while it takes no other message.
class party_sink {
 public:
  // None: each coroutine waits for itself. Any thread may call it while one of them waits.
  virtual party acts_for() const noexcept = 0;

 protected:
  ~party_sink() = default;
};

// The party of a coroutine that awaits something: the whole chain of coroutines that await it.
template <class Promise>
party party_of(std::coroutine_handle<Promise> awaiting) noexcept {
  if constexpr (requires { awaiting.promise().outermost(); }) {
    return party::coroutine(awaiting.promise().outermost());
  } else {
    return party::coroutine(awaiting.address());
  }
}

// While it lives, waits and holds of the calling thread are attributed to this party.
class acting_as {
 public:
  explicit acting_as(party p) noexcept;
  acting_as(const acting_as&) = delete;
  acting_as& operator=(const acting_as&) = delete;
  ~acting_as();

 private:
  const party before_;
};

// Returns the party that a coroutine with this sink (null: none) currently takes locks for.
party taker_of(party coroutine, const work_sink* sink) noexcept;

// The parties that can end a wait.
enum class served_by : std::uint8_t {
  unknown,    // any party: an event, a condition, more work for an idle thread
  holders,    // by releasing
  consumers,  // by taking: it is full
  producers,  // by adding: it hands over without storing
  one,        // the party in `target`
};

// The object of a wait.
struct subject {
  const void* object = nullptr;
  const char* type = "";   // "sluice::mutex"
  const char* wants = "";  // "lock"
  served_by by = served_by::unknown;
  bool others_can_end = false;  // an unknown party may end the wait as well
  bool ends_by_itself = false;  // by its own timer or stop, without limits as well
  std::size_t capacity = no_capacity;
  // For served_by::one: the party, and its activity ("runs").
  party target{};
  const char* activity = "";

  static constexpr std::size_t no_capacity = std::numeric_limits<std::size_t>::max();
};

// The way an object is held.
enum class held_as : std::uint8_t {
  alone,    // a lock, exclusively
  shared,   // a lock, together with others: all of them must release it
  permits,  // of a semaphore: any holder can give some back
  running,  // work that others wait for: all of its runners must end
  crew,     // an executor, as one of its threads: any of them can run the queued work
};

struct hold {
  const void* object = nullptr;
  const char* type = "";
  held_as mode = held_as::alone;
  party by{};
  std::int64_t count = 1;  // of a crew: the number of its threads
  call_site at{};
  bool waited = true;    // false if taken by a try, which cannot deadlock
  bool awaited = false;  // taken by a coroutine, which may give it back on another thread
};

// The ends of a queue or channel.
enum class side : std::uint8_t { consumer, producer };

class wait_record;

// Receives all reports. Any thread may call any function; none may throw or block for long.
class observer {
 public:
  virtual void wait_started(wait_record& w) noexcept = 0;
  virtual void wait_ended(wait_record& w) noexcept = 0;
  virtual void took(const hold& h) noexcept = 0;
  virtual void gave(const void* object, party by, std::int64_t count) noexcept = 0;
  virtual void used(const void* object, side which, party by) noexcept = 0;
  virtual void destroyed(const void* object) noexcept = 0;

 protected:
  ~observer() = default;
};

// Sets the observer (null: none), and returns the previous one.
observer* observe(observer* by) noexcept;

namespace detail {
// 0: no observer. Else it changes with every observer, and when threads must report their uses
// again (`start_over`).
extern atomic<std::uint64_t> generation;
void took(const hold& h) noexcept;
void gave(const void* object, party by, std::int64_t count) noexcept;
void used(const void* object, side which) noexcept;
void destroyed(const void* object) noexcept;
}  // namespace detail

// relaxed: a guess is enough; the reporting functions load the observer with acquire.
inline bool is_on() noexcept {
  return load_untracked(detail::generation) != 0;
}
// For an observer: makes threads report again the uses that they have reported already.
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
// Each thread reports a use once per generation.
inline void used(const void* object, side which) noexcept {
  if (is_on()) [[unlikely]]
    detail::used(object, which);
}

// One wait, from shortly before it sleeps until it is woken. A wait that was woken without being
// served, and waits again, is reported again. An observer links it through its hook, and may read
// it until it returns from `wait_ended`.
class wait_record : public list_hook {
 public:
  wait_record() = default;
  wait_record(const wait_record&) = delete;
  wait_record& operator=(const wait_record&) = delete;
  ~wait_record() {
    if (observer_ != nullptr) [[unlikely]]
      end();
  }

  // Reports the wait, if it is not reported already. The arguments must live until it ends. `sink`
  // is the coroutine's.
  template <class Op>
  void begin(const Op& op, const waiter& waiting, const wait_limits& limits, party by,
             const work_sink* sink = nullptr) noexcept {
    if (observer_ != nullptr) return;
    if constexpr (requires(subject * out) { op.wait_subject(out, std::size_t{}); }) {
      op_ = &op;
      subjects_ = [](const void* at, subject* out, std::size_t capacity) noexcept {
        return static_cast<const Op*>(at)->wait_subject(out, capacity);
      };
    } else if constexpr (requires { op.wait_subject(); }) {
      subject_ = op.wait_subject();  // now: once served, the object may be destroyed
    }
    report(waiting, limits, by, sink);
  }
  void end() noexcept;

  // For the observer. Writes up to `capacity` subjects (any one of them ends the wait) and returns
  // their number.
  std::size_t wait_subject(subject* out, std::size_t capacity) const noexcept {
    if (subjects_ != nullptr) return subjects_(op_, out, capacity);
    if (capacity > 0) *out = subject_;
    return 1;
  }
  const waiter& waiting() const noexcept { return *waiting_; }
  const wait_limits& limits() const noexcept { return *limits_; }
  // The place of the call.
  call_site at() const noexcept;
  party by() const noexcept;
  // Writes up to `capacity` parties that this wait blocks indirectly: the thread itself, if it
  // waits on behalf of another party, and the parties that it runs for in outer frames. Returns
  // their number.
  std::size_t blocked(party* out, std::size_t capacity) const noexcept;
  bool is_reported() const noexcept { return observer_ != nullptr; }

  // Owned by the observer; they survive the end of the wait, for the case that it waits again.
  time_point since{};
  time_point again_since{};
  std::uint64_t number = 0;  // 0 if never reported
  std::uint32_t shard = 0;

 private:
  void report(const waiter& waiting, const wait_limits& limits, party by,
              const work_sink* sink) noexcept;

  subject subject_{};
  // Replace subject_ in a wait for several objects, which all exist until the wait has left them.
  const void* op_ = nullptr;
  std::size_t (*subjects_)(const void*, subject*, std::size_t) noexcept = nullptr;
  const waiter* waiting_ = nullptr;
  const wait_limits* limits_ = nullptr;
  party by_{};
  party thread_{};                         // the sleeping thread; none for a coroutine
  const sleep_observer* works_ = nullptr;  // the parties that the thread works for
  const party_sink* sink_ = nullptr;       // the party that the coroutine waits for
  const void* code_ = nullptr;             // the calling code, if the place is in a header
  observer* observer_ = nullptr;
};

}  // namespace wait_report
}  // namespace sluice
