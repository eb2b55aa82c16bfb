#pragma once

// Adds of jobs that have a key and nothing else that is special, several with one statement, as
// plain_rows does it for those that have not even that.
//
// A job enters the line of its key at once; its row may be held back until `flush`, which must come
// before anything else that could be about the same jobs or keys.

#include <array>
#include <cstddef>

#include "jobs/store/count_deltas.hpp"
#include "jobs/store/gates.hpp"
#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

class keyed_rows {
 public:
  keyed_rows(gates& rules, count_deltas& counts) : rules_(rules), counts_(counts) {}

  static bool is_keyed_add(const change& c) noexcept;
  // A drop of a job that has its place in line, and that nothing else is special about.
  static bool is_keyed_drop(const change& c) noexcept;

  [[nodiscard]] bool prepare(connection& on);

  // Forgets what is held back: the beginning of a batch.
  void clear() noexcept { count_ = 0; }
  // Whether the row of this job is held back.
  bool has(job_id id) const noexcept;
  // False: it failed.
  [[nodiscard]] bool add(std::size_t cause, const change& c);
  [[nodiscard]] bool flush();

 private:
  static constexpr std::size_t at_once = 16;

  struct entry {
    const change* what = nullptr;
    job_state state = job_state::ready;
  };
  static void bind(statement& to, const entry& e, int after);

  gates& rules_;
  count_deltas& counts_;
  statement add_one_, add_many_;
  std::array<entry, at_once> held_{};
  std::size_t count_ = 0;
};

}  // namespace sluice::jobs::detail
