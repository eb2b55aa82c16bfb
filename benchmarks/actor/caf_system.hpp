#pragma once

// A CAF runtime for one run, with one thread for each core (by default it uses at least four).

#include <caf/all.hpp>
#include <cstddef>
#include <thread>
#include <vector>

namespace sluice::bench {

// Stealing, CAF's default, has a queue for each thread; sharing has one queue for all threads.
enum class caf_policy { stealing, sharing };

class caf_system {
 public:
  explicit caf_system(caf_policy policy = caf_policy::stealing) : config_(policy) {}

  // Waits until every actor has ended, or is idle and unreferenced.
  ~caf_system() {
    for (const caf::actor& each : to_stop_) {
      caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
    }
  }
  caf_system(const caf_system&) = delete;
  caf_system& operator=(const caf_system&) = delete;

  caf::actor_system* operator->() { return &system_; }

  // For actors that do not end by themselves.
  caf::actor stop_at_end(caf::actor one) {
    to_stop_.push_back(one);
    return one;
  }

 private:
  struct config : caf::actor_system_config {
    explicit config(caf_policy policy) {
      set("scheduler.max-threads", std::size_t{std::thread::hardware_concurrency()});
      if (policy == caf_policy::sharing) set("scheduler.policy", caf::atom("sharing"));
    }
  };

  config config_;
  caf::actor_system system_{config_};
  std::vector<caf::actor> to_stop_;
};

}  // namespace sluice::bench
