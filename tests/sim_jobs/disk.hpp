#pragma once

// The disk of a simulated server: committed data survives a crash of the server, other data does
// not. Depending on its seed it is slow, fails, is full for a while, and loses power at any call.
//
// A crash: from one event of the disk on (`cut_after`), every call fails and changes
// nothing. The engine of that life can still run, without a durable effect;
// it is destroyed, and the next one is opened on the contents of the disk. For a transaction in
// progress at that event, or a transaction that failed just before with `io_error`, the disk
// decides whether it is durable, as the port allows (store.hpp).
//
// Not thread-safe outside of a schedule: inside one, a thread runs until it waits or accesses
// an atomic, and here only the store's own lock has one.

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

// Each happens once in this many calls; zero: never.
struct disk_habits {
  std::uint32_t fails = 0;       // a commit, with io_error
  std::uint32_t reads_fail = 0;  // a read, with io_error
  std::uint32_t slow = 0;        // a commit takes up to 300 ms instead of up to 2 ms
  std::uint32_t full = 0;        // the disk is full before a commit, for up to 200 ms
};

// Forbidden behaviour of a disk, to test that it is detected. Each happens at one in this many
// crashes: a ready job is lost; a job that a worker had ended is ready again.
struct disk_crimes {
  std::uint32_t eats = 0;
  std::uint32_t revives = 0;
};

struct disk_counts {
  std::uint64_t commits = 0, failed = 0, slow = 0, refused_full = 0, reads = 0, reads_failed = 0;
  // Power cuts: before or after the transaction was applied, or at a read.
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

  // Opens a store on the contents of the disk. One life at a time.
  std::unique_ptr<jobs::store> open();

  // Cuts the power at the n-th call from now. Zero: immediately.
  void cut_after(std::uint32_t calls);
  bool is_off() const noexcept { return off_; }
  // Requires that all objects of the last life are destroyed.
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
  fate decide(const jobs::transaction& b);
  jobs::result<jobs::applied> apply(jobs::store& on, const jobs::transaction& b);
  std::optional<jobs::error> before_read(const char* operation);
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
  std::optional<jobs::transaction> in_doubt_;
  jobs::job_ptr last_ended_;  // a job that was dropped on completion
};

// Sleeps in the schedule's time.
void pass(std::chrono::nanoseconds time);

}  // namespace sluice::sim_jobs
