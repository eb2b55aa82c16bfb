#pragma once

// Follows a request through actors: records who sent what to whom, when it was handled and how it
// failed, and prints that as a sequence diagram or for a trace viewer.
//
// Every message that comes from outside begins a trace; what a handler sends while it is on a
// message belongs to that message's trace. So one number leads through everything that a request
// has caused, across actors and threads. (A message from a timer begins a trace of its own.)
//
// Use it in tests, in a bug report, or for some seconds in a program that runs: it can be turned on
// and off at any time. Prefer `actor_counters` for what is always on.
//
// Guarantees: any thread may call anything. It keeps the last `capacity` events; `lost_events` says
// how many older ones are gone. A message is followed as long as its sending is among them: one
// that is begun later begins a trace of its own. Off, a message costs one look at a flag. A send
// that found no room is recorded as sent: the observer hears of it before the mailbox decides.
// Cost: on, about two locks a message; about 150 bytes for each event of the capacity, allocated
// when it is turned on first; the names of all actors that live, and of the last 4096 that do not.
//
//     actor_trace trace;
//     actor_system system(pool, {.observer = &trace});
//     trace.start();
//     work();
//     trace.stop();
//     std::cout << trace.mermaid();          // in a ```mermaid block
//     file << trace.chrome_json();           // for chrome://tracing or ui.perfetto.dev

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/actor/actor_observer.hpp"
#include "sluice/actor/detail/actor_names.hpp"
#include "sluice/actor/detail/actor_table.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice {

struct actor_trace_options {
  std::size_t capacity = 65'536;  // events, up to 2^23
  clock* time = nullptr;          // null: the real clock
};

struct trace_event {
  enum class kind : std::uint8_t { sent, begun, handled, resumed, failed, lost };

  std::uint64_t number = 0;  // of all that were recorded, from 1
  kind what = kind::sent;
  time_point when{};
  actor_id from = 0;          // of a message, if it is known; 0: from outside
  actor_id to = 0;            // the actor that it is about
  std::uint64_t trace = 0;    // 0: unknown
  std::uint64_t message = 0;  // number of the event in which it was sent; 0: unknown
  std::string_view type{};    // of the message
  std::string text{};         // why it failed or was lost
};

struct mermaid_options {
  std::uint64_t trace = 0;       // only this one; 0: all
  bool activations = true;       // shows who is busy with a message
  std::size_t arrows_max = 500;  // then it says how many more there are
};

class actor_trace final : public actor_observer {
 public:
  using options = actor_trace_options;

  explicit actor_trace(options o = {});
  ~actor_trace();

  void start();
  void stop() noexcept;
  bool is_on() const noexcept { return is_on_.load(relaxed); }
  // Forgets what was recorded, and counts from 1 again. To do so while it is on is a broken
  // contract.
  void clear();

  std::vector<trace_event> events() const;  // in order
  std::uint64_t lost_events() const noexcept;

  // Participants in the order in which they first appear.
  std::string mermaid(const mermaid_options& o = mermaid_options()) const;
  // Every actor is a row; each message that it handled a slice, with an arrow from its sender.
  std::string chrome_json() const;

  // ---- for the system

  unsigned note_bits() const noexcept override { return number_bits; }
  void spawned(actor_id who, actor_id parent, std::string_view name,
               std::string_view type) noexcept override;
  void ended(actor_id who, end_reason why) noexcept override;
  std::uint64_t sent(actor_id from, actor_id to, std::string_view message) noexcept override;
  void begun(actor_id who, std::string_view message, std::uint64_t note) noexcept override;
  void handled(actor_id who, std::string_view message, std::uint64_t note) noexcept override;
  void resumed(actor_id who, std::string_view message, std::uint64_t note) noexcept override;
  void failed(actor_id who, const std::exception_ptr& error) noexcept override;
  void lost(actor_id to, std::string_view message, std::uint64_t note, loss why) noexcept override;

 private:
  // A note is the number of the `sent` event, as far as it fits.
  static constexpr unsigned number_bits = 24;
  static constexpr std::size_t capacity_max = std::size_t{1} << (number_bits - 1);

  // What an actor is on, or was on last.
  struct place {
    std::uint64_t trace = 0;
    std::uint64_t message = 0;
    actor_id from = 0;
    std::string_view type{};
    bool is_busy = false;
  };
  struct slot {
    mutable spin_lock guard;
    trace_event event{};  // protected by guard; number 0: none
  };

  std::uint64_t record(trace_event e) noexcept;
  void take_up(actor_id who, std::string_view message, std::uint64_t note, trace_event::kind what);
  // Where a message with this note came from; all 0 if that is not recorded any more.
  place origin(actor_id to, std::uint64_t note) const noexcept;

  // Constant after construction.
  const std::size_t capacity_;
  clock& time_;

  atomic<bool> is_on_{false};
  atomic<std::uint64_t> next_{1};
  atomic<std::uint64_t> traces_{0};
  mutex starting_;
  atomic<slot*> slots_{nullptr};  // capacity_ of them, made under starting_ by the first start
  detail::actor_names names_;
  detail::actor_table<place> places_;
};

}  // namespace sluice
