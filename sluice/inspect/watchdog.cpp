#include "sluice/inspect/watchdog.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "sluice/base/detail/callback.hpp"
#include "sluice/base/detail/signal_pipe.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/this_thread.hpp"
#include "sluice/inspect/format.hpp"
#include "sluice/sync/condition.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::inspect {
namespace {

// The number of contended objects in an overview.
constexpr std::size_t contended_max = 20;

// Above this number of reported deadlocks, those with an ended wait are removed.
constexpr std::size_t reported_max = 64;

}  // namespace

class watchdog::impl {
 public:
  explicit impl(options o) : options_(std::move(o)), time_(clock_of(options_)) {
    if (!is_on()) {
      if (options_.inspecting.time == nullptr) options_.inspecting.time = options_.time;
      inspecting_.emplace(options_.inspecting);
    }
    if (options_.print_on_signal != 0) {
      signal_.emplace(options_.print_on_signal);
      printer_ = seam::thread([this] {
        seam::name_thread("watchdog-signal");
        while (signal_->wait()) print();
      });
    }
    if (options_.period > std::chrono::nanoseconds::zero()) {
      scanner_ = seam::thread([this](const std::stop_token& stop) { run(stop); });
    }
  }
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;
  ~impl() {
    if (signal_.has_value()) signal_->close();
    scanner_ = seam::thread();
    printer_ = seam::thread();
  }

  std::uint64_t watch(std::string name, std::function<progress()> get_progress) {
    const std::lock_guard hold(mutex_);
    watched_.push_back(std::make_shared<watched>(++numbers_, std::move(name),
                                                 std::move(get_progress), time_.now()));
    return numbers_;
  }
  void forget(std::uint64_t number) noexcept {
    std::unique_lock hold(mutex_);
    std::erase_if(watched_, [&](const auto& w) { return w->number == number; });
    // The watched object may be destroyed after the return: blocks until its call has ended. A
    // `get_progress` that ends its own registration must not wait for itself.
    if (scan_mutex_.held_by_me()) return;
    poll_done_.wait(hold, [&] { return polled_ != number; });
  }

  // In this order: only the last one calls the program, which may not return.
  void scan() {
    if (scan_mutex_.held_by_me()) return;  // inside `get_progress`
    deliver(new_deadlocks());
    deliver(new_long_holds());
    deliver(new_stalls());
  }

  void print() {
    auto most = contention();
    if (most.size() > contended_max) most.resize(contended_max);
    std::string all = "sluice: all waits:\n" + to_text(waits()) + "contention:\n" + to_text(most);
    deliver({{report{report::kind::overview, std::move(all)}, {}}});
  }

 private:
  // A watched object. The first three members are constant; the others protected by scan_mutex_.
  struct watched {
    watched(std::uint64_t n, std::string label, std::function<progress()> source, time_point now)
        : number(n), name(std::move(label)), get_progress(std::move(source)), since(now) {}

    const std::uint64_t number;
    const std::string name;
    const std::function<progress()> get_progress;
    std::uint64_t done = 0;  // at the last progress
    time_point since;
    bool is_reported = false;
  };
  // A report to deliver.
  struct finding {
    report message{};
    std::optional<deadlock> found{};
  };
  using findings = std::vector<finding>;

  static clock& clock_of(const options& o) { return o.time != nullptr ? *o.time : real_clock(); }

  void run(const std::stop_token& stop) {
    seam::name_thread("watchdog");
    for (;;) {
      const auto until = options_.time != nullptr ? deadline::after(options_.period, time_)
                                                  : deadline::after(options_.period);
      if (never_.wait({until, stop}) == status::stopped) return;
      scan();
    }
  }

  // Delivers the reports one at a time and without a lock, so that callbacks may call the watchdog.
  // If a delivery is in progress, possibly further up this stack, it delivers these reports too.
  void deliver(findings found) {
    {
      const std::lock_guard hold(mutex_);
      for (auto& each : found) enqueue(std::move(each));
      if (is_delivering_ || pending_.empty()) return;
      is_delivering_ = true;
    }
    try {
      while (const auto next = next_pending()) deliver_one(*next);
    } catch (...) {
      const std::lock_guard hold(mutex_);
      is_delivering_ = false;
      throw;
    }
  }

  // Must hold mutex_. Of the overviews that are pending, only the last is kept.
  void enqueue(finding each) {
    if (each.message.type == report::kind::overview) {
      std::erase_if(pending_,
                    [](const finding& f) { return f.message.type == report::kind::overview; });
    }
    pending_.push_back(std::move(each));
  }

  std::optional<finding> next_pending() {
    const std::lock_guard hold(mutex_);
    if (pending_.empty()) {
      is_delivering_ = false;
      return std::nullopt;
    }
    auto next = std::move(pending_.front());
    pending_.erase(pending_.begin());
    return next;
  }

  void deliver_one(const finding& f) {
    if (f.found && options_.deadlock_found) {
      sluice::detail::call_back("deadlock_found of watchdog", {}, options_.deadlock_found,
                                *f.found);
    }
    if (options_.on_report) {
      sluice::detail::call_back("on_report of watchdog", {}, options_.on_report, f.message);
    } else {
      std::fputs(f.message.text.c_str(), stderr);
    }
    const bool ends_it = options_.on_deadlock == deadlock_action::abort;
    if (ends_it && f.found && f.found->is_certain()) std::abort();
  }

  // A deadlock is reported once, also if a scan in between did not find it: a party may have been
  // there that could have ended it, or a wait had a futile wake-up at that moment.
  findings new_deadlocks() {
    const std::lock_guard hold(scan_mutex_);
    findings found;
    for (const auto& d : find_deadlocks(options_.deadlock_after)) {
      if (!deadlocks_.insert(d.waits()).second) continue;
      found.push_back({{report::kind::deadlock, d.text()}, d});
    }
    if (deadlocks_.size() > reported_max) forget_ended();
    return found;
  }

  // Must hold scan_mutex_. Wait numbers are never reused: a deadlock with an ended wait cannot
  // recur.
  void forget_ended() {
    std::set<std::uint64_t> now;
    for (const auto& w : waits()) now.insert(w.number);
    std::erase_if(deadlocks_, [&](const auto& numbers) {
      return !std::ranges::all_of(numbers, [&](auto n) { return now.contains(n); });
    });
  }

  findings new_stalls() {
    const std::lock_guard hold(scan_mutex_);
    findings found;
    for (const auto& w : all_watched()) {
      const auto measured = poll(*w);
      if (!measured) continue;
      const auto now = time_.now();
      if (measured->waiting == 0 || measured->done != w->done) {
        w->done = measured->done;
        w->since = now;
        w->is_reported = false;
      } else if (!w->is_reported && now - w->since >= options_.stalled_after) {
        w->is_reported = true;
        found.push_back(
            {{report::kind::stall, "sluice: " + w->name + " has finished nothing for " +
                                       to_text(now - w->since) + "; " +
                                       std::to_string(measured->waiting) + " pending\n"},
             {}});
      }
    }
    return found;
  }

  std::vector<std::shared_ptr<watched>> all_watched() {
    const std::lock_guard hold(mutex_);
    return watched_;
  }

  // Returns nothing if the registration has ended meanwhile.
  std::optional<progress> poll(const watched& w) {
    {
      const std::lock_guard hold(mutex_);
      if (std::ranges::none_of(watched_, [&](const auto& o) { return o.get() == &w; })) return {};
      polled_ = w.number;
    }
    struct poll_end {
      impl& of;
      ~poll_end() {
        const std::lock_guard hold(of.mutex_);
        of.polled_ = 0;
        of.poll_done_.notify_all();
      }
    } const at_the_end{*this};
    try {
      return w.get_progress();
    } catch (...) {
      sluice::detail::report_exception("get_progress of watchdog", w.name,
                                       std::current_exception());
      return {};
    }
  }

  findings new_long_holds() {
    const std::lock_guard hold(scan_mutex_);
    findings found;
    std::set<std::uint64_t> still;
    for (const auto& h : holds()) {
      // Permits may be held for any time.
      const bool is_lock = h.object.wants == "holds" || h.object.wants == "reads";
      if (!is_lock || h.time < options_.held_after || h.object.address == &scan_mutex_) continue;
      still.insert(h.number);
      if (holds_.contains(h.number)) continue;
      found.push_back({{report::kind::long_hold, "sluice: " + h.party.text() + " has held " +
                                                     h.object.text() + " for " + to_text(h.time) +
                                                     ", taken at " + to_string(h.at) + "\n"},
                       {}});
    }
    holds_ = std::move(still);
    return found;
  }

  options options_;
  clock& time_;
  std::optional<enabled> inspecting_;
  event never_{named("watchdog")};  // never set: the scanner sleeps here between scans

  // Held during a scan, also while it calls `get_progress`. Acquired before mutex_.
  mutex scan_mutex_{named("watchdog")};
  std::set<std::vector<std::uint64_t>> deadlocks_;  // protected by scan_mutex_: reported, by waits
  std::set<std::uint64_t> holds_;  // protected by scan_mutex_: reported, and still held

  // Not held while the program is called.
  mutex mutex_{named("watchdog list")};
  condition poll_done_{named("watchdog")};
  std::vector<std::shared_ptr<watched>> watched_;  // protected by mutex_
  std::uint64_t numbers_ = 0;                      // protected by mutex_
  std::uint64_t polled_ = 0;    // protected by mutex_: the object whose get_progress runs
  findings pending_;            // protected by mutex_
  bool is_delivering_ = false;  // protected by mutex_

  std::optional<seam::signal_pipe> signal_;
  seam::thread printer_;
  seam::thread scanner_;
};

watchdog::watchdog(options o) : impl_(std::make_unique<impl>(std::move(o))) {}
watchdog::~watchdog() = default;

watchdog::registration watchdog::watch(std::string name, std::function<progress()> get_progress) {
  return registration(*this, impl_->watch(std::move(name), std::move(get_progress)));
}
void watchdog::forget(std::uint64_t number) noexcept {
  impl_->forget(number);
}
void watchdog::scan() {
  impl_->scan();
}
void watchdog::print() {
  impl_->print();
}

}  // namespace sluice::inspect
