#pragma once

// The event loop of a share of a server's connections, on one thread: runs ready handlers, and
// wakes once for all results of an engine commit.
//
// It is an executor, so continuations of the engine's futures run on it without an allocation.
// Threads: the loop's own, except the functions marked "Any thread".

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/base/seam.hpp"
#include "sluice/executor/executor.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::jobs::net {

// A client connection of a loop. All functions run on the loop's thread.
class peer : public std::enable_shared_from_this<peer> {
 public:
  virtual ~peer() = default;

  // Called by the loop after `touch`.
  virtual void pump() = 0;
  virtual void on_deadline() = 0;
  // Replies to the requests in progress, then closes.
  virtual void finish_up() = 0;
  virtual void close() = 0;

  bool mark_touched() noexcept { return !std::exchange(touched_, true); }
  time_point deadline() const noexcept { return deadline_; }

 protected:
  bool touched_ = false;                     // `pump` clears it
  time_point deadline_ = time_point::max();  // as of the last loop::watch
};

class loop : public executor {
 public:
  static constexpr std::size_t read_bytes = std::size_t{64} << 10;

  explicit loop(std::string thread_name);
  virtual ~loop();

  // Sets a function that the loop calls on its thread after it ran the ready handlers. While it
  // returns true, the loop polls without blocking and calls it again. It may call `run_posted` to
  // run the work posted so far. Must be called before `start`.
  using turn_end = std::function<bool(const std::function<void()>& run_posted)>;
  void at_turn_end(turn_end f) { turn_end_ = std::move(f); }

  // Any thread.
  void start();
  void post(work& item) noexcept override;
  void run_soon(std::function<void()> f);
  // begin_stop calls `finish_up` of all peers, cut their `close`. The loop ends when no peer and no
  // engine call is left.
  void begin_stop();
  void cut();
  bool has_ended(const wait_limits& limits) { return bool(ended_.wait(limits)); }
  // Stops all loops: begin_stop, then `cut` for the loops that still run at the limit.
  template <class Loops>
  static void stop_all(const Loops& loops, const wait_limits& limits);

  boost::asio::io_context& context() noexcept { return *context_; }
  bool is_stopping() const noexcept { return stopping_; }

  void add(std::shared_ptr<peer> p);
  // Returns false if the peer was not added, or was removed before.
  bool remove(peer& p) { return peers_.erase(&p) != 0; }
  // Schedules `pump` for the end of the current handler.
  void touch(peer& p);
  // Must be called at the end of a handler.
  void run_touched() {
    pump_touched();
    end_if_finished();
  }
  // Count the pending engine calls.
  void call_begins() noexcept { ++calls_; }
  void call_ended() noexcept { --calls_; }
  // Checks the deadlines of all peers at `deadline` at the latest.
  void watch(time_point deadline);

  char* read_buffer() noexcept { return read_buffer_.get(); }

 private:
  void run() noexcept;
  int run_ready();
  struct turn {
    bool again = false;
    bool ran = false;
  };
  turn end_turn();
  bool drain_inbox();  // returns false if it was empty
  void pump_touched();
  void on_timer();
  void end_if_finished();

  const std::string thread_name_;
  turn_end turn_end_;
  const std::function<void()> run_posted_ = [this] { (void)drain_inbox(); };
  // Shared with `post`: posted work may end and destroy the loop before `post` returns.
  const std::shared_ptr<boost::asio::io_context> context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_guard_;
  boost::asio::steady_timer timer_;
  time_point timer_at_ = time_point::max();

  std::unordered_map<peer*, std::shared_ptr<peer>> peers_;
  std::vector<std::shared_ptr<peer>> touched_;
  bool pumping_ = false;
  std::uint64_t calls_ = 0;  // pending calls of the engine
  bool stopping_ = false;
  bool has_finished_ = false;

  std::unique_ptr<char[]> read_buffer_ = std::make_unique<char[]>(read_bytes);

  static thread_local const loop* ending_turn_;  // the loop whose turn_end_ this thread runs
  spin_lock inbox_guard_;
  intrusive_list<work> inbox_;  // protected by inbox_guard_

  event ended_;
  seam::thread thread_;
};

template <class Loops>
void loop::stop_all(const Loops& loops, const wait_limits& limits) {
  for (const auto& l : loops) l->begin_stop();
  for (const auto& l : loops) {
    if (l->has_ended(limits)) continue;
    for (const auto& other : loops) other->cut();
    break;
  }
  // A loop ends only after all its engine calls were completed, even if their clients are gone.
  for (const auto& l : loops) (void)l->has_ended({});
}

}  // namespace sluice::jobs::net
