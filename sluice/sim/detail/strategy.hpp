#pragma once

// Who goes on, at every point of a schedule.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/sim/explore.hpp"

namespace sluice::sim::detail {

// What a thread is about to do, as far as it matters to others.
struct operation {
  enum class kind : std::uint8_t { nothing, read, write, everything };
  kind what = kind::nothing;
  const void* at = nullptr;
  const char* text = "";

  // False: the two can change places and nobody can tell.
  bool depends_on(const operation& other) const noexcept {
    if (what == kind::nothing || other.what == kind::nothing) return false;
    if (what == kind::everything || other.what == kind::everything) return true;
    return at == other.at && (what == kind::write || other.what == kind::write);
  }
};

// A place where a schedule left the usual way: the thread that runs goes on, else the next one by
// number; loads give the newest value; time passes only when nobody can run.
struct deviation {
  std::uint32_t step;
  char what;  // t thread, r age of what is read, f a weak compare fails, c the clock goes on
  std::uint32_t value;
};
std::string to_trace(const std::vector<deviation>& from);
bool parse_trace(const std::string& text, std::vector<deviation>& into);

struct situation {
  std::uint32_t step;
  std::uint32_t current;         // the thread that runs
  bool current_may;              // it could go on
  bool spins;                    // it is about to spin
  std::uint32_t may;             // those who may go on, as bits; never empty but when time_may
  bool time_may;                 // instead, the clock may go on to the next deadline
  const operation* const* next;  // what each thread is about to do
};
inline constexpr std::uint32_t clock_goes_on = 0xffff;
inline constexpr std::uint32_t give_up = 0xfffe;  // an equal schedule was run before

std::uint32_t usual(const situation& s) noexcept;

class strategy {
 public:
  strategy() = default;
  strategy(const strategy&) = delete;
  strategy& operator=(const strategy&) = delete;
  virtual ~strategy() = default;

  // False: there are no more schedules.
  virtual bool begin() = 0;
  virtual std::uint32_t next(const situation& s) = 0;
  virtual std::uint32_t value(std::uint32_t step, std::uint32_t count, char what) = 0;
  virtual void thread_started(std::uint32_t) {}
  virtual void end(std::uint32_t /*steps*/) {}
  virtual bool complete() const { return false; }
};

std::unique_ptr<strategy> make_random(const options& o);
std::unique_ptr<strategy> make_pct(const options& o);
std::unique_ptr<strategy> make_mixed(const options& o);
std::unique_ptr<strategy> make_exhaustive(const options& o);
std::unique_ptr<strategy> make_replay(std::vector<deviation> path);

// Another strategy, whose deviations are written down.
class recorder final : public strategy {
 public:
  explicit recorder(strategy& of) : of_(of) {}
  bool begin() override {
    path_.clear();
    return of_.begin();
  }
  std::uint32_t next(const situation& s) override;
  std::uint32_t value(std::uint32_t step, std::uint32_t count, char what) override;
  void thread_started(std::uint32_t n) override { of_.thread_started(n); }
  void end(std::uint32_t steps) override { of_.end(steps); }
  bool complete() const override { return of_.complete(); }
  const std::vector<deviation>& path() const noexcept { return path_; }

 private:
  strategy& of_;
  std::vector<deviation> path_;
};

}  // namespace sluice::sim::detail
