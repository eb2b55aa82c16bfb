#pragma once

// Stops calling a service that keeps failing: after too many failures calls are refused at once,
// and after a while a few probes check whether it works again.
//
// Use it around a remote service, a disk, a database: callers that each wait for a timeout make an
// outage worse. Prefer `bulkhead` against slow calls, `retry` against occasional failures;
// they nest, the breaker innermost.
//
//   closed     calls pass and their results are counted. It trips after a number of failures in a
//              row, or at a share of failures among the last calls, or both, as the options set.
//   open       calls are refused, with the remaining time. After `open_for` the next call makes it:
//   half_open  `probes` calls pass. When all of them succeeded: closed. When one fails: open again,
//              longer each time (`open_growth`, up to `open_for_max`).
//
// Guarantees: any thread may call anything; nothing waits. A result takes effect only in the state
// in which its call began: a later one is counted as `late` and changes nothing. A permit destroyed
// without a result counts as a failure, because a call that left by an exception did not succeed;
// `abandon` gives it back uncounted. `on_change` is called for changes of state one at a time, in
// order, outside the lock, by the thread that made the first of them; it may call the breaker. An
// exception that leaves `on_change` is written to standard error (docs/concepts/errors.md).
// The permits must not outlive the breaker.
// The window by time has ten slices: a result leaves it at most a tenth of the window late.
// Cost: a short lock and a clock reading on entry and on the result. Memory for `window_calls`
// bits at construction.
//
//     circuit_breaker mailer({.consecutive_failures = 5, .open_for = 2s});
//     auto p = mailer.try_enter();
//     if (!p) return reply(503, p.retry_after());
//     send(mail) ? p.success() : p.failure();
//
//     auto page = mailer.call([&] { return fetch(url); });   // refused: throws refused_error

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/flow/detail/call_kind.hpp"
#include "sluice/flow/detail/result_window.hpp"
#include "sluice/flow/refused_error.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice {

enum class circuit_state : std::uint8_t { closed, open, half_open };
std::string_view to_string(circuit_state s) noexcept;

// The result of a call, as the breaker counts it.
enum class circuit_verdict : std::uint8_t { success, failure, ignored };

struct circuit_change {
  circuit_state from;
  circuit_state new_state;
  std::chrono::nanoseconds open_for{};  // how long it stays open; for changes to open
};

struct circuit_breaker_options {
  std::string name{};
  // The conditions to trip; at least one of the two.
  std::uint32_t consecutive_failures = 0;  // 0: never
  double failure_share = 0;                // of the calls in the window, up to 1; 0: never
  // The window: the last `window_calls` calls, or the calls of the last `window_time`, if set.
  std::uint32_t window_calls = 100;
  std::chrono::nanoseconds window_time{};
  std::uint32_t calls_min = 10;  // with fewer calls in the window, the share is ignored
  // A call that takes this long counts as a failure; zero: no limit.
  std::chrono::nanoseconds slow_after{};
  // How long it stays open: the first time, the growth when probes fail, and the maximum.
  std::chrono::nanoseconds open_for = std::chrono::seconds(1);
  double open_growth = 2;
  std::chrono::nanoseconds open_for_max = std::chrono::minutes(1);
  std::uint32_t probes = 1;  // calls that pass when half open; all must succeed

  // Maps an exception that leaves a `call` to a verdict. Empty: a failure, except for
  // future_error::cancelled, which is no result of the service and is ignored.
  std::function<circuit_verdict(const std::exception_ptr&)> judge{};
  std::function<void(const circuit_change&)> on_change{};
  sluice::clock* clock = nullptr;  // null: the real clock; outlives the breaker
};

struct circuit_stats {
  std::uint64_t successes = 0;
  std::uint64_t failures = 0;  // including slow calls and dropped permits
  std::uint64_t slow = 0;
  std::uint64_t refused = 0;
  std::uint64_t abandoned = 0;
  std::uint64_t late = 0;   // results, counted above, of calls that began before a change of state
  std::uint64_t trips = 0;  // to open, from closed or half open
};

class circuit_breaker {
 public:
  using options = circuit_breaker_options;
  class permit;

  explicit circuit_breaker(options o);
  circuit_breaker(const circuit_breaker&) = delete;
  circuit_breaker& operator=(const circuit_breaker&) = delete;
  ~circuit_breaker();

  // Never waits. Returns a permit that is false if refused.
  [[nodiscard]] permit try_enter();

  // Calls f, counts its result, and returns it. If refused: refused_error, thrown, or in the future
  // or task in place of f's; f is then not called. A result counts as a success unless
  // `failed(result)` returns true; for an exception, `judge` decides.
  //   f() -> T            T
  //   f() -> future<T>    future<T>; counted when it completes
  //   f() -> task<T>      task<T>; enters, and calls f, when it is awaited
  template <class F>
  detail::call_result_t<F> call(F&& f);
  template <class F, class Failed>
  detail::call_result_t<F> call(F&& f, Failed failed);

  // Manual control: `trip` opens it for a time, `reset` closes it with empty counts.
  void trip(std::chrono::nanoseconds open_for);
  void reset();

  // Stays open after its time until a call makes it half open.
  circuit_state state() const;
  // How long it still refuses calls; zero if it is closed or half open.
  std::chrono::nanoseconds open_for() const;
  circuit_stats stats() const;
  const std::string& name() const noexcept { return options_.name; }

 private:
  template <class T, class F, class Failed>
  static task<T> call_task(circuit_breaker& self, F f, Failed failed);
  template <class T, class F, class Failed>
  future<T> call_future(F& f, Failed failed);
  permit enter_or_throw();
  refused_error refusal(const permit& refused) const;
  circuit_verdict judge(const std::exception_ptr& error) const;

  // All must hold mutex_, except `notify`, which takes it.
  void move_to(circuit_state new_state, std::chrono::nanoseconds open_for = {});
  void open_again();
  bool too_many_failures() const noexcept;
  void count(circuit_verdict v, bool slow);
  std::chrono::nanoseconds left_open() const noexcept;
  void record(std::uint64_t generation, time_point began, circuit_verdict v) noexcept;
  void notify() noexcept;

  const options options_;
  clock& clock_;
  mutable mutex mutex_;
  // Protected by mutex_.
  circuit_state state_ = circuit_state::closed;
  std::uint64_t generation_ = 0;  // grows with every change of state
  std::uint32_t in_a_row_ = 0;
  detail::result_window window_;
  time_point open_until_{};
  std::chrono::nanoseconds next_open_for_;
  std::uint32_t probes_out_ = 0;
  std::uint32_t probes_good_ = 0;
  circuit_stats stats_;
  std::vector<circuit_change> unreported_;
  bool notifying_ = false;  // a thread calls on_change
  std::size_t permits_ = 0;
};

// The right to make one call, or a refusal. Movable; belongs to one thread at a time.
class circuit_breaker::permit {
 public:
  permit(permit&& other) noexcept
      : breaker_(std::exchange(other.breaker_, nullptr)),
        generation_(other.generation_),
        began_(other.began_),
        retry_after_(other.retry_after_),
        granted_(other.granted_) {}
  permit& operator=(permit&&) = delete;
  ~permit() {
    if (breaker_ != nullptr) end(circuit_verdict::failure);
  }

  explicit operator bool() const noexcept { return granted_; }
  // Returns true if it was granted and has no result yet.
  bool is_open() const noexcept { return breaker_ != nullptr; }
  // If refused: how long the circuit stays open; zero if it is half open and all probes are used.
  std::chrono::nanoseconds retry_after() const noexcept { return retry_after_; }

  // Call one of these, once: a second call, or a call on a refusal, is a broken contract.
  void success() noexcept { end(circuit_verdict::success); }
  void failure() noexcept { end(circuit_verdict::failure); }
  void abandon() noexcept { end(circuit_verdict::ignored); }
  void end(circuit_verdict v) noexcept {
    check(breaker_ != nullptr, "sluice::circuit_breaker",
          "a permit that was granted and has not been used");
    std::exchange(breaker_, nullptr)->record(generation_, began_, v);
  }

 private:
  friend class circuit_breaker;
  explicit permit(std::chrono::nanoseconds retry_after) noexcept : retry_after_(retry_after) {}
  permit(circuit_breaker& of, std::uint64_t generation, time_point began) noexcept
      : breaker_(&of), generation_(generation), began_(began), granted_(true) {}

  circuit_breaker* breaker_ = nullptr;  // null: refused, or used
  std::uint64_t generation_ = 0;
  time_point began_{};
  std::chrono::nanoseconds retry_after_{};
  bool granted_ = false;
};

}  // namespace sluice

#include "sluice/flow/detail/circuit_call.hpp"
