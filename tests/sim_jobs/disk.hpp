#pragma once

// The disk of a simulated server: what was committed outlives the server's crash, and the rest is
// gone. By its seed it is slow, fails, is full for a while, and loses its power in the middle.
//
// A crash is this: from one event of the disk on (`cut_after`) every call fails and changes
// nothing. The engine of that life can still run, but nothing of what it does is ever seen again;
// it is torn down, and the next one is opened on what the disk has. Of a batch that was being
// applied at that event, and of one that had failed just before with `io_error`, the disk decides
// whether it is there, as the port allows (store.hpp).
//
// Not for several threads outside of a schedule: inside one, a thread runs until it waits or comes
// to an atomic, and there is none here but in the store's own lock.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "jobs/store/memory/memory_store.hpp"
#include "jobs/store/store.hpp"
#include "sluice/base/random.hpp"
#include "tests/sim_jobs/event_log.hpp"

namespace sluice::sim_jobs {

using jobs::milliseconds;
using jobs::unix_time;

// How often, once in so many calls; zero: never.
struct disk_habits {
  std::uint32_t fails = 0;       // a commit, with io_error
  std::uint32_t reads_fail = 0;  // a read, with io_error
  std::uint32_t slow = 0;        // a commit takes up to 300 ms instead of up to 2 ms
  std::uint32_t full = 0;        // before a commit the disk gets full, for up to 200 ms
};

// What no disk may do, to see that it is found out: at one crash in so many a job is gone that was
// ready, and one that a worker had ended is ready again.
struct disk_crimes {
  std::uint32_t eats = 0;
  std::uint32_t revives = 0;
};

struct disk_counts {
  std::uint64_t commits = 0, failed = 0, slow = 0, refused_full = 0, reads = 0, reads_failed = 0;
  // The power went: before or after the batch was done, or at a read.
  std::uint64_t cut_before = 0, cut_after = 0, cut_reading = 0;
  std::uint64_t doubts_done = 0, doubts_gone = 0;
  std::uint64_t changes = 0;

  std::uint64_t cuts() const noexcept { return cut_before + cut_after + cut_reading; }
  void add(const disk_counts& more);
};

class disk {
 public:
  disk(std::uint64_t seed, disk_habits habits, event_log& log)
      : chance_(seed), habits_(habits), log_(log) {}

  // A store on what the disk has. One life at a time.
  std::unique_ptr<jobs::store> open();

  // The power goes at the n-th call from now. Zero: at once.
  void cut_after(std::uint32_t calls);
  bool is_off() const noexcept { return off_; }
  // After everything of the last life is gone.
  void power_on();
  void set_habits(disk_habits habits) noexcept { habits_ = habits; }
  void misbehave(disk_crimes crimes) noexcept { crimes_ = crimes; }

  const disk_counts& counts() const noexcept { return counts_; }

 private:
  friend class disk_store;
  friend class disk_reader;
  enum class fate : std::uint8_t { done, off, cut_before, cut_after, fails, full };

  bool once_in(std::uint32_t many) { return many > 0 && chance_.below(many) == 0; }
  bool is_full() const;
  bool is_cut_by_this_call();
  fate decide(const jobs::batch& b);
  jobs::result<jobs::applied> apply(jobs::store& on, const jobs::batch& b);
  std::optional<jobs::error> before_read(const char* what);
  void commit_crimes(jobs::store& on);

  random chance_;
  disk_habits habits_;
  disk_crimes crimes_;
  event_log& log_;
  disk_counts counts_;
  std::shared_ptr<jobs::memory_contents> contents_ = jobs::make_memory_contents();
  std::optional<std::uint32_t> calls_left_;
  bool off_ = false;
  unix_time full_until_{};
  std::optional<jobs::batch> in_doubt_;
  jobs::job_ptr last_ended_;  // a job that was dropped when it was done
};

// Lets so much of the schedule's time pass.
void pass(std::chrono::nanoseconds time);

}  // namespace sluice::sim_jobs
