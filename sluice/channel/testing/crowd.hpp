#pragma once

// Parties of a stress test. They send and receive at random over a few channels, half of the time
// in a select. Their waits time out after microseconds or are stopped. They record every item that
// they sent or received.
//
// A party is a thread (repeated `move`) or a coroutine (`roam`); both draw random moves in the same
// way. They cannot deadlock, because every wait has a deadline.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <stop_token>
#include <utility>

#include "sluice/base/random.hpp"
#include "sluice/channel/select.hpp"
#include "sluice/channel/testing/ledger.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::testing {

// Stops a party's current wait, from any thread. Its next wait gets a new token.
class stop_switch {
 public:
  std::stop_token token() {
    const std::lock_guard hold(mutex_);
    if (source_.stop_requested()) source_ = std::stop_source();
    return source_.get_token();
  }
  void press() {
    std::unique_lock hold(mutex_);
    auto source = source_;
    hold.unlock();  // request_stop resumes coroutines, which call token()
    source.request_stop();
  }

 private:
  std::mutex mutex_;
  std::stop_source source_;  // protected by mutex_
};

struct tally {
  std::uint64_t moves = 0;
  std::uint64_t selects = 0;
  std::uint64_t timed_out = 0;
  std::uint64_t stopped = 0;
  std::uint64_t wrongs = 0;  // items not moved from after ok, or moved from after a failure

  tally& operator+=(const tally& other) {
    moves += other.moves;
    selects += other.selects;
    timed_out += other.timed_out;
    stopped += other.stopped;
    wrongs += other.wrongs;
    return *this;
  }
};

using routes = std::deque<channel<parcel>>;

// Passed to `roam`: the thread that ended the wait resumes the coroutine.
struct resumed_anywhere {};

class party {
  enum class kind : std::uint8_t { send, receive, try_send, try_receive, try_select, select };

  // A select has two receives and two sends on random routes, possibly the same; each case is
  // disabled with a probability of 1/8.
  kind draw() {
    ++counts.moves;
    const auto count = static_cast<std::uint32_t>(routes_.size());
    for (std::size_t k = 0; k < 2; ++k) {
      from_[k] = random_.below(count);
      route_[k] = random_.below(count);
      items_[k] = sends.next(route_[k]);
      from_is_on_[k] = random_.below(8) != 0;
      send_is_on_[k] = random_.below(8) != 0;
    }
    const auto patience = random_.below(8) == 0 ? 2000U : 60U;
    limits_ = {deadline::after(std::chrono::microseconds(random_.below(patience))), {}};
    if (random_.below(2) == 0) limits_.stop = stop.token();
    const auto drawn = random_.below(10);
    return drawn < 4 ? static_cast<kind>(drawn) : drawn == 4 ? kind::try_select : kind::select;
  }

  channel<parcel>& over() { return routes_[route_[0]]; }
  auto take(std::size_t k) {
    const auto end = from_is_on_[k] ? routes_[from_[k]].receiver() : receive_only<parcel>();
    return on_receive(receive_only<parcel>(end),
                      [this](outcome<parcel> got) { note_receive(std::move(got)); });
  }
  auto give(std::size_t k) {
    const auto end = send_is_on_[k] ? routes_[route_[k]].sender() : send_only<parcel>();
    return on_send(end, items_[k], [this, k](status s) {
      note(s);
      if (s) given_[k] = true;
    });
  }

 public:
  party(std::uint32_t number, std::uint64_t seed, routes& all)
      : sends(number, all.size()), routes_(all), random_(seed * 1000 + number) {}

  void move() {
    switch (draw()) {
      case kind::send:
        note_send(over().send(std::move(items_[0]), limits_));
        break;
      case kind::receive:
        note_receive(over().receive(limits_));
        break;
      case kind::try_send:
        note_send(over().try_send(std::move(items_[0])));
        break;
      case kind::try_receive:
        note_receive(over().try_receive());
        break;
      case kind::try_select:
        note_select(try_select(take(0), give(0), take(1), give(1)));
        break;
      case kind::select:
        note_select(select(limits_, take(0), give(0), take(1), give(1)));
        break;
    }
  }

  // Makes the moves of `move` as a coroutine. Decrements `left` at its end.
  template <class Where>
  static detached roam(Where& /*where it is resumed*/, party& self, int moves,
                       std::atomic<int>& left) {
    for (; moves > 0; --moves) {
      switch (self.draw()) {
        case kind::send:
        case kind::try_send: {
          const auto s = co_await self.over().async_send(self.items_[0], self.limits_);
          self.note_send(s);
          break;
        }
        case kind::receive:
        case kind::try_receive: {
          auto got = co_await self.over().async_receive(self.limits_);
          self.note_receive(std::move(got));
          break;
        }
        case kind::try_select:
        case kind::select: {
          const auto s = co_await async_select(self.limits_, self.take(0), self.give(0),
                                               self.take(1), self.give(1));
          self.note_select(s);
          break;
        }
      }
    }
    left.fetch_sub(1);
  }

  sent sends;
  arrivals reads;
  tally counts;
  stop_switch stop;

 private:
  void note(status s) {
    if (s == status::timed_out) ++counts.timed_out;
    if (s == status::stopped) ++counts.stopped;
  }
  void note_send(status s) {
    note(s);
    if (items_[0].here() == static_cast<bool>(s)) ++counts.wrongs;
    if (s) sends.book(route_[0]);
  }
  void note_receive(outcome<parcel> got) {
    note(got.status());
    if (got) reads.book(std::move(*got));
  }
  void note_select(selected s) {
    ++counts.selects;
    if (!s) note(s.status);
    for (std::size_t k = 0; k < 2; ++k) {
      const bool gone = std::exchange(given_[k], false);
      if (gone != (s.index == 2 * k + 1) || items_[k].here() == gone) ++counts.wrongs;
      if (gone) sends.book(route_[k]);
    }
  }

  routes& routes_;
  random random_;
  wait_limits limits_;
  std::array<std::size_t, 2> from_{};
  std::array<std::size_t, 2> route_{};
  std::array<bool, 2> from_is_on_{};
  std::array<bool, 2> send_is_on_{};
  std::array<bool, 2> given_{};
  std::array<parcel, 2> items_;
};

}  // namespace sluice::testing
