#pragma once

// One thread on which everything of a deliverer happens: sockets, decisions, and what is due at a
// time, on a clock that a test can move.
//
// `post` and `end` may be called by any thread; the rest by what runs on the loop.

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/unique_function.hpp"
#include "sluice/future/future.hpp"

namespace sluice::jobs::detail {

class loop {
 public:
  using function = unique_function<void()>;
  // Of something that is due; the default is of nothing.
  struct alarm {
    time_point when{};
    std::uint64_t number = 0;
    friend auto operator<=>(const alarm&, const alarm&) = default;
  };

  loop(clock& timers, std::string name);
  loop(const loop&) = delete;
  loop& operator=(const loop&) = delete;
  ~loop();  // as end

  // Runs what is posted and due until nothing is under way; then joins.
  void end();

  template <class F>
  void post(F f) {
    // What is posted may let all of this end before the post itself returns.
    const std::shared_ptr<boost::asio::io_context> context = context_;
    boost::asio::post(*context, std::move(f));
  }
  boost::asio::io_context& context() noexcept { return *context_; }
  time_point now() const noexcept { return timers_.now(); }

  alarm at(time_point when, function f);
  alarm after(std::chrono::nanoseconds wait, function f) { return at(now() + wait, std::move(f)); }
  void cancel(alarm& which);  // and forgets it

 private:
  void rearm();
  void ring();

  clock& timers_;
  // Shared with the clock's timers, which may fire when all of this is gone, and with who posts.
  const std::shared_ptr<boost::asio::io_context> context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_;
  std::map<alarm, function> due_;
  std::uint64_t last_number_ = 0;
  time_point armed_for_ = time_point::max();
  future<void> timer_;
  seam::thread thread_;
};

}  // namespace sluice::jobs::detail
