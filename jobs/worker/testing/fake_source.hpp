#pragma once

// A job source for tests: serves the jobs that the test offers and records the worker's calls.
//
//     fake_source source(time);
//     const job_id id = source.offer({.kind = "mail"});
//     ...
//     eventually([&] { return source.ended(id) == "acked"; });

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobs/worker/work_source.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::testing {

// The end of a job as the worker reported it.
struct end_call {
  std::string outcome;  // "acked", "failed", "released"
  std::optional<payload> value{};
  failure why{};
  give_back options{};
};

struct waiting_lease {
  std::size_t max = 0;
  milliseconds lease_for{0};
  promise<result<std::vector<leased_job>>> answer;
  future<void> deadline;
  std::optional<std::stop_callback<unique_function<void()>>> on_stop;
};

// At namespace scope: clang does not default-construct it as a nested class there.
struct fake_state {
  job_id last_id = 0;
  std::deque<job_ptr> ready;
  std::optional<std::shared_ptr<waiting_lease>> waiting;
  std::map<job_id, bool> leased;
  std::map<job_id, bool> cancelled;
  std::map<job_id, std::vector<end_call>> ends;
  std::optional<error> broken;
  std::optional<error> refusal;
  bool holds_acks = false;
  bool holds_extensions = false;
  bool races = false;
  std::vector<std::pair<promise<std::vector<void_result>>, std::vector<ack_item>>> held_acks;
  std::vector<std::pair<promise<result<extension>>, extension>> held_extensions;
  std::vector<std::size_t> ack_calls;
  std::map<job_id, std::vector<progress>> reports;
  std::map<job_id, std::vector<std::vector<std::string>>> logs;  // call by call
  bool holds_notes = false;
  std::vector<promise<void_result>> held_notes;
  std::size_t leases_asked = 0, extensions = 0, most_asked = 0;
};

class fake_source final : public work_source {
 public:
  using leases = result<std::vector<leased_job>>;
  using ack_results = std::vector<void_result>;

  explicit fake_source(time_source& time) : time_(time) {}

  // ---- control by the test

  job_id offer(job_spec spec) {
    auto made = std::make_shared<job>();
    auto held = state_.lock();
    made->id = ++held->last_id;
    made->spec = std::move(spec);
    held->ready.push_back(made);
    const job_id id = made->id;
    serve(*held);
    return id;
  }
  // Every call fails with this error until break_down({}).
  void break_down(std::optional<error> why) {
    auto held = state_.lock();
    held->broken = std::move(why);
    if (held->broken) answer_waiting(*held, *held->broken);
  }
  // The next extension of this job reports its cancellation, or fails with lease_lost.
  void cancel(job_id id) { state_.lock()->cancelled[id] = true; }
  void lose(job_id id) { state_.lock()->leased.erase(id); }
  // Acks get no reply until `answer_acks`.
  void hold_acks() { state_.lock()->holds_acks = true; }
  void answer_acks() {
    auto held = state_.lock();
    held->holds_acks = false;
    for (auto& [answer, items] : std::exchange(held->held_acks, {})) {
      answer.set_value(take_acks(*held, items));
    }
  }
  // Extensions are made but get no reply until `answer_extensions`.
  void hold_extensions() { state_.lock()->holds_extensions = true; }
  void answer_extensions() {
    auto held = state_.lock();
    held->holds_extensions = false;
    for (auto& [reply, made] : std::exchange(held->held_extensions, {})) reply.set_value(made);
  }
  // Reports and logs are recorded but get no reply until `answer_notes`.
  void hold_notes() { state_.lock()->holds_notes = true; }
  void answer_notes() {
    auto held = state_.lock();
    held->holds_notes = false;
    for (auto& answer : std::exchange(held->held_notes, {})) answer.set_value(done{});
  }
  // The next ack fails with this error.
  void refuse_ack(error why) { state_.lock()->refusal = std::move(why); }
  // A stopped lease call returns a job all the same, like a reply that was already on its way.
  void race_stopped_leases() { state_.lock()->races = true; }

  // ---- recorded calls

  // Returns an empty string if the end of the job has not been reported.
  std::string ended(job_id id) const {
    const auto held = state_.lock();
    const auto found = held->ends.find(id);
    return found == held->ends.end() ? "" : found->second.back().outcome;
  }
  end_call last_end(job_id id) const { return state_.lock()->ends.at(id).back(); }
  std::size_t end_count(job_id id) const {
    const auto held = state_.lock();
    const auto found = held->ends.find(id);
    return found == held->ends.end() ? 0 : found->second.size();
  }
  std::vector<progress> reports(job_id id) const { return state_.lock()->reports[id]; }
  std::vector<std::vector<std::string>> logs(job_id id) const { return state_.lock()->logs[id]; }
  std::size_t ended_jobs() const { return state_.lock()->ends.size(); }
  std::size_t leases_asked() const { return state_.lock()->leases_asked; }
  std::size_t extensions() const { return state_.lock()->extensions; }
  std::size_t most_asked() const { return state_.lock()->most_asked; }
  bool has_waiting_lease() const { return state_.lock()->waiting.has_value(); }
  std::vector<std::size_t> ack_calls() const { return state_.lock()->ack_calls; }

  // ---- the port

  future<leases> lease(lease_request request, wait_limits limits) override {
    auto held = state_.lock();
    ++held->leases_asked;
    held->most_asked = std::max(held->most_asked, request.max);
    if (held->broken) return make_ready_future<leases>(*held->broken);
    auto call = std::make_shared<waiting_lease>();
    call->max = request.max;
    call->lease_for = request.lease_for;
    auto answer = call->answer.get_future();
    held->waiting = call;
    serve(*held);
    if (!held->waiting) return answer;
    call->deadline = after(limits.deadline).then([this, call] {
      end(call, {error_code::timed_out, "no job"});
    });
    // The lock is released first: the stop callback may run at once, on this thread.
    auto token = limits.stop;
    { auto unlock = std::move(held); }
    call->on_stop.emplace(token, [this, call = std::weak_ptr(call)] {
      if (const auto still = call.lock()) end(still, {error_code::stopped, "stopped"});
    });
    return answer;
  }

  future<result<extension>> extend(lease_ref lease, milliseconds by) override {
    using answer = result<extension>;
    auto held = state_.lock();
    ++held->extensions;
    if (held->broken) return make_ready_future<answer>(*held->broken);
    if (!held->leased.contains(lease.job)) return make_ready_future<answer>(lost());
    const auto lasts = by > milliseconds(0) ? by : milliseconds(60'000);
    const extension made{.until = time_.now() + lasts, .cancelled = held->cancelled[lease.job]};
    if (!held->holds_extensions) return make_ready_future<answer>(made);
    promise<answer> p;
    auto later = p.get_future();
    held->held_extensions.emplace_back(std::move(p), made);
    return later;
  }

  future<void_result> report(lease_ref lease, progress update) override {
    auto held = state_.lock();
    if (held->broken) return make_ready_future<void_result>(*held->broken);
    if (!held->leased.contains(lease.job)) return make_ready_future<void_result>(lost());
    held->reports[lease.job].push_back(std::move(update));
    return notes_reply(*held);
  }

  future<void_result> log(lease_ref lease, std::vector<std::string> lines) override {
    auto held = state_.lock();
    if (held->broken) return make_ready_future<void_result>(*held->broken);
    if (!held->leased.contains(lease.job)) return make_ready_future<void_result>(lost());
    held->logs[lease.job].push_back(std::move(lines));
    return notes_reply(*held);
  }

  future<ack_results> ack_many(std::vector<ack_item> items) override {
    auto held = state_.lock();
    held->ack_calls.push_back(items.size());
    if (held->holds_acks) {
      promise<ack_results> p;
      auto answer = p.get_future();
      held->held_acks.emplace_back(std::move(p), std::move(items));
      return answer;
    }
    return make_ready_future<ack_results>(take_acks(*held, items));
  }

  future<result<fail_receipt>> fail(lease_ref lease, failure why) override {
    using answer = result<fail_receipt>;
    auto held = state_.lock();
    if (held->broken) return make_ready_future<answer>(*held->broken);
    if (held->leased.erase(lease.job) == 0) return make_ready_future<answer>(lost());
    held->ends[lease.job].push_back({.outcome = "failed", .why = std::move(why)});
    return make_ready_future<answer>(fail_receipt{});
  }

  future<void_result> release(lease_ref lease, give_back options) override {
    auto held = state_.lock();
    if (held->broken) return make_ready_future<void_result>(*held->broken);
    if (held->leased.erase(lease.job) == 0) return make_ready_future<void_result>(lost());
    held->ends[lease.job].push_back({.outcome = "released", .options = options});
    return make_ready_future<void_result>(done{});
  }

 private:
  static error lost() { return {error_code::lease_lost, "the lease is lost"}; }

  static future<void_result> notes_reply(fake_state& s) {
    if (!s.holds_notes) return make_ready_future<void_result>(done{});
    return s.held_notes.emplace_back().get_future();
  }

  std::vector<leased_job> take_ready(fake_state& s, std::size_t max, milliseconds lease_for) {
    std::vector<leased_job> jobs;
    while (!s.ready.empty() && jobs.size() < max) {
      const job_ptr next = s.ready.front();
      s.ready.pop_front();
      s.leased[next->id] = true;
      const auto lasts = lease_for > milliseconds(0)              ? lease_for
                         : next->spec.lease_for > milliseconds(0) ? next->spec.lease_for
                                                                  : milliseconds(60'000);
      jobs.push_back({next, next->id, 1, time_.now() + lasts});
    }
    return jobs;
  }

  static std::shared_ptr<waiting_lease> take_waiting(fake_state& s) {
    auto call = *std::exchange(s.waiting, std::nullopt);
    if (call->deadline.valid()) call->deadline.cancel();
    return call;
  }

  void serve(fake_state& s) {
    if (!s.waiting || s.ready.empty()) return;
    const auto call = take_waiting(s);
    call->answer.set_value(take_ready(s, call->max, call->lease_for));
  }

  void answer_waiting(fake_state& s, const error& why) {
    if (s.waiting) take_waiting(s)->answer.set_value(why);
  }

  void end(const std::shared_ptr<waiting_lease>& call, const error& why) {
    auto held = state_.lock();
    if (held->waiting != call) return;
    (void)take_waiting(*held);
    if (held->races) {
      held->ready.push_back(
          std::make_shared<job>(job{.id = ++held->last_id, .spec = {.kind = "late"}}));
      call->answer.set_value(take_ready(*held, call->max, call->lease_for));
      return;
    }
    call->answer.set_value(why);
  }

  ack_results take_acks(fake_state& s, const std::vector<ack_item>& items) {
    ack_results results;
    for (const ack_item& item : items) {
      if (s.broken) {
        results.emplace_back(*s.broken);
      } else if (s.refusal) {
        results.emplace_back(*std::exchange(s.refusal, std::nullopt));
      } else if (s.leased.erase(item.lease.job) == 0) {
        results.emplace_back(lost());
      } else {
        s.ends[item.lease.job].push_back({.outcome = "acked", .value = item.result});
        results.emplace_back(done{});
      }
    }
    return results;
  }

  time_source& time_;
  mutable guarded<fake_state> state_;
};

}  // namespace sluice::jobs::testing
