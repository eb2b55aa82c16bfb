#pragma once

// Follows a request through actors: records sends, handlers and failures, and prints them as a
// sequence diagram or for a trace viewer.
//
// Every message from outside begins a trace; the messages that its handler sends belong to the same
// trace. So one number identifies everything that a request has caused, across actors and threads.
// (A message from a timer begins a trace of its own.)
//
// Use it in tests, in a bug report, or for some seconds in production: it can be turned on and off
// at any time. Prefer `actor_counters` for monitoring that is always on.
//
// Guarantees: any thread may call anything. It keeps the last `capacity` events; `lost_events` is
// the number of older ones that were overwritten. A message is followed while its send is among the
// kept events; a message that is begun later begins a trace of its own. While off, a message costs
// one read of a flag. A send to a full mailbox is recorded as sent: the observer is called before
// the mailbox decides.
// Cost: while on, about two locks a message; about 150 bytes for each event of the capacity,
// allocated at the first start; the names of all live actors, and of the last 4096 ended ones.
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

  std::uint64_t number = 0;  // counts all recorded events, from 1
  kind event = kind::sent;
  time_point when{};
  actor_id from = 0;          // sender of the message; 0: unknown, or from outside
  actor_id receiver = 0;      // the actor concerned
  std::uint64_t trace = 0;    // 0: unknown
  std::uint64_t message = 0;  // number of the event of its send; 0: unknown
  std::string_view type{};    // of the message
  std::string text{};         // the reason, if it failed or was lost
};

struct mermaid_options {
  std::uint64_t trace = 0;       // only this trace; 0: all
  bool activations = true;       // shows while an actor handles a message
  std::size_t arrows_max = 500;  // a note gives the number of omitted ones
};

class actor_trace final : public actor_observer {
 public:
  using options = actor_trace_options;

  explicit actor_trace(options o = {});
  ~actor_trace();

  void start();
  void stop() noexcept;
  bool is_on() const noexcept { return is_on_.load(relaxed); }
  // Discards all events, and counts from 1 again. A call while it is on is a broken contract.
  void clear();

  // Returns the kept events in order.
  std::vector<trace_event> events() const;
  std::uint64_t lost_events() const noexcept;

  // Returns a sequence diagram; participants are in the order of their first event.
  std::string mermaid(const mermaid_options& o = mermaid_options()) const;
  // Returns a row for each actor; each handled message is a slice, with an arrow from its sender.
  std::string chrome_json() const;

  // ---- for the system

  unsigned note_bits() const noexcept override { return number_bits; }
  void spawned(actor_id id, actor_id parent, std::string_view name,
               std::string_view type) noexcept override;
  void ended(actor_id id, end_reason why) noexcept override;
  std::uint64_t sent(actor_id from, actor_id receiver, std::string_view message) noexcept override;
  void begun(actor_id id, std::string_view message, std::uint64_t note) noexcept override;
  void handled(actor_id id, std::string_view message, std::uint64_t note) noexcept override;
  void resumed(actor_id id, std::string_view message, std::uint64_t note) noexcept override;
  void failed(actor_id id, const std::exception_ptr& error) noexcept override;
  void lost(actor_id receiver, std::string_view message, std::uint64_t note,
            loss why) noexcept override;

 private:
  // A note is the number of the `sent` event, modulo 2^24.
  static constexpr unsigned number_bits = 24;
  static constexpr std::size_t capacity_max = std::size_t{1} << (number_bits - 1);

  // The current or latest message of an actor.
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
  void take_up(actor_id id, std::string_view message, std::uint64_t note, trace_event::kind event);
  // Returns the origin of a message with this note; all 0 if its send is not recorded any more.
  place origin(actor_id receiver, std::uint64_t note) const noexcept;

  // Constant after construction.
  const std::size_t capacity_;
  clock& time_;

  atomic<bool> is_on_{false};
  atomic<std::uint64_t> next_{1};
  atomic<std::uint64_t> traces_{0};
  mutex starting_;
  atomic<slot*> slots_{nullptr};  // capacity_ slots, allocated under starting_ by the first start
  detail::actor_names names_;
  detail::actor_table<place> places_;
};

}  // namespace sluice
