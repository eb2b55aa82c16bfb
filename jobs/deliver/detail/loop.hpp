#pragma once

// The single thread of a deliverer, for sockets, decisions and timers, on a clock that tests can
// control.
//
// Any thread may call `post` and `end`; all other functions must be called on the loop.

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
  // Identifies a timer; the default value identifies none.
  struct alarm {
    time_point when{};
    std::uint64_t number = 0;
    friend auto operator<=>(const alarm&, const alarm&) = default;
  };

  loop(clock& timers, std::string name);
  loop(const loop&) = delete;
  loop& operator=(const loop&) = delete;
  ~loop();  // as `end`

  // Runs until all operations have ended; pending timers are dropped. Then joins the thread.
  void end();

  template <class F>
  void post(F f) {
    // The posted function may lead to the destruction of the loop before `post` returns.
    const std::shared_ptr<boost::asio::io_context> context = context_;
    boost::asio::post(*context, std::move(f));
  }
  boost::asio::io_context& context() noexcept { return *context_; }
  time_point now() const noexcept { return timers_.now(); }

  alarm at(time_point when, function f);
  alarm after(std::chrono::nanoseconds wait, function f) { return at(now() + wait, std::move(f)); }
  void cancel(alarm& a);  // and resets it

 private:
  void rearm();
  void ring();

  clock& timers_;
  // Shared with timers and posting threads, which may outlive the loop.
  const std::shared_ptr<boost::asio::io_context> context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_;
  std::map<alarm, function> due_;
  std::uint64_t last_number_ = 0;
  time_point armed_for_ = time_point::max();
  future<void> timer_;
  seam::thread thread_;
};

}  // namespace sluice::jobs::detail
