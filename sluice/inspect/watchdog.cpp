#include "sluice/inspect/watchdog.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "sluice/base/callback.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/signal_pipe.hpp"
#include "sluice/base/this_thread.hpp"
#include "sluice/inspect/format.hpp"
#include "sluice/sync/condition.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::inspect {
namespace {

// So many of the most contended objects are printed.
constexpr std::size_t contended_max = 20;

// So many deadlocks that were told are remembered also when some of their waits may have ended.
constexpr std::size_t told_max = 64;

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
      looker_ = seam::thread([this](const std::stop_token& stop) { live(stop); });
    }
  }
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;
  ~impl() {
    if (signal_.has_value()) signal_->close();
    looker_ = seam::thread();
    printer_ = seam::thread();
  }

  std::uint64_t watch(std::string name, std::function<progress()> how_far) {
    const std::lock_guard hold(mutex_);
    watched_.push_back(
        std::make_shared<watched>(++numbers_, std::move(name), std::move(how_far), time_.now()));
    return numbers_;
  }
  void forget(std::uint64_t number) noexcept {
    std::unique_lock hold(mutex_);
    std::erase_if(watched_, [&](const auto& w) { return w->number == number; });
    // What it asks may be gone when this has returned. One that forgets itself ends by itself.
    if (looking_.held_by_me()) return;
    was_asked_.wait(hold, [&] { return asked_now_ != number; });
  }

  // In this order: of the three only the last asks the program, which may not answer.
  void look() {
    if (looking_.held_by_me()) return;  // from inside of `how_far`
    tell(new_deadlocks());
    tell(new_long_holds());
    tell(new_stalls());
  }

  void print() {
    auto most = contention();
    if (most.size() > contended_max) most.resize(contended_max);
    std::string all =
        "sluice: what waits:\n" + to_text(waits()) + "and what was waited for:\n" + to_text(most);
    tell({{report{report::kind::overview, std::move(all)}, {}}});
  }

 private:
  // Of what is looked after. The first three are constant; the others protected by looking_.
  struct watched {
    watched(std::uint64_t n, std::string as, std::function<progress()> ask, time_point now)
        : number(n), name(std::move(as)), how_far(std::move(ask)), since(now) {}

    const std::uint64_t number;
    const std::string name;
    const std::function<progress()> how_far;
    std::uint64_t done = 0;  // when it was last seen to go on
    time_point since;
    bool told = false;
  };
  // Something to tell.
  struct finding {
    report what{};
    std::optional<deadlock> found{};
  };
  using findings = std::vector<finding>;

  static clock& clock_of(const options& o) { return o.time != nullptr ? *o.time : real_clock(); }

  void live(const std::stop_token& stop) {
    seam::name_thread("watchdog");
    for (;;) {
      const auto until = options_.time != nullptr ? deadline::after(options_.period, time_)
                                                  : deadline::after(options_.period);
      if (never_.wait_within({until, stop}) == status::stopped) return;
      look();
    }
  }

  // One at a time and without a lock, so that what is called may call the watchdog. When somebody
  // is telling already, be it this very thread further out, that one tells these as well.
  void tell(findings found) {
    {
      const std::lock_guard hold(mutex_);
      for (auto& each : found) add_to_tell(std::move(each));
      if (is_telling_ || to_tell_.empty()) return;
      is_telling_ = true;
    }
    try {
      while (const auto next = next_to_tell()) say(*next);
    } catch (...) {
      const std::lock_guard hold(mutex_);
      is_telling_ = false;
      throw;
    }
  }

  // With mutex_ held. Of overviews that wait to be told, the last is enough.
  void add_to_tell(finding each) {
    if (each.what.what == report::kind::overview) {
      std::erase_if(to_tell_,
                    [](const finding& f) { return f.what.what == report::kind::overview; });
    }
    to_tell_.push_back(std::move(each));
  }

  std::optional<finding> next_to_tell() {
    const std::lock_guard hold(mutex_);
    if (to_tell_.empty()) {
      is_telling_ = false;
      return std::nullopt;
    }
    auto next = std::move(to_tell_.front());
    to_tell_.erase(to_tell_.begin());
    return next;
  }

  void say(const finding& f) {
    if (f.found && options_.deadlock_found) {
      call_back("deadlock_found of watchdog", {}, options_.deadlock_found, *f.found);
    }
    if (options_.on_report) {
      call_back("on_report of watchdog", {}, options_.on_report, f.what);
    } else {
      std::fputs(f.what.text.c_str(), stderr);
    }
    const bool ends_it = options_.on_deadlock == deadlock_action::abort;
    if (ends_it && f.found && f.found->is_certain()) std::abort();
  }

  // What was told is told, also when a look in between has not found it: somebody was there who
  // could have helped, or one of the waits was woken in vain just then.
  findings new_deadlocks() {
    const std::lock_guard hold(looking_);
    findings found;
    for (const auto& d : find_deadlocks(options_.deadlock_after)) {
      if (!deadlocks_.insert(d.waits()).second) continue;
      found.push_back({{report::kind::deadlock, d.text()}, d});
    }
    if (deadlocks_.size() > told_max) forget_ended();
    return found;
  }

  // With looking_ held. The number of a wait never comes again: what has ended is kept in vain.
  void forget_ended() {
    std::set<std::uint64_t> now;
    for (const auto& w : waits()) now.insert(w.number);
    std::erase_if(deadlocks_, [&](const auto& numbers) {
      return !std::ranges::all_of(numbers, [&](auto n) { return now.contains(n); });
    });
  }

  findings new_stalls() {
    const std::lock_guard hold(looking_);
    findings found;
    for (const auto& w : all_watched()) {
      const auto far = ask(*w);
      if (!far) continue;
      const auto now = time_.now();
      if (far->waiting == 0 || far->done != w->done) {
        w->done = far->done;
        w->since = now;
        w->told = false;
      } else if (!w->told && now - w->since >= options_.stalled_after) {
        w->told = true;
        found.push_back({{report::kind::stall, "sluice: " + w->name + " has finished nothing for " +
                                                   to_text(now - w->since) + ", and " +
                                                   std::to_string(far->waiting) + " wait in it\n"},
                         {}});
      }
    }
    return found;
  }

  std::vector<std::shared_ptr<watched>> all_watched() {
    const std::lock_guard hold(mutex_);
    return watched_;
  }

  // Nothing: it was forgotten meanwhile.
  std::optional<progress> ask(const watched& w) {
    {
      const std::lock_guard hold(mutex_);
      if (std::ranges::none_of(watched_, [&](const auto& o) { return o.get() == &w; })) return {};
      asked_now_ = w.number;
    }
    struct asking {
      impl& of;
      ~asking() {
        const std::lock_guard hold(of.mutex_);
        of.asked_now_ = 0;
        of.was_asked_.notify_all();
      }
    } const at_the_end{*this};
    try {
      return w.how_far();
    } catch (...) {
      report_exception("how_far of watchdog", w.name, std::current_exception());
      return {};
    }
  }

  findings new_long_holds() {
    const std::lock_guard hold(looking_);
    findings found;
    std::set<std::uint64_t> still;
    for (const auto& h : holds()) {
      // Permits may be kept for as long as one likes.
      const bool is_lock = h.what.wants == "holds" || h.what.wants == "reads";
      if (!is_lock || h.time < options_.held_after || h.what.address == &looking_) continue;
      still.insert(h.number);
      if (holds_.contains(h.number)) continue;
      found.push_back({{report::kind::long_hold, "sluice: " + h.who.text() + " has held " +
                                                     h.what.text() + " for " + to_text(h.time) +
                                                     ", taken at " + to_string(h.at) + "\n"},
                       {}});
    }
    holds_ = std::move(still);
    return found;
  }

  options options_;
  clock& time_;
  std::optional<enabled> inspecting_;
  event never_{named("watchdog")};  // never set: it sleeps here between two looks

  // Held by the one that looks, also while it asks `how_far`. Before mutex_.
  mutex looking_{named("watchdog")};
  std::set<std::vector<std::uint64_t>> deadlocks_;  // protected by looking_: told, by their waits
  std::set<std::uint64_t> holds_;                   // protected by looking_: told, and still there

  // Never held while the program is called.
  mutex mutex_{named("watchdog list")};
  condition was_asked_{named("watchdog")};
  std::vector<std::shared_ptr<watched>> watched_;  // protected by mutex_
  std::uint64_t numbers_ = 0;                      // protected by mutex_
  std::uint64_t asked_now_ = 0;                    // protected by mutex_: how far is that one?
  findings to_tell_;                               // protected by mutex_
  bool is_telling_ = false;                        // protected by mutex_: somebody is

  std::optional<seam::signal_pipe> signal_;
  seam::thread printer_;
  seam::thread looker_;
};

watchdog::watchdog(options o) : impl_(std::make_unique<impl>(std::move(o))) {}
watchdog::~watchdog() = default;

watchdog::looking_after watchdog::watch(std::string name, std::function<progress()> how_far) {
  return looking_after(*this, impl_->watch(std::move(name), std::move(how_far)));
}
void watchdog::forget(std::uint64_t number) noexcept {
  impl_->forget(number);
}
void watchdog::look() {
  impl_->look();
}
void watchdog::print() {
  impl_->print();
}

}  // namespace sluice::inspect
