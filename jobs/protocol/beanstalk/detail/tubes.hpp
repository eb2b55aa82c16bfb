#pragma once

// Counters of tubes and jobs that the engine does not have: users and watchers of a tube, pauses,
// releases and kicks of a job.
//
// In memory, since the start, and bounded: when there are too many tubes, unreferenced ones are
// dropped; of job notes the newest are kept. Any thread may call any function; counts are relaxed
// throughout: they order nothing.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jobs/model/job.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::beanstalk {

struct tube {
  explicit tube(std::string tube_name) : name(std::move(tube_name)) {}

  const std::string name;  // also the name of the queue
  atomic<std::uint64_t> using_now{0}, watching{0}, waiting{0};
  atomic<std::uint64_t> total_jobs{0}, deletes{0}, pauses{0};
  atomic<std::uint64_t> pause_seconds{0};  // of the last pause-tube
};
using tube_ptr = std::shared_ptr<tube>;

class tube_table {
 public:
  explicit tube_table(std::size_t most = 100'000) : most_(most) {}

  // Returns the tube, creating it if necessary; null: too many tubes.
  tube_ptr get(std::string_view queue);
  tube_ptr find(std::string_view queue) const;
  // Returns the tubes that a client uses or watches.
  std::vector<tube_ptr> in_use() const;
  std::size_t size() const;

 private:
  using map = std::unordered_map<std::string_view, tube_ptr>;  // a key is its tube's own name

  const std::size_t most_;
  guarded<map> tubes_;
};

// Events of a job that the engine does not store.
struct job_note {
  std::uint64_t releases = 0;
  std::uint64_t kicks = 0;    // while it was delayed
  std::uint64_t taken = 0;    // by reserve-job, while it was buried
  std::uint32_t delay_s = 0;  // of its last release
};

class job_notes {
 public:
  explicit job_notes(std::size_t most = 100'000) : most_(most) {}

  void released(job_id id, std::uint32_t delay_s);
  void kicked(job_id id) { kicked(std::span(&id, 1)); }
  void kicked(std::span<const job_id> ids);
  void taken_buried(job_id id);
  std::optional<job_note> find(job_id id) const;

 private:
  struct kept {
    std::unordered_map<job_id, job_note> notes;
    std::deque<job_id> order;  // the oldest first
  };
  job_note& note_of(kept& k, job_id id);

  const std::size_t most_;
  guarded<kept> kept_;
};

}  // namespace sluice::jobs::beanstalk
