#pragma once

// Adds of jobs with a key or a batch and no other relations, several per statement; lone_rows adds
// jobs without either.
//
// A job enters the line of its key and is counted in its batch at once; its row may be buffered
// until `flush`, which must be called before any other access to the same jobs or keys.

#include <array>
#include <cstddef>

#include "jobs/store/count_deltas.hpp"
#include "jobs/store/gates.hpp"
#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/row_inserts.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

class gated_rows {
 public:
  gated_rows(gates& rules, count_deltas& counts) : rules_(rules), counts_(counts) {}

  // True for an add that can be buffered here if it has no conflict.
  static bool is_gated_add(const change& c) noexcept;
  // True for such an add that cannot conflict: it has no group and no batch.
  static bool is_keyed_add(const change& c) noexcept;
  // True for a drop of a job with a place in a line and no other relations.
  static bool is_keyed_drop(const change& c) noexcept;
  // True for a drop of a job of a batch without other relations.
  static bool is_batch_job_drop(const change& c) noexcept;

  [[nodiscard]] bool prepare(connection& on);

  // Discards the buffer, at the start of a transaction.
  void clear() noexcept { count_ = 0; }
  // True if the row of this job is buffered.
  bool has(job_id id) const noexcept;
  // Return false on failure.
  [[nodiscard]] bool add(std::size_t cause, const change& c);
  [[nodiscard]] bool flush();

 private:
  static constexpr std::size_t at_once = row_inserts::at_once;

  struct entry {
    const change* add = nullptr;
    job_state state = job_state::ready;
  };

  gates& rules_;
  count_deltas& counts_;
  row_inserts add_;
  std::array<entry, at_once> held_{};
  std::size_t count_ = 0;
};

}  // namespace sluice::jobs::detail
