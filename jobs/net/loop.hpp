#pragma once

// One thread that serves its share of a server's connections: it runs what becomes ready, and is
// woken once for all that a commit of the engine has finished.
//
// An executor, so that the engine's futures come back to it without allocating. Everything but
// `post` and the calls that say so belongs to the loop's own thread.

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

// One client of a loop. All of it on the loop's thread.
class peer : public std::enable_shared_from_this<peer> {
 public:
  virtual ~peer() = default;

  // Called by the loop after `touch`.
  virtual void pump() = 0;
  virtual void on_deadline() = 0;
  // Answers what is under way, then closes.
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

  // Called on the loop's thread whenever it has run what was ready; while it says true, again as
  // soon as the loop has looked for more. It may call `between` to have what it has posted so far
  // run at once. Before `start`.
  using turn_end = std::function<bool(const std::function<void()>& between)>;
  void at_turn_end(turn_end f) { turn_end_ = std::move(f); }

  // Any thread.
  void start();
  void post(work& item) noexcept override;
  void run_soon(std::function<void()> f);
  // Answers what is under way, then ends; `cut` at once.
  void begin_stop();
  void cut();
  bool has_ended(const wait_limits& limits) { return bool(ended_.wait_within(limits)); }
  // Both for all of them: what is left at the limit is cut off.
  template <class Loops>
  static void stop_all(const Loops& loops, const wait_limits& limits);

  boost::asio::io_context& context() noexcept { return *context_; }
  bool is_stopping() const noexcept { return stopping_; }

  void add(std::shared_ptr<peer> p);
  // False: it was not there.
  bool remove(peer& p) { return peers_.erase(&p) != 0; }
  // It has something to write or to read, at the end of what runs now.
  void touch(peer& p);
  // At the end of a handler.
  void run_touched() {
    pump_touched();
    end_if_over();
  }
  void call_begins() noexcept { ++calls_; }
  void call_ended() noexcept { --calls_; }
  // `when` is the earliest time at which a peer wants to hear of its deadline.
  void watch(time_point when);

  char* read_buffer() noexcept { return read_buffer_.get(); }

 private:
  void run() noexcept;
  int run_ready();
  struct turn {
    bool again = false;
    bool ran = false;
  };
  turn end_turn();
  bool drain_inbox();  // false: there was nothing
  void pump_touched();
  void on_timer();
  void end_if_over();

  const std::string thread_name_;
  turn_end turn_end_;
  const std::function<void()> run_posted_ = [this] { (void)drain_inbox(); };
  // Shared with who posts: what is posted may let all of this end before that returns.
  const std::shared_ptr<boost::asio::io_context> context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_;
  boost::asio::steady_timer timer_;
  time_point timer_at_ = time_point::max();

  std::unordered_map<peer*, std::shared_ptr<peer>> peers_;
  std::vector<std::shared_ptr<peer>> touched_;
  bool pumping_ = false;
  std::uint64_t calls_ = 0;  // of the engine, that have not come back
  bool stopping_ = false;
  bool over_ = false;

  std::unique_ptr<char[]> read_buffer_ = std::make_unique<char[]>(read_bytes);

  static thread_local const loop* ends_turn_;  // the one whose turn_end_ this thread is in
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
  // What the engine is committing comes back to the loops, whoever is still there to hear it.
  for (const auto& l : loops) (void)l->has_ended({});
}

}  // namespace sluice::jobs::net
