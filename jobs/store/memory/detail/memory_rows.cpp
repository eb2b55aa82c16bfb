// The rows of a memory store for the rules of gates.hpp. These functions cannot fail.

#include <memory>

#include "jobs/store/memory/detail/memory_state.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::detail {

bool memory_state::enter_line(line_number line, std::uint32_t slots, bool& is_active) {
  line_counts& now = lines_[line];
  is_active = now.active < slots && now.waiting == 0;
  ++(is_active ? now.active : now.waiting);
  return true;
}

bool memory_state::leave_line(line_number line, bool was_active, line_counts& left) {
  const auto at = lines_.find(line);
  check(at != lines_.end(), memory_store_object, "a line that the job is in");
  std::uint32_t& of = was_active ? at->second.active : at->second.waiting;
  check(of > 0, memory_store_object, "a line that the job is in");
  --of;
  left = at->second;
  if (left.active == 0 && left.waiting == 0) lines_.erase(at);
  return true;
}

bool memory_state::move_up(line_number line) {
  line_counts& now = lines_[line];
  check(now.waiting > 0, memory_store_object, "a line with a waiting job");
  --now.waiting;
  ++now.active;
  return true;
}

bool memory_state::first_in_line(line_number line, placed_job& first) {
  const auto at = in_line_.lower_bound({line, 0, 0});
  const bool is_empty = at == in_line_.end() || std::get<0>(*at) != line;
  return read_job(is_empty ? 0 : std::get<2>(*at), first);
}

bool memory_state::correct_line(line_number, line_counts) {
  check(false, memory_store_object, "counts that match the jobs");
  return false;
}

std::uint32_t memory_state::slots_of(queue_number queue) {
  return queue_of(queue).options.key_concurrency;
}

bool memory_state::may_be_waited_for(job_id on) {
  const auto at = edges_.lower_bound({on, 0, after_when::success});
  return at != edges_.end() && std::get<0>(*at) == on;
}

bool memory_state::edges_on(job_id on, std::vector<edge>& all) {
  for (auto at = edges_.lower_bound({on, 0, after_when::success});
       at != edges_.end() && std::get<0>(*at) == on; ++at) {
    all.push_back({std::get<1>(*at), std::get<2>(*at)});
  }
  return true;
}

bool memory_state::add_edge(job_id on, edge e) {
  edges_.emplace(on, e.job, e.when);
  edges_by_job_.emplace(e.job, on, e.when);
  return true;
}

bool memory_state::drop_edge(job_id on, edge e) {
  edges_.erase({on, e.job, e.when});
  edges_by_job_.erase({e.job, on, e.when});
  return true;
}

bool memory_state::state_of(job_id id, std::optional<job_state>& state) {
  const auto at = jobs_.find(id);
  state = at == jobs_.end() ? std::nullopt : std::optional(at->second.job->state);
  return true;
}

bool memory_state::read_job(job_id id, placed_job& found) {
  found = {};
  if (const auto at = jobs_.find(id); at != jobs_.end()) {
    found = {std::make_shared<job>(*at->second.job), at->second.queue};
  }
  return true;
}

bool memory_state::place(const placed_job& changed, job_state from) {
  kept_job& kept = jobs_.at(changed.job->id);
  delist(kept);
  kept.job = changed.job;
  enlist(kept);
  count(kept.queue, from, kept.job->state, weight_of(kept.job->spec));
  return true;
}

bool memory_state::forget(const placed_job& gone) {
  const kept_job kept = jobs_.at(gone.job->id);
  delist(kept);
  erase(gone.job->id);
  count(kept.queue, kept.job->state, std::nullopt, weight_of(kept.job->spec));
  free_key(kept.queue, *kept.job);
  return true;
}

bool memory_state::read_batch(job_id id, std::optional<batch_info>& found, bool&) {
  found = get_batch(id);
  return true;
}

bool memory_state::write_batch(const batch_info& b) {
  forget_batch(b.id);
  batches_[b.id] = b;
  if (b.due_at != unix_time{}) due_batches_.emplace(b.due_at, b.id);
  return true;
}

bool memory_state::forget_batch(job_id id) {
  const auto at = batches_.find(id);
  if (at == batches_.end()) return true;
  due_batches_.erase({at->second.due_at, id});
  batches_.erase(at);
  return true;
}

}  // namespace sluice::jobs::detail
