#pragma once

// Chooses the next thread at every switch point of a schedule.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/sim/explore.hpp"

namespace sluice::sim::detail {

// The next operation of a thread, as far as it affects other threads.
struct operation {
  enum class kind : std::uint8_t { nothing, read, write, everything };
  kind type = kind::nothing;
  const void* at = nullptr;
  const char* text = "";

  // Returns false if the two operations commute.
  bool depends_on(const operation& other) const noexcept {
    if (type == kind::nothing || other.type == kind::nothing) return false;
    if (type == kind::everything || other.type == kind::everything) return true;
    return at == other.at && (type == kind::write || other.type == kind::write);
  }
};

// A step at which a schedule deviated from the default: continue the current thread, else the next
// one by number; load the newest value; advance the clock only if no thread can run.
struct deviation {
  std::uint32_t step;
  char type;  // t thread, r age of the loaded value, f a weak compare fails, c the clock advances
  std::uint32_t value;
};
std::string to_trace(const std::vector<deviation>& from);
bool parse_trace(const std::string& text, std::vector<deviation>& into);

struct situation {
  std::uint32_t step;
  std::uint32_t current;  // the running thread
  bool current_can_run;
  bool is_spinning;              // the current thread is about to spin
  std::uint32_t runnable;        // threads that can run, as bits; 0 only if clock_can_advance
  bool clock_can_advance;        // the clock may advance to the next deadline instead
  const operation* const* next;  // the next operation of each thread
};
inline constexpr std::uint32_t advance_clock = 0xffff;
inline constexpr std::uint32_t prune = 0xfffe;  // an equivalent schedule was run before

std::uint32_t default_choice(const situation& s) noexcept;

class strategy {
 public:
  strategy() = default;
  strategy(const strategy&) = delete;
  strategy& operator=(const strategy&) = delete;
  virtual ~strategy() = default;

  // Returns false after the last schedule.
  virtual bool begin() = 0;
  virtual std::uint32_t next(const situation& s) = 0;
  virtual std::uint32_t value(std::uint32_t step, std::uint32_t count, char type) = 0;
  virtual void thread_started(std::uint32_t) {}
  virtual void end(std::uint32_t /*steps*/) {}
  virtual bool complete() const { return false; }
};

std::unique_ptr<strategy> make_random(const options& o);
std::unique_ptr<strategy> make_pct(const options& o);
std::unique_ptr<strategy> make_mixed(const options& o);
std::unique_ptr<strategy> make_exhaustive(const options& o);
std::unique_ptr<strategy> make_replay(std::vector<deviation> path);

// Wraps a strategy and records its deviations.
class recorder final : public strategy {
 public:
  explicit recorder(strategy& of) : of_(of) {}
  bool begin() override {
    path_.clear();
    return of_.begin();
  }
  std::uint32_t next(const situation& s) override;
  std::uint32_t value(std::uint32_t step, std::uint32_t count, char type) override;
  void thread_started(std::uint32_t n) override { of_.thread_started(n); }
  void end(std::uint32_t steps) override { of_.end(steps); }
  bool complete() const override { return of_.complete(); }
  const std::vector<deviation>& path() const noexcept { return path_; }

 private:
  strategy& of_;
  std::vector<deviation> path_;
};

}  // namespace sluice::sim::detail
