#pragma once

// One thread that serves its share of the connections: it runs what becomes ready, and is woken
// once for all that a commit of the engine has finished.
//
// An executor, so that the engine's futures come back to it without allocating. Everything but
// `post` and the calls that say so belongs to the loop's own thread.

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "jobs/engine/engine.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/executor/executor.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/spin_lock.hpp"

namespace sluice::jobs::http {

class connection;

class loop final : public executor {
 public:
  static constexpr std::size_t read_bytes = std::size_t{64} << 10;

  loop(server_state& server, engine& jobs, traffic& counts, std::size_t number);
  ~loop();

  // Any thread.
  void start();
  void post(work& item) noexcept override;
  void run_soon(std::function<void()> f);
  // Answers what is under way, then ends; `cut` at once.
  void begin_stop();
  void cut();
  bool has_ended(const wait_limits& limits) { return bool(ended_.wait_within(limits)); }

  boost::asio::io_context& context() noexcept { return context_; }
  server_state& server() noexcept { return server_; }
  engine& jobs() noexcept { return jobs_; }
  traffic& counts() noexcept { return counts_; }
  bool is_stopping() const noexcept { return stopping_; }

  void add(std::shared_ptr<connection> c);  // which whoever accepted it has counted as open
  void remove(connection& c);
  // It has something to write or to read, at the end of what runs now.
  void touch(connection& c);
  // At the end of a handler.
  void run_touched() {
    pump_touched();
    end_if_over();
  }
  void call_begins() noexcept { ++calls_; }
  void call_ended() noexcept { --calls_; }
  // `when` is the earliest time at which a connection wants to hear of its deadline.
  void watch(time_point when);

  char* read_buffer() noexcept { return read_buffer_.get(); }
  std::string& scratch();
  std::string_view date();  // a header line

 private:
  void run() noexcept;
  void drain_inbox();
  void pump_touched();
  void on_timer();
  void end_if_over();

  server_state& server_;
  engine& jobs_;
  traffic& counts_;
  const std::size_t number_;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_;
  boost::asio::steady_timer timer_;
  time_point timer_at_ = time_point::max();

  std::unordered_map<connection*, std::shared_ptr<connection>> connections_;
  std::vector<std::shared_ptr<connection>> touched_;
  bool pumping_ = false;
  std::uint64_t calls_ = 0;  // of the engine, that have not come back
  bool stopping_ = false;
  bool over_ = false;

  std::unique_ptr<char[]> read_buffer_ = std::make_unique<char[]>(read_bytes);
  std::string scratch_;
  std::string date_;
  std::int64_t date_second_ = -1;

  spin_lock inbox_guard_;
  intrusive_list<work> inbox_;  // protected by inbox_guard_

  event ended_;
  seam::thread thread_;
};

}  // namespace sluice::jobs::http
