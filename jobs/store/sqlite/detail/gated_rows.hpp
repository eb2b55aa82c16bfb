#pragma once

// Adds of jobs that have a key or a batch and nothing else that is special, several with one
// statement, as lone_rows does it for those that have neither.
//
// A job enters the line of its key and is counted in its batch at once; its row may be held back
// until `flush`, which must come before anything else that could be about the same jobs or keys.

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

  // An add that goes this way, once it is known that nothing refuses it.
  static bool is_gated_add(const change& c) noexcept;
  // One that nothing can refuse: it stands alone and has no batch.
  static bool is_keyed_add(const change& c) noexcept;
  // A drop of a job that has its place in line, and that nothing else is special about.
  static bool is_keyed_drop(const change& c) noexcept;
  // A drop of a job that is in a batch, and that nothing else is special about.
  static bool is_batched_drop(const change& c) noexcept;

  [[nodiscard]] bool prepare(connection& on);

  // Forgets what is held back: the beginning of a batch.
  void clear() noexcept { count_ = 0; }
  // Whether the row of this job is held back.
  bool has(job_id id) const noexcept;
  // False: it failed.
  [[nodiscard]] bool add(std::size_t cause, const change& c);
  [[nodiscard]] bool flush();

 private:
  static constexpr std::size_t at_once = row_inserts::at_once;

  struct entry {
    const change* what = nullptr;
    job_state state = job_state::ready;
  };

  gates& rules_;
  count_deltas& counts_;
  row_inserts add_;
  std::array<entry, at_once> held_{};
  std::size_t count_ = 0;
};

}  // namespace sluice::jobs::detail
