#pragma once

// The data of a memory store, with the indexes for the calls of a store.
//
// Not thread-safe: protected by the lock of memory_store.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jobs/store/gates.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

inline constexpr const char* memory_store_object = "sluice::jobs::memory_store";

class memory_state final : private gate_rows {
 public:
  applied apply(const transaction& t);

  store::contents load() const;
  std::vector<job_ptr> ready_after(queue_number queue, position after, page_limit limit) const;
  due_page due(unix_time now, std::size_t limit) const;
  timed_page timed_after(queue_number queue, due_place after, std::size_t limit) const;
  std::vector<job_ptr> victims(queue_number queue, victim which, std::size_t limit,
                               const std::function<bool(job_id)>& skip) const;
  std::optional<job> get(job_id id) const;
  job_page list(const job_filter& filter, job_id after, std::size_t limit) const;
  std::optional<batch_info> get_batch(job_id id) const;
  batch_page list_batches(job_id after, std::size_t limit) const;
  log_page logs(job_id id, std::uint64_t after, std::size_t limit) const;

 private:
  struct kept_job {
    job_ptr job;
    queue_number queue = 0;
  };
  struct kept_queue {
    std::string name;
    queue_options options;
    queue_counts counts;
    std::map<position, job_id> ready;
  };
  struct kept_key {
    job_id holder = 0;
    std::optional<unix_time> expires;
  };
  using key_name = std::pair<queue_number, std::string>;

  kept_queue& queue_of(queue_number number);
  kept_job& job_of(const change& c);

  // Returns the holder of the unique key of `c`, or zero.
  job_id holder_for(const change& c, unix_time now) const;
  std::size_t add_group(const transaction& t, std::size_t first, std::vector<conflict>& conflicts);
  bool apply_one(std::size_t cause, const change& c);
  bool add(std::size_t cause, const change& c);
  bool move(std::size_t cause, const change& c);
  bool drop(std::size_t cause, const change& c);
  void take_key(const change& c);
  void free_key(queue_number queue, const job& j);
  void forget_expired_keys(unix_time now);
  void add_logs(const change& c);
  void count(queue_number queue, std::optional<job_state> from, std::optional<job_state> new_state,
             std::uint64_t weight);
  void enlist(const kept_job& k);  // into the indexes of its state
  void delist(const kept_job& k);
  void erase(job_id id);  // with its lease, logs and dependencies

  // gate_rows
  bool enter_line(line_number line, std::uint32_t slots, bool& is_active) override;
  bool leave_line(line_number line, bool was_active, line_counts& left) override;
  bool move_up(line_number line) override;
  bool first_in_line(line_number line, placed_job& first) override;
  bool correct_line(line_number line, line_counts now) override;
  std::uint32_t slots_of(queue_number queue) override;
  bool may_be_waited_for(job_id on) override;
  bool edges_on(job_id on, std::vector<edge>& all) override;
  bool add_edge(job_id on, edge e) override;
  bool drop_edge(job_id on, edge e) override;
  bool state_of(job_id id, std::optional<job_state>& state) override;
  bool read_job(job_id id, placed_job& found) override;
  bool place(const placed_job& changed, job_state from) override;
  bool forget(const placed_job& gone) override;
  bool read_batch(job_id id, std::optional<batch_info>& found, bool& is_damaged) override;
  bool write_batch(const batch_info& b) override;
  bool forget_batch(job_id id) override;

  std::map<job_id, kept_job> jobs_;
  std::map<queue_number, kept_queue> queues_;
  std::set<std::pair<unix_time, job_id>> due_;
  std::map<key_name, kept_key> keys_;
  std::set<std::pair<unix_time, key_name>> expiring_;
  std::map<job_id, std::pair<queue_number, change::lease_record>> leases_;
  std::map<job_id, std::vector<log_line>> logs_;
  std::map<std::string, cron_entry> crons_;
  std::uint64_t ids_up_to_ = 0;

  gates gates_{*this};
  std::unordered_map<line_number, line_counts> lines_;
  std::set<std::tuple<line_number, std::uint64_t, job_id>> in_line_;  // waiting jobs, by turn
  std::set<std::tuple<job_id, job_id, after_when>> edges_;            // dependency, waiting job
  std::set<std::tuple<job_id, job_id, after_when>> edges_by_job_;     // waiting job, dependency
  std::map<job_id, batch_info> batches_;
  std::set<std::pair<unix_time, job_id>> due_batches_;
};

}  // namespace sluice::jobs::detail
