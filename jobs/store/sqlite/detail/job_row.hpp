#pragma once

// Converts a job to a row of the table `jobs` and back.

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/job_columns.hpp"
#include "jobs/store/sqlite/detail/row_soundness.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

// Return "id, queue, ..." of the first `count` columns, each with `prefix`; and "?1, ?2, ...",
// numbered from `after` + 1.
std::string column_list(std::size_t count = job_columns.size(), std::string_view prefix = "");
std::string parameter_list(std::size_t count, std::size_t after = 0);

// True if the first plain_columns describe the job completely; with its key and batch in addition;
// if the first lone_columns describe it completely, and it has no unique key.
bool is_plain(const job& j) noexcept;
bool is_plain_but_for_gates(const job& j) noexcept;
bool is_lone(const job& j) noexcept;

// Bind an INSERT of the first columns, followed by the checksum, to parameters numbered from
// `after` + 1. Gated: the plain columns, key, line and batch; `as` is the state.
void bind_plain(statement& insert, const job& j, queue_number queue, int after = 0);
void bind_lone(statement& insert, const job& j, queue_number queue, int after = 0);
void bind_gated(statement& insert, const job& j, queue_number queue, job_state as, int after = 0);
inline constexpr const char* gated_columns = "key, line, batch";
inline constexpr std::size_t gated_columns_count = 3;
// Texts of a row that must outlive the next step.
struct row_texts {
  std::string errors{};
  std::string after{};
  std::string history{};
};
// Binds all columns.
void bind_job(statement& insert, const job& j, queue_number queue, row_texts& texts, int after = 0);

// Binds a payload: JSON as text, other data as bytes.
void bind_payload(statement& target, int at, const payload& p);

// Returns the error of a change whose job is missing or does not match the change. `name` is the id
// in the message; `id` is error::job, zero if the job is not known for certain.
error changed_elsewhere(const std::string& path, const char* done_to, const std::string& name,
                        job_id id);

// The context for reading jobs from rows: the names of queues by number, read through a connection,
// and the rows that may have no checksum.
class queue_names {
 public:
  [[nodiscard]] bool prepare(connection& on);
  // Rows of an upgraded file, up to this job, have no checksum until they are next written.
  job_id unverified_up_to() const noexcept { return unverified_up_to_; }
  // Returns an empty name if the queue does not exist or its row is damaged. Valid until `forget`.
  result<std::string_view> name_of(queue_number number);
  void forget() { known_.clear(); }

 private:
  connection* on_ = nullptr;
  job_id unverified_up_to_ = 0;
  statement find_;
  std::unordered_map<queue_number, std::string> known_;
};

// Reads a job without the name of its queue. Returns false if its state is invalid, and leaves
// job::state unchanged.
bool read_row(const statement& from, int first, job& j);
// Reads the job of the current row of `from`, with the columns column_list(). Sets job::is_damaged
// if the row is not sound. `as` is soundness::none also for an unknown state or queue.
result<job> read_job(const statement& from, queue_names& names, soundness& as);
// The report of a row of soundness::none; completes "job 17 ".
inline constexpr const char* unsound_row =
    "is damaged: its row is not as it was written. It is never leased, and counts in its old state "
    "until it is deleted";

}  // namespace sluice::jobs::detail
