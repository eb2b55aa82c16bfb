#pragma once

// A job as a row of the table `jobs`, there and back.

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/job_columns.hpp"
#include "jobs/store/sqlite/detail/row_soundness.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

// "id, queue, ..." of the first `count`, each after `prefix`; and "?1, ?2, ...", counted on from
// `after`.
std::string column_list(std::size_t count = job_columns.size(), std::string_view prefix = "");
std::string parameter_list(std::size_t count, std::size_t after = 0);

// Whether the first plain_columns say everything about it; whether they do but for its key and its
// batch; whether the first lone_columns do, and it has no unique key.
bool is_plain(const job& j) noexcept;
bool is_plain_but_for_gates(const job& j) noexcept;
bool is_lone(const job& j) noexcept;

// Bind an INSERT of the first columns and, behind them, the checksum, to parameters that count on
// from `after`. Gated: the plain columns, key, line and batch; `as` is the state.
void bind_plain(statement& insert, const job& j, queue_number queue, int after = 0);
void bind_lone(statement& insert, const job& j, queue_number queue, int after = 0);
void bind_gated(statement& insert, const job& j, queue_number queue, job_state as, int after = 0);
inline constexpr const char* gated_columns = "key, line, batch";
inline constexpr std::size_t gated_columns_count = 3;
// What is made for a row and must outlive the next step.
struct row_texts {
  std::string errors{};
  std::string after{};
  std::string history{};
};
// Binds all of them.
void bind_job(statement& insert, const job& j, queue_number queue, row_texts& texts, int after = 0);

// Binds a payload: text if it is JSON, bytes if not.
void bind_payload(statement& to, int at, const payload& p);

// The error of a change of a job that is not there, or not as the change says. `which` is its id,
// or several of which it is one; `id` is it, or zero.
error not_as_left(const std::string& path, const char* what, const std::string& which, job_id id);

// The context for reading a job from its row: the names of queues by their numbers, from a
// connection of its own, and which rows may be without a checksum.
class queue_names {
 public:
  [[nodiscard]] bool prepare(connection& on);
  // Rows of an upgraded file, up to this job, have no checksum until they are written again.
  job_id unverified_up_to() const noexcept { return unverified_up_to_; }
  // Empty if there is no such queue, or its row is damaged. Valid until `forget`.
  result<std::string_view> name_of(queue_number number);
  void forget() { known_.clear(); }

 private:
  connection* on_ = nullptr;
  job_id unverified_up_to_ = 0;
  statement find_;
  std::unordered_map<queue_number, std::string> known_;
};

// Reads all of a job but the name of its queue. Returns false if its state is not a state, and
// leaves job::state as it was.
bool read_row(const statement& from, int first, job& j);
// Reads the job of the current row of `from`, with the columns column_list(). Sets job::is_damaged
// if the row is not sound. `as` is soundness::none also for an unknown state or queue.
result<job> read_job(const statement& from, queue_names& names, soundness& as);
// The report of a row of soundness::none; completes "job 17 ".
inline constexpr const char* unsound_row =
    "is damaged: its row is not as it was written. It is never leased, and counts in its old state "
    "until it is deleted";

}  // namespace sluice::jobs::detail
