#include "sluice/sim/detail/strategy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

namespace sluice::sim::detail {
namespace {

std::uint32_t nth_bit(std::uint32_t bits, std::uint32_t n) noexcept {
  while (n-- > 0) bits &= bits - 1;
  return static_cast<std::uint32_t>(std::countr_zero(bits));
}

std::uint32_t any_of(std::uint32_t bits, random& dice) noexcept {
  return nth_bit(bits, dice.below(static_cast<std::uint32_t>(std::popcount(bits))));
}

// The odds of an early time-out and of a spurious failure: one in this many.
constexpr std::uint32_t early_clock_one_in = 64;
constexpr std::uint32_t weak_failure_one_in = 32;

class random_strategy final : public strategy {
 public:
  explicit random_strategy(const options& o) : dice_(o.seed) {}

  bool begin() override {
    // Some bugs need many switches, some few: the switch rate differs between schedules.
    switch_one_in_ = 2U << dice_.below(5);
    constexpr std::array<std::uint32_t, 4> stale{0, 2, 4, 8};
    stale_one_in_ = stale[dice_.below(stale.size())];
    return true;
  }
  std::uint32_t next(const situation& s) override {
    if (s.runnable == 0) return advance_clock;
    if (s.clock_can_advance && dice_.below(early_clock_one_in) == 0) return advance_clock;
    if (s.current_can_run && !s.is_spinning && dice_.below(switch_one_in_) != 0) return s.current;
    return any_of(s.runnable, dice_);
  }
  std::uint32_t value(std::uint32_t, std::uint32_t count, char type) override {
    if (type == 'f') return dice_.below(weak_failure_one_in) == 0 ? 1 : 0;
    if (stale_one_in_ == 0 || dice_.below(stale_one_in_) != 0) return 0;
    return dice_.below(count);
  }

 private:
  random dice_;
  std::uint32_t switch_one_in_ = 2;
  std::uint32_t stale_one_in_ = 0;
};

// After "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs" (Burckhardt,
// Kothari, Musuvathi, Nagarakatte 2010): a thread that reaches a change point gets a priority below
// all others; the order of those priorities is random, not the order in time.
class pct_strategy final : public strategy {
 public:
  explicit pct_strategy(const options& o) : dice_(o.seed ^ 0x9c7), depth_(std::max(1U, o.depth)) {}

  bool begin() override {
    priority_.fill(0);
    lowest_ = 0;
    changes_.clear();
    // Any other randomness would lower the probability of the schedules decided by priorities
    // alone.
    only_priorities_ = dice_.below(2) == 0;
    // The change points are drawn from the steps of the longest schedule, so the first schedule has
    // none. If a few schedules are much longer than the rest, these points are too late for most:
    // so half of the schedules draw them from the first steps.
    const auto from = only_priorities_ ? longest_ : std::min(longest_, 16U << dice_.below(8));
    for (unsigned i = 1; i < depth_ && from > 0; ++i) changes_.push_back(1 + dice_.below(from));
    return true;
  }
  void thread_started(std::uint32_t n) override {
    priority_[n] = static_cast<std::int64_t>(1'000'000 + dice_.below(1'000'000));
  }
  std::uint32_t next(const situation& s) override {
    if (s.runnable == 0) return advance_clock;
    if (s.clock_can_advance && !only_priorities_ && dice_.below(early_clock_one_in) == 0) {
      return advance_clock;
    }
    const auto change = std::find(changes_.begin(), changes_.end(), s.step);
    if (change != changes_.end()) priority_[s.current] = 1 + (change - changes_.begin());
    // A spinning thread waits for another one: it gets the lowest priority.
    if (s.is_spinning) priority_[s.current] = --lowest_;
    std::uint32_t best = nth_bit(s.runnable, 0);
    for (auto rest = s.runnable; rest != 0; rest &= rest - 1) {
      const auto n = static_cast<std::uint32_t>(std::countr_zero(rest));
      if (priority_[n] > priority_[best]) best = n;
    }
    return best;
  }
  std::uint32_t value(std::uint32_t, std::uint32_t count, char type) override {
    if (only_priorities_) return 0;
    if (type == 'f') return dice_.below(weak_failure_one_in) == 0 ? 1 : 0;
    return dice_.below(stale_one_in) == 0 ? dice_.below(count) : 0;
  }
  void end(std::uint32_t steps) override { longest_ = std::max(longest_, steps); }

 private:
  static constexpr std::uint32_t stale_one_in = 6;

  random dice_;
  const unsigned depth_;
  std::uint32_t longest_ = 0;
  bool only_priorities_ = true;
  std::array<std::int64_t, 64> priority_{};
  std::int64_t lowest_ = 0;
  std::vector<std::uint32_t> changes_;
};

class mixed_strategy final : public strategy {
 public:
  explicit mixed_strategy(const options& o) : at_random_(o), by_priority_(o) {}
  bool begin() override {
    now_ = now_ == &at_random_ ? static_cast<strategy*>(&by_priority_) : &at_random_;
    return now_->begin();
  }
  std::uint32_t next(const situation& s) override { return now_->next(s); }
  std::uint32_t value(std::uint32_t step, std::uint32_t count, char type) override {
    return now_->value(step, count, type);
  }
  void thread_started(std::uint32_t n) override { now_->thread_started(n); }
  void end(std::uint32_t steps) override {
    at_random_.end(steps);
    by_priority_.end(steps);
  }

 private:
  random_strategy at_random_;
  pct_strategy by_priority_;
  strategy* now_ = nullptr;
};

// Depth first over all choices, with sleep sets: a choice whose subtree was explored is not tried
// again after an independent step. Only subtrees that the preemption bound did not cut count as
// explored: otherwise a schedule could be missed.
class exhaustive_strategy final : public strategy {
 public:
  explicit exhaustive_strategy(const options& o)
      : preemptions_max_(o.preemptions), stale_max_(o.stale_reads) {}

  bool begin() override {
    if (began_ && !backtrack()) return false;
    began_ = true;
    at_ = 0;
    preemptions_ = 0;
    stale_ = 0;
    sleeping_ = 0;
    return true;
  }

  std::uint32_t next(const situation& s) override {
    if (s.runnable == 0) return advance_clock;
    const bool stays_free = s.current_can_run && !s.is_spinning;
    std::uint32_t options = s.runnable & ~sleeping_;
    bool clock = s.clock_can_advance;
    if (stays_free && preemptions_ == preemptions_max_) {
      if ((s.runnable & ~(1U << s.current)) != 0 || clock) cut();
      options &= 1U << s.current;
      clock = false;
    } else if (clock && preemptions_ == preemptions_max_) {
      cut();
      clock = false;
    }
    if (options == 0 && !clock) return prune;
    const bool several = std::popcount(options) + (clock ? 1 : 0) > 1;
    std::uint32_t chosen = 0;
    std::uint32_t done = 0;
    if (!several) {
      chosen = options != 0 ? nth_bit(options, 0) : advance_clock;
    } else {
      if (at_ == path_.size()) {
        node made;
        const bool stay = stays_free && (options >> s.current & 1U) != 0;
        made.chosen = stay ? s.current : options != 0 ? nth_bit(options, 0) : advance_clock;
        made.left = options & ~(made.chosen < 32 ? 1U << made.chosen : 0);
        made.clock_left = clock && made.chosen != advance_clock;
        path_.push_back(made);
      }
      chosen = path_[at_].chosen;
      done = path_[at_].asleep;
      ++at_;
    }
    if (chosen == advance_clock) {
      ++preemptions_;
      sleeping_ = 0;
      return chosen;
    }
    if (stays_free && chosen != s.current) ++preemptions_;
    sleeping_ |= done;
    for (auto rest = sleeping_; rest != 0; rest &= rest - 1) {
      const auto n = static_cast<std::uint32_t>(std::countr_zero(rest));
      if (n == chosen || s.next[n]->depends_on(*s.next[chosen])) sleeping_ &= ~(1U << n);
    }
    return chosen;
  }

  std::uint32_t value(std::uint32_t, std::uint32_t count, char type) override {
    if (type == 'f') return 0;
    if (stale_ == stale_max_) {
      cut();
      return 0;
    }
    if (at_ == path_.size()) path_.push_back({.is_value = true, .count = count});
    const auto chosen = path_[at_++].value;
    if (chosen != 0) ++stale_;
    return chosen;
  }

  bool complete() const override { return complete_; }

 private:
  struct node {
    bool is_value = false;
    bool clock_left = false;
    bool was_cut = false;  // by the preemption bound, below the current option
    std::uint32_t chosen = 0;
    std::uint32_t left = 0;
    std::uint32_t asleep = 0;  // options whose subtrees were explored completely
    std::uint32_t value = 0;
    std::uint32_t count = 0;
  };

  void cut() {
    for (std::size_t i = 0; i < at_; ++i) path_[i].was_cut = true;
  }

  bool backtrack() {
    while (!path_.empty()) {
      node& last = path_.back();
      if (last.is_value) {
        if (++last.value < last.count) return true;
      } else {
        if (!last.was_cut && last.chosen < 32) last.asleep |= 1U << last.chosen;
        last.was_cut = false;
        if (last.left != 0) {
          last.chosen = nth_bit(last.left, 0);
          last.left &= last.left - 1;
          return true;
        }
        if (last.clock_left) {
          last.clock_left = false;
          last.chosen = advance_clock;
          return true;
        }
      }
      path_.pop_back();
    }
    complete_ = true;
    return false;
  }

  const unsigned preemptions_max_;
  const unsigned stale_max_;
  bool began_ = false;
  bool complete_ = false;
  std::vector<node> path_;
  std::size_t at_ = 0;
  unsigned preemptions_ = 0;
  unsigned stale_ = 0;
  std::uint32_t sleeping_ = 0;
};

class replay_strategy final : public strategy {
 public:
  explicit replay_strategy(std::vector<deviation> path) : path_(std::move(path)) {}
  bool begin() override {
    at_ = 0;
    return true;
  }
  std::uint32_t next(const situation& s) override {
    if (const auto* d = here(s.step)) {
      if (d->type == 'c' && s.clock_can_advance) return advance_clock;
      if (d->type == 't' && d->value < 32 && (s.runnable >> d->value & 1U) != 0) return d->value;
    }
    return default_choice(s);
  }
  std::uint32_t value(std::uint32_t step, std::uint32_t count, char type) override {
    const auto* d = here(step);
    return d != nullptr && d->type == type && d->value < count ? d->value : 0;
  }

 private:
  const deviation* here(std::uint32_t step) {
    while (at_ < path_.size() && path_[at_].step < step) ++at_;
    return at_ < path_.size() && path_[at_].step == step ? &path_[at_] : nullptr;
  }
  const std::vector<deviation> path_;
  std::size_t at_ = 0;
};

}  // namespace

std::uint32_t default_choice(const situation& s) noexcept {
  if (s.runnable == 0) return advance_clock;
  if (s.current_can_run && !s.is_spinning && (s.runnable >> s.current & 1U) != 0) return s.current;
  const auto above = s.current < 31 ? s.runnable & ~((2U << s.current) - 1) : 0;
  return nth_bit(above != 0 ? above : s.runnable, 0);
}

std::uint32_t recorder::next(const situation& s) {
  const auto chosen = of_.next(s);
  if (chosen == prune || chosen == default_choice(s)) return chosen;
  if (chosen == advance_clock) {
    path_.push_back({s.step, 'c', 0});
  } else {
    path_.push_back({s.step, 't', chosen});
  }
  return chosen;
}

std::uint32_t recorder::value(std::uint32_t step, std::uint32_t count, char type) {
  const auto chosen = of_.value(step, count, type);
  if (chosen != 0) path_.push_back({step, type, chosen});
  return chosen;
}

std::string to_trace(const std::vector<deviation>& from) {
  std::string text = "1";
  for (const auto& d : from) {
    text += ',';
    text += std::to_string(d.step);
    text += d.type;
    text += std::to_string(d.value);
  }
  return text;
}

bool parse_trace(const std::string& text, std::vector<deviation>& into) {
  into.clear();
  if (text.empty() || text[0] != '1') return false;
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size();
  while (at != end) {
    deviation d{};
    if (*at != ',') return false;
    const auto step = std::from_chars(at + 1, end, d.step);
    if (step.ec != std::errc{} || step.ptr == end) return false;
    d.type = *step.ptr;
    if (d.type != 't' && d.type != 'r' && d.type != 'f' && d.type != 'c') return false;
    const auto value = std::from_chars(step.ptr + 1, end, d.value);
    if (value.ec != std::errc{}) return false;
    if (!into.empty() && into.back().step >= d.step) return false;
    into.push_back(d);
    at = value.ptr;
  }
  return true;
}

std::unique_ptr<strategy> make_random(const options& o) {
  return std::make_unique<random_strategy>(o);
}
std::unique_ptr<strategy> make_pct(const options& o) {
  return std::make_unique<pct_strategy>(o);
}
std::unique_ptr<strategy> make_mixed(const options& o) {
  return std::make_unique<mixed_strategy>(o);
}
std::unique_ptr<strategy> make_exhaustive(const options& o) {
  return std::make_unique<exhaustive_strategy>(o);
}
std::unique_ptr<strategy> make_replay(std::vector<deviation> path) {
  return std::make_unique<replay_strategy>(std::move(path));
}

}  // namespace sluice::sim::detail
