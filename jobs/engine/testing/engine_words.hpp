#pragma once

// Fixture of the engine's tests: a disk that can block and fail, calls that push, lease and end
// jobs, and a manual clock.
//
// The engine is opened on first use, so that a test can set `options` before. At the end of every
// test the counts of every queue are compared with the sums over a list of its jobs.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobs/engine/engine.hpp"
#include "jobs/store/memory/memory_store.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::testing {

using namespace std::chrono_literals;
using ids = std::vector<job_id>;

struct disk_state {
  bool blocks = false;
  std::optional<error_code> reads_fail;
  std::function<std::optional<error>(const transaction&)> fails;
  std::optional<std::uint64_t> room;
  std::vector<std::size_t> adds;
  std::size_t victim_calls = 0;
  std::size_t victims_looked_at = 0;
};

// Controls the memory store under the engine.
class disk {
 public:
  // The next commits block in apply until `unblock`.
  void block() {
    reached_.reset();
    go_.reset();
    state_.with([](disk_state& s) { s.blocks = true; });
  }
  void await_blocked() { reached_.wait(); }
  void unblock() {
    state_.with([](disk_state& s) { s.blocks = false; });
    go_.set();
  }

  // Every later commit ends with the result of `when`.
  void fails_when(std::function<std::optional<error>(const transaction&)> when) {
    state_.with([&](disk_state& s) { s.fails = std::move(when); });
  }
  void fails(error_code code) {
    fails_when([code](const transaction&) { return error{code, "made to fail"}; });
  }
  // Behaves like a full disk: rejects new jobs, accepts all other changes.
  void is_full() {
    fails_when([](const transaction& b) -> std::optional<error> {
      for (const change& c : b.changes) {
        if (c.type == change::op::add) return error{error_code::disk_full, "made to be full"};
      }
      return std::nullopt;
    });
  }
  void works() { fails_when({}); }
  void reads_fail(bool do_fail, error_code code = error_code::io_error) {
    state_.with(
        [&](disk_state& s) { s.reads_fail = do_fail ? std::optional(code) : std::nullopt; });
  }
  std::optional<error> before_read() {
    const auto code = state_.with([](disk_state& s) { return s.reads_fail; });
    if (!code) return std::nullopt;
    return error{*code, "made not to be read"};
  }
  void room(std::optional<std::uint64_t> bytes) {
    state_.with([&](disk_state& s) { s.room = bytes; });
  }

  // Counts the queries for victims, and the jobs they examined.
  void count_victims(std::size_t calls, std::size_t looked_at) {
    state_.with([&](disk_state& s) {
      s.victim_calls += calls;
      s.victims_looked_at += looked_at;
    });
  }
  std::pair<std::size_t, std::size_t> victim_calls_and_looks() {
    return state_.with(
        [](disk_state& s) { return std::pair(s.victim_calls, s.victims_looked_at); });
  }

  // Returns the number of adds of each attempted commit.
  std::vector<std::size_t> adds() {
    return state_.with([](disk_state& s) { return s.adds; });
  }

  memory_options on(std::shared_ptr<memory_contents> contents) {
    memory_options o;
    o.contents = std::move(contents);
    o.before_apply = [this](const transaction& b) { return before_apply(b); };
    o.free_bytes = [this] { return state_.with([](disk_state& s) { return s.room; }); };
    return o;
  }

 private:
  std::optional<error> before_apply(const transaction& b) {
    if (state_.with([](disk_state& s) { return s.blocks; })) {
      reached_.set();
      go_.wait();
    }
    const auto fails = state_.with([&](disk_state& s) {
      std::size_t adds = 0;
      for (const change& c : b.changes) adds += c.type == change::op::add ? 1U : 0U;
      s.adds.push_back(adds);
      return s.fails;
    });
    return fails ? fails(b) : std::nullopt;
  }

  guarded<disk_state> state_;
  event reached_;
  event go_;
};

// A store with reads that fail on request.
class failing_reads final : public store {
 public:
  failing_reads(std::unique_ptr<store> inner, disk& d) : inner_(std::move(inner)), disk_(d) {}

  result<contents> load() override {
    if (auto why = disk_.before_read()) return *std::move(why);
    return inner_->load();
  }
  result<applied> apply(const transaction& b) override { return inner_->apply(b); }
  void_result flush() override { return inner_->flush(); }
  result<std::vector<job_ptr>> ready_after(queue_number q, position after, page_limit l) override {
    if (auto why = disk_.before_read()) return *std::move(why);
    return inner_->ready_after(q, after, l);
  }
  result<due_page> due(unix_time now, std::size_t limit) override {
    if (auto why = disk_.before_read()) return *std::move(why);
    return inner_->due(now, limit);
  }
  result<timed_page> timed_after(queue_number q, due_place after, std::size_t limit) override {
    if (auto why = disk_.before_read()) return *std::move(why);
    return inner_->timed_after(q, after, limit);
  }
  result<std::vector<job_ptr>> victims(queue_number q, victim which, std::size_t limit,
                                       const std::function<bool(job_id)>& skip) override {
    if (auto why = disk_.before_read()) return *std::move(why);
    disk_.count_victims(1, 0);
    return inner_->victims(q, which, limit, [&](job_id id) {
      disk_.count_victims(0, 1);
      return skip(id);
    });
  }
  result<std::optional<job>> get(job_id id) override {
    if (auto why = disk_.before_read()) return *std::move(why);
    return inner_->get(id);
  }
  result<job_page> list(const job_filter& f, job_id after, std::size_t limit) override {
    if (auto why = disk_.before_read()) return *std::move(why);
    return inner_->list(f, after, limit);
  }
  result<std::optional<batch_info>> get_batch(job_id id) override {
    if (auto why = disk_.before_read()) return *std::move(why);
    return inner_->get_batch(id);
  }
  result<batch_page> list_batches(job_id after, std::size_t limit) override {
    if (auto why = disk_.before_read()) return *std::move(why);
    return inner_->list_batches(after, limit);
  }
  result<log_page> logs(job_id id, std::uint64_t after, std::size_t limit) override {
    if (auto why = disk_.before_read()) return *std::move(why);
    return inner_->logs(id, after, limit);
  }
  std::optional<std::uint64_t> free_bytes() override { return inner_->free_bytes(); }
  std::unique_ptr<store_reader> reader() override { return inner_->reader(); }
  std::string describe() const override { return inner_->describe(); }

 private:
  std::unique_ptr<store> inner_;
  disk& disk_;
};

inline ids ids_of(const std::vector<leased_job>& leased) {
  ids all;
  for (const leased_job& l : leased) all.push_back(l.job->id);
  return all;
}

inline wait_limits at_once() {
  return deadline::after(0s);
}

class engine_words : public ::testing::Test {
 protected:
  engine_words() {
    options.time = &time;
    options.seed = 1;
  }
  void TearDown() override {
    if (engine_ == nullptr) return;
    drive.works();
    drive.reads_fail(false);
    expect_counts_add_up();
  }

  engine& e() {
    if (engine_ == nullptr) open();
    return *engine_;
  }
  void open() {
    auto kept = std::make_unique<failing_reads>(make_memory_store(drive.on(contents)), drive);
    engine_ = std::move(engine::open(std::move(kept), options)).value();
  }
  // Stops gracefully and starts the next process.
  void reopen() {
    e().stop();
    engine_.reset();
    open();
  }
  // Crashes: no later change of this process reaches the disk.
  void crash() {
    (void)e();
    drive.fails(error_code::io_error);
    engine_.reset();
    drive.works();
    open();
  }

  future<result<push_receipt>> begin_push(job_spec spec, wait_limits limits = {}) {
    if (spec.kind.empty()) spec.kind = "k";
    return e().push(std::move(spec), std::move(limits));
  }
  result<push_receipt> try_push(job_spec spec, wait_limits limits = {}) {
    return begin_push(std::move(spec), std::move(limits)).get();
  }
  job_id push(job_spec spec = {}) {
    auto pushed = try_push(std::move(spec));
    EXPECT_TRUE(pushed) << (pushed ? "" : pushed.error().message);
    return pushed ? pushed->id : 0;
  }
  ids push_some(std::size_t count, const job_spec& spec = {}) {
    ids all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(push(spec));
    return all;
  }

  result<std::vector<leased_job>> try_lease(lease_request request = {}) {
    return e().lease(std::move(request), at_once()).get();
  }
  std::vector<leased_job> lease(std::size_t max = 1, const std::string& queue = "default") {
    auto leased = try_lease({.queues = {queue}, .max = max});
    EXPECT_TRUE(leased) << (leased ? "" : leased.error().message);
    return leased ? *std::move(leased) : std::vector<leased_job>{};
  }
  leased_job take(const std::string& queue = "default") {
    auto leased = lease(1, queue);
    EXPECT_EQ(leased.size(), 1U);
    check(leased.size() == 1, "test", "a job to take");
    return leased.front();
  }
  bool is_empty(const std::string& queue = "default") {
    auto leased = try_lease({.queues = {queue}});
    EXPECT_TRUE(leased || leased.error().code == error_code::timed_out);
    return !leased;
  }
  // Leases and acks all jobs, in order.
  ids drain(const std::string& queue = "default", std::size_t at_a_time = 1) {
    ids all;
    for (;;) {
      auto leased = try_lease({.queues = {queue}, .max = at_a_time});
      if (!leased) return all;
      for (const leased_job& l : *leased) {
        all.push_back(l.job->id);
        EXPECT_TRUE(e().ack(l.ref()).get());
      }
    }
  }
  void_result ack(const leased_job& l, std::optional<payload> value = {}) {
    return e().ack(l.ref(), std::move(value)).get();
  }
  result<fail_receipt> fail(const leased_job& l, failure why = {}) {
    return e().fail(l.ref(), std::move(why)).get();
  }

  job get(job_id id) {
    auto found = e().get(id).get();
    EXPECT_TRUE(found) << "job " << id << (found ? "" : found.error().message);
    return found ? *std::move(found) : job{};
  }
  bool has(job_id id) { return static_cast<bool>(e().get(id).get()); }
  job_state state(job_id id) { return get(id).state; }
  queue_counts counts(const std::string& queue = "default") {
    auto info = e().queue(queue);
    EXPECT_TRUE(info);
    return info ? info->counts : queue_counts{};
  }
  void configure(queue_patch patch, const std::string& queue = "default") {
    auto done = e().configure(queue, patch).get();
    ASSERT_TRUE(done) << done.error().message;
  }

  // Waits until the committing thread has finished all current work: due jobs take one round to be
  // read and another to be committed.
  void settle() {
    for (int i = 0; i < 4; ++i) (void)e().remove(~job_id{0}).get();
  }
  void advance(std::chrono::nanoseconds by) {
    settle();
    time.advance(by);
    settle();
  }

  // Puts the changes of `calls` into one commit: the previous commit blocks until `calls` have
  // returned.
  template <class Calls>
  void in_one_commit(Calls&& calls) {
    settle();
    drive.block();
    auto before = begin_push({.queue = "elsewhere"});
    drive.await_blocked();
    calls();
    drive.unblock();
    EXPECT_TRUE(before.get());
    settle();
  }

  result<batch_receipt> try_push_batch(batch_spec spec, wait_limits limits = {}) {
    for (job_spec& s : spec.jobs) name_kind(s);
    for (auto* const callback : {&spec.on_success, &spec.on_end, &spec.on_failure}) {
      if (*callback) name_kind(**callback);
    }
    return e().push_batch(std::move(spec), std::move(limits)).get();
  }
  batch_receipt push_batch(batch_spec spec) {
    auto pushed = try_push_batch(std::move(spec));
    EXPECT_TRUE(pushed) << (pushed ? "" : pushed.error().message);
    return pushed ? *std::move(pushed) : batch_receipt{};
  }
  batch_info batch_of(job_id id) {
    auto found = e().get_batch(id).get();
    EXPECT_TRUE(found) << (found ? "" : found.error().message);
    return found ? *std::move(found) : batch_info{};
  }
  static void name_kind(job_spec& spec) {
    if (spec.kind.empty()) spec.kind = "k";
  }

  std::vector<job> list_all(list_request request) {
    std::vector<job> all;
    for (;;) {
      auto page = e().list(request).get();
      EXPECT_TRUE(page) << (page ? "" : page.error().message);
      if (!page) return all;
      for (job& j : page->jobs) all.push_back(std::move(j));
      if (!page->cursor) return all;
      request.after = *page->cursor;
    }
  }
  void expect_counts_add_up() {
    settle();
    for (const queue_info& q : e().queues()) {
      queue_counts sum;
      for (const job& j : list_all({.queue = q.name})) {
        ++sum.of(j.state);
        if (!has_ended(j.state)) sum.bytes += weight_of(j.spec);
      }
      EXPECT_EQ(q.counts.scheduled, sum.scheduled) << q.name;
      EXPECT_EQ(q.counts.held, sum.held) << q.name;
      EXPECT_EQ(q.counts.ready, sum.ready) << q.name;
      EXPECT_EQ(q.counts.running, sum.running) << q.name;
      EXPECT_EQ(q.counts.retrying, sum.retrying) << q.name;
      EXPECT_EQ(q.counts.done, sum.done) << q.name;
      EXPECT_EQ(q.counts.dead, sum.dead) << q.name;
      EXPECT_EQ(q.counts.cancelled, sum.cancelled) << q.name;
      EXPECT_EQ(q.counts.bytes, sum.bytes) << q.name;
    }
  }

  manual_time time;
  disk drive;
  std::shared_ptr<memory_contents> contents = make_memory_contents();
  engine_options options;
  std::unique_ptr<engine> engine_;
};

template <class T>
error_code code_of(const result<T>& r) {
  EXPECT_FALSE(r) << "an error was expected";
  return r ? error_code::unavailable : r.error().code;
}

}  // namespace sluice::jobs::testing
