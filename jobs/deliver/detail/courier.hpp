#pragma once

// Decides, for a deliverer: which queue is leased from and how many, what is sent, what the engine
// is told, when a receiver is left alone. Everything on the thread of the loop but what says
// otherwise, so nothing here is locked but the counts.

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

// A queue that is delivered.
struct target {
  std::string queue{};
  delivery_target what{};
  bool is_webhooks = false;
  bool is_removed = false;    // it has no target any more; what is under way goes on
  std::string why_not{};      // its URL is not allowed: its jobs stay where they are
  breaker_ptr breaker{};      // of webhooks: none, every receiver has its own
  bool is_probing = false;    // the request that tries a receiver after a pause is under way
  std::size_t in_flight = 0;  // requests
  std::size_t telling = 0;    // ended, and the engine has not answered yet
  bool is_leasing = false;
  std::stop_source stop_leasing{};
  time_point lease_at{};  // not before
  loop::alarm wakes{};
};
using target_ptr = std::shared_ptr<target>;

// A job on its way.
struct delivery {
  leased_job it{};
  target_ptr of{};
  web_url to{};
  breaker_ptr breaker{};
  std::optional<circuit_breaker::permit> permit{};
  bool is_probe = false;
  outgoing::ticket request = 0;
  verdict end{};
  milliseconds tell_again{0};  // the last pause between two tries of telling
  loop::alarm again{};         // the next try
};
using delivery_ptr = std::shared_ptr<delivery>;

class courier {
 public:
  // The others outlive it.
  courier(engine& jobs, deliverer_options o, loop& on, outgoing& through);

  void refresh();
  void update(url_rules rules, std::vector<std::string> secrets);
  void close();
  void cut_off();  // what is under way, too

  // Any thread.
  event& over() noexcept { return over_; }  // closed, and nothing under way
  std::vector<delivery_stats> stats() const;

 private:
  using counts = std::map<std::string, delivery_stats>;

  // Targets.
  void set_target(const std::string& queue, const delivery_target& what);
  void remove_missing(const std::vector<std::pair<std::string, delivery_target>>& wanted);
  void forget_if_idle(target& t);
  breaker_ptr make_breaker(target* of, const std::string& queue, const std::string& receiver);
  breaker_ptr breaker_for(const target& t, const web_url& to);

  // Leasing.
  std::size_t room_of(target& t);
  void pump(const target_ptr& t);
  void pump_all();
  void wake_at(const target_ptr& t, time_point when);
  void leased(const target_ptr& t, result<std::vector<leased_job>> jobs);

  // Sending.
  void deliver(const target_ptr& t, leased_job it);
  void ended(const delivery_ptr& d, outgoing_end how);
  void refuse(const delivery_ptr& d, std::string type, std::string why);
  void put_off(const delivery_ptr& d, milliseconds delay);

  // Telling the engine.
  void tell(const delivery_ptr& d);
  void told(const delivery_ptr& d, const void_result& how);
  void tell_later(const delivery_ptr& d);
  void settled(const delivery_ptr& d);

  void end_if_over();
  void count(const target& t, std::uint64_t delivery_stats::*which, std::int64_t by = 1);
  void say(delivery_event e) const;
  template <class T, class Then>
  void when_done(future<T> answer, Then then);

  engine& engine_;
  deliverer_options options_;  // its rules and secrets can change
  time_source& time_;
  loop& loop_;
  outgoing& outgoing_;

  std::map<std::string, target_ptr> targets_;
  std::string next_turn_;  // the target that is served first when there is room again
  std::unordered_map<std::string, breaker_ptr> receivers_;  // of webhooks
  std::unordered_map<const delivery*, delivery_ptr> under_way_;
  std::size_t calls_ = 0;  // of the engine, that have not come back
  bool closed_ = false;
  bool cut_off_ = false;

  event over_;
  guarded<counts> counts_;
};

}  // namespace sluice::jobs::detail
