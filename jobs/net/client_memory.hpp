#pragma once

// Bounds the memory that a server holds for its clients: input that was not taken, bodies, replies
// that were not sent, TLS sessions.
//
// Every connection has an account and reports its bytes there. The bound of one connection comes
// first, and the connection enforces it: it refuses input that is too long, and it stops reading
// while too many of its replies are unread. While all accounts together exceed the budget, only
// connections with a reservation are read. If that frees too little within `look_every`, the
// server closes the largest idle connections that hold buffers; if these do not suffice, the
// largest busy ones; and last those without buffers. It stops when the others fit.
//
// A body or command that outgrows what every connection may hold reserves its maximum before it is
// read on. Every body that was started can finish, so reservations cannot deadlock.
// Reservations are granted in order, up to half of the budget, so that short requests go on beside
// them; a larger one is granted when there is no other.
//
// Threads: Only the connection's thread uses an account; notices arrive on any thread. Any thread
// may call the rest.
// Cost: a change of less than 2 KiB is a comparison; others take a short lock.
//
//     client_memory::account mine(budget);
//     mine.open(false, [&](auto what) { loop.run_soon([what] { ... }); });
//     mine.hold({.input = in.capacity(), .output = out.memory()});
//     if (!mine.may_read()) mine.wait_to_read();

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "sluice/base/atomic.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::jobs::net {

class client_memory {
 public:
  static constexpr std::uint64_t bytes_max_usual = std::uint64_t{512} << 20;
  // A connection without any buffer.
  static constexpr std::uint64_t connection_bytes = 4 << 10;
  static constexpr std::uint64_t tls_session_bytes = 48 << 10;
  // While the budget is exceeded, connections are compared this often. Idle is a connection that
  // moved fewer than busy_bytes since the last time.
  static constexpr std::chrono::milliseconds look_every{1000};
  static constexpr std::uint64_t busy_bytes = 64 << 10;

  struct held {
    std::uint64_t input = 0;
    std::uint64_t output = 0;
    // Of replies that are being made and whose length is not known yet. They delay other long
    // requests (may_ask) and nothing else.
    std::uint64_t expected = 0;
  };

  class account : private list_hook {
   public:
    // proceed: a reservation was granted, or may_read or may_ask became true; check each, then call
    // `pass_on`. close: the owner must close the connection.
    enum class notice : std::uint8_t { proceed, close };

    explicit account(client_memory& all) noexcept : all_(all) {}
    ~account() { close(); }
    account(const account&) = delete;
    account& operator=(const account&) = delete;

    // `notify` is called on any thread, with a lock held: it only posts.
    void open(bool has_tls, std::function<void(notice)> notify);
    void close();

    void hold(const held& now);
    void moved(std::size_t bytes) noexcept;

    // Returns false if the reservation has to wait: a notice follows when it is granted.
    bool reserve(std::uint64_t bytes);
    bool has_reservation() const noexcept { return has_reservation_.load(relaxed); }
    // Returns the reservation, or leaves the line.
    void cancel_reservation();

    bool may_read() const noexcept { return has_reservation() || !all_.is_over(); }
    bool may_ask() const noexcept { return may_read() && !all_.expects_too_much(); }
    // A notice follows once may_read or may_ask is true again. Not beside a reservation that waits.
    void wait_to_read() { wait(all_.readers_); }
    void wait_to_ask() { wait(all_.askers_); }
    // After a notice: it is the turn of the next in line.
    void pass_on();

   private:
    friend client_memory;
    friend intrusive_list<account>;

    void wait(intrusive_list<account>& line);
    void end_reservation();
    std::uint64_t charge() const noexcept;
    std::uint64_t used() const noexcept;  // ... without unused reservations
    bool holds_buffers() const noexcept { return used() > fixed_; }

    client_memory& all_;
    std::uint64_t input_blocks_ = 0, output_blocks_ = 0, expected_ = 0;  // as of the last `hold`

    // relaxed: hints for the owner and for `look`; the lock orders every decision.
    atomic<bool> has_reservation_{false};
    atomic<std::uint64_t> moved_{0};

    // Protected by the budget's lock.
    std::function<void(notice)> notify_;
    std::size_t index_ = 0;  // in accounts_
    held held_{};
    std::uint64_t fixed_ = 0;
    std::uint64_t wanted_ = 0;    // of the reservation, also while it waits
    std::uint64_t reserved_ = 0;  // ... once it is granted
    std::uint64_t charged_ = 0;
    std::uint64_t moved_before_ = 0;  // as of the last look
    bool is_open_ = false;
    bool is_closing_ = false;  // has the notice
  };

  explicit client_memory(std::uint64_t bytes_max = bytes_max_usual) : bytes_max_(bytes_max) {}

  // relaxed, as are the two below: the lock orders the changes.
  std::uint64_t bytes() const noexcept { return bytes_.load(relaxed); }
  std::uint64_t bytes_max() const noexcept { return bytes_max_; }
  bool is_over() const noexcept { return bytes() > bytes_max_; }
  std::uint64_t closed() const noexcept { return closed_.load(relaxed); }  // connections, so far
  // A reservation or a reader waits: a connection with a reservation must use it or lose it.
  bool is_wanted() const;
  // Called now and then while the budget is exceeded; see look_every.
  void look(time_point now);

 private:
  bool expects_too_much() const noexcept {
    const std::uint64_t expected = expected_.load(relaxed);
    return expected > 0 && bytes() + expected > bytes_max_;
  }
  bool fits(const account& a) const noexcept;
  void update(account& a);
  void serve();
  void look_locked(time_point now);

  const std::uint64_t bytes_max_;
  atomic<std::uint64_t> bytes_{0};     // charged to all accounts; written under guard_
  atomic<std::uint64_t> expected_{0};  // likewise
  atomic<std::uint64_t> closed_{0};
  mutable mutex guard_;

  // Protected by guard_.
  std::vector<account*> accounts_;
  intrusive_list<account> reservers_, readers_, askers_;  // an account is in one at most
  std::size_t reservations_ = 0;                          // granted
  std::uint64_t reserved_bytes_ = 0;                      // of these
  time_point looked_at_ = time_point::min();              // min: not since the budget was exceeded
};

}  // namespace sluice::jobs::net
