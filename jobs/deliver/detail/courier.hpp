#pragma once

// The decisions of a deliverer: which queues to lease from and how many jobs, what to send, what to
// report to the engine, when to pause a receiver. Runs on the loop's thread, so only the counts
// need a lock; functions for other threads are marked.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jobs/deliver/deliverer.hpp"
#include "jobs/deliver/detail/loop.hpp"
#include "jobs/deliver/detail/outgoing.hpp"
#include "jobs/deliver/detail/parcel.hpp"
#include "jobs/deliver/detail/verdict.hpp"
#include "sluice/flow/circuit_breaker.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::detail {

using breaker_ptr = std::shared_ptr<circuit_breaker>;

// A queue with a target.
struct target {
  std::string queue{};
  delivery_target settings{};
  bool is_webhooks = false;
  bool is_removed = false;    // has no target any more; current requests continue
  std::string why_not{};      // why its URL is not allowed; its jobs stay in the queue
  breaker_ptr breaker{};      // null for webhooks: every receiver has its own
  bool is_probing = false;    // the probe of a paused receiver is in progress
  std::size_t in_flight = 0;  // requests
  std::size_t reporting = 0;  // ended, and not confirmed by the engine yet
  bool is_leasing = false;
  std::stop_source stop_leasing{};
  time_point lease_at{};  // no lease call before
  loop::alarm wakes{};
};
using target_ptr = std::shared_ptr<target>;

// A job in progress.
struct delivery {
  leased_job job{};
  target_ptr of{};
  web_url url{};
  breaker_ptr breaker{};
  std::optional<circuit_breaker::permit> permit{};
  bool is_probe = false;
  outgoing::request_id request = 0;
  verdict end{};
  milliseconds report_delay{0};  // last delay between two attempts to report
  loop::alarm retry{};           // the next attempt
};
using delivery_ptr = std::shared_ptr<delivery>;

class courier {
 public:
  // All arguments by reference must outlive it.
  courier(engine& jobs, deliverer_options o, loop& l, outgoing& sender);

  void refresh();
  void update(url_rules rules, std::vector<std::string> secrets);
  void close();
  void cancel_all();  // closes and cancels all requests

  // Any thread may call these.
  event& finished() noexcept { return finished_; }  // closed, and nothing in progress
  std::vector<delivery_stats> stats() const;

 private:
  using counts = std::map<std::string, delivery_stats>;

  // Targets.
  void set_target(const std::string& queue, const delivery_target& settings);
  void remove_missing(const std::vector<std::pair<std::string, delivery_target>>& wanted);
  void forget_if_idle(target& t);
  breaker_ptr make_breaker(target* owner, const std::string& queue, const std::string& receiver);
  breaker_ptr breaker_for(const target& t, const web_url& url);

  // Leasing.
  std::size_t free_slots(target& t);
  void pump(const target_ptr& t);
  void pump_all();
  void wake_at(const target_ptr& t, time_point when);
  void leased(const target_ptr& t, result<std::vector<leased_job>> jobs);

  // Sending.
  void deliver(const target_ptr& t, leased_job job);
  void ended(const delivery_ptr& d, outgoing_end end);
  void reject(const delivery_ptr& d, std::string type, std::string why);
  void postpone(const delivery_ptr& d, milliseconds delay);

  // Reporting to the engine.
  void report(const delivery_ptr& d);
  void reported(const delivery_ptr& d, const void_result& reply);
  void report_later(const delivery_ptr& d);
  void settled(const delivery_ptr& d);

  void set_if_finished();
  void count(const target& t, std::uint64_t delivery_stats::*counter, std::int64_t by = 1);
  void emit(delivery_event e) const;
  template <class T, class Then>
  void when_done(future<T> reply, Then then);

  engine& engine_;
  deliverer_options options_;  // rules and secrets can change
  time_source& time_;
  loop& loop_;
  outgoing& outgoing_;

  std::map<std::string, target_ptr> targets_;
  std::string next_target_;  // served first when there are free slots again
  std::unordered_map<std::string, breaker_ptr> receivers_;  // of webhooks
  std::unordered_map<const delivery*, delivery_ptr> in_progress_;
  std::size_t calls_ = 0;  // engine calls in progress
  bool closed_ = false;
  bool is_cancelled_ = false;

  event finished_;
  guarded<counts> counts_;
};

}  // namespace sluice::jobs::detail
