#pragma once

// Bounds the memory that a server holds for its clients: unread input, bodies, unsent replies, TLS
// sessions.
//
// Every connection has an account and reports its bytes there. The bound of one connection comes
// first, and the connection enforces it: it refuses input that is too long, and it stops reading
// while too many of its replies are unread. While all accounts together exceed the budget, only
// connections with a reservation are read. If that frees too little within `enforce_every`, the
// server closes connections until the rest fits: first the largest idle ones with buffers, then the
// largest busy ones, and last connections without buffers.
//
// A body or command longer than the fixed bound of a connection reserves its maximum before more of
// it is read. Every body that was started can finish, so reservations cannot deadlock.
// Reservations are granted in order, up to half of the budget, so that short requests continue
// beside them; a larger one is granted when there is no other.
//
// Threads: only the connection's thread uses an account; notices arrive on any thread. Any thread
// may call the rest.
// Cost: a change of less than 2 KiB is a comparison; others take a short lock.
//
//     client_memory::account memory(budget);
//     memory.open(false, [&](auto notice) { loop.run_soon([notice] { ... }); });
//     memory.report({.input = in.capacity(), .output = out.memory()});
//     if (!memory.may_read()) memory.wait_to_read();

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
  // The charge of a connection without buffers.
  static constexpr std::uint64_t connection_bytes = 4 << 10;
  static constexpr std::uint64_t tls_session_bytes = 48 << 10;
  // While the budget is exceeded, connections are compared this often. A connection is idle if it
  // moved fewer than busy_bytes since the last comparison.
  static constexpr std::chrono::milliseconds enforce_every{1000};
  static constexpr std::uint64_t busy_bytes = 64 << 10;

  struct usage {
    std::uint64_t input = 0;
    std::uint64_t output = 0;
    // Assumed size of replies whose length is not known yet. It delays other long requests
    // (may_request) and nothing else.
    std::uint64_t expected = 0;
  };

  class account : private list_hook {
   public:
    // proceed: a reservation was granted, or may_read or may_request became true; check each, then
    // call `pass_on`. close: the owner must close the connection.
    enum class notice : std::uint8_t { proceed, close };

    explicit account(client_memory& all) noexcept : all_(all) {}
    ~account() { close(); }
    account(const account&) = delete;
    account& operator=(const account&) = delete;

    // `notify` is called on any thread, with a lock held: it must only post.
    void open(bool has_tls, std::function<void(notice)> notify);
    void close();

    void report(const usage& now);
    void moved(std::size_t bytes) noexcept;

    // Returns false if the reservation must wait: a notice follows when it is granted.
    bool reserve(std::uint64_t bytes);
    bool has_reservation() const noexcept { return has_reservation_.load(relaxed); }
    // Releases a granted reservation, or withdraws a waiting one.
    void cancel_reservation();

    bool may_read() const noexcept { return has_reservation() || !all_.is_exceeded(); }
    bool may_request() const noexcept { return may_read() && !all_.expects_too_much(); }
    // Request a notice for when may_read or may_request is true again. Not while a reservation
    // waits.
    void wait_to_read() { wait(all_.readers_); }
    void wait_to_request() { wait(all_.requesters_); }
    // Must be called after a notice: notifies the next waiter if there is capacity for it.
    void pass_on();

   private:
    friend client_memory;
    friend intrusive_list<account>;

    void wait(intrusive_list<account>& line);
    void end_reservation();
    std::uint64_t charge() const noexcept;
    std::uint64_t used() const noexcept;  // `charge` without the unused part of a reservation
    bool holds_buffers() const noexcept { return used() > fixed_; }

    client_memory& all_;
    std::uint64_t input_blocks_ = 0, output_blocks_ = 0, expected_ = 0;  // as of the last `report`

    // relaxed: hints for the owner and for `enforce`; the lock orders every decision.
    atomic<bool> has_reservation_{false};
    atomic<std::uint64_t> moved_{0};

    // Protected by the budget's lock.
    std::function<void(notice)> notify_;
    std::size_t index_ = 0;  // in accounts_
    usage usage_{};
    std::uint64_t fixed_ = 0;
    std::uint64_t wanted_ = 0;    // size of the reservation, also while it waits
    std::uint64_t reserved_ = 0;  // size of the reservation once it is granted
    std::uint64_t charged_ = 0;
    std::uint64_t moved_before_ = 0;  // as of the last `enforce`
    bool is_open_ = false;
    bool is_closing_ = false;  // the close notice was sent
  };

  explicit client_memory(std::uint64_t bytes_max = bytes_max_usual) : bytes_max_(bytes_max) {}

  // relaxed, as in is_exceeded and closed: the lock orders the changes.
  std::uint64_t bytes() const noexcept { return bytes_.load(relaxed); }
  std::uint64_t bytes_max() const noexcept { return bytes_max_; }
  bool is_exceeded() const noexcept { return bytes() > bytes_max_; }
  std::uint64_t closed() const noexcept { return closed_.load(relaxed); }  // connections, in total
  // Returns whether a reservation or a reader waits: a connection with a reservation must then use
  // it or lose it.
  bool is_wanted() const;
  // Closes connections if the budget stayed exceeded for enforce_every. Must be called about that
  // often while it is exceeded.
  void enforce(time_point now);

 private:
  bool expects_too_much() const noexcept {
    const std::uint64_t expected = expected_.load(relaxed);
    return expected > 0 && bytes() + expected > bytes_max_;
  }
  bool fits(const account& a) const noexcept;
  void update(account& a);
  void serve();
  void enforce_locked(time_point now);

  const std::uint64_t bytes_max_;
  atomic<std::uint64_t> bytes_{0};     // charged to all accounts; written under guard_
  atomic<std::uint64_t> expected_{0};  // likewise
  atomic<std::uint64_t> closed_{0};
  mutable mutex guard_;

  // Protected by guard_.
  std::vector<account*> accounts_;
  intrusive_list<account> reservers_, readers_, requesters_;  // an account is in one at most
  std::size_t reservations_ = 0;                              // granted
  std::uint64_t reserved_bytes_ = 0;                          // granted
  time_point enforced_at_ = time_point::min();  // min: not since the budget was exceeded
};

}  // namespace sluice::jobs::net
