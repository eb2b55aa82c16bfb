#pragma once

// A job as a row of the table `jobs`, there and back.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

// In the order in which bind_job and read_job count them. The first plain_columns are those of a
// job that leaves everything else as it is by default, the first lone_columns those of one that has
// to do with no other and of which no worker has said anything.
inline constexpr std::array<std::string_view, 36> job_columns = {
    "id",          "queue",        "state",         "rank",
    "turn",        "due_at",       "created_at",    "kind",
    "args",        "ended_at",     "attempts",      "run_at",
    "lease_for",   "time_limit",   "keep_for",      "retry_attempts",
    "retry_first", "retry_factor", "retry_longest", "retry_jitter",
    "unique_key",  "unique_until", "unique_for",    "metadata",
    "errors",      "result",       "key",           "line",
    "batch",       "after",        "step",          "webhook",
    "blockers",    "has_place",    "progress",      "progress_text"};
inline constexpr std::size_t plain_columns = 9;
inline constexpr std::size_t lone_columns = 24;

// "id, queue, ..." of the first `count`, each after `prefix`; and "?1, ?2, ...", counted on from
// `after`.
std::string column_list(std::size_t count = job_columns.size(), std::string_view prefix = "");
std::string parameter_list(std::size_t count, std::size_t after = 0);

// Whether the first plain_columns say everything about it; whether they do but for its key and its
// batch; whether the first lone_columns do, and it has no unique key.
bool is_plain(const job& j) noexcept;
bool is_plain_but_for_gates(const job& j) noexcept;
bool is_lone(const job& j) noexcept;

// Bind the first columns of an INSERT, to parameters that count on from `after`.
void bind_plain(statement& insert, const job& j, queue_number queue, int after = 0);
void bind_lone(statement& insert, const job& j, queue_number queue, int after = 0);
// What is made for a row and must outlive the next step.
struct row_texts {
  std::string errors{};
  std::string after{};
};
// Binds all of them.
void bind_job(statement& insert, const job& j, queue_number queue, row_texts& texts, int after = 0);

// Binds a payload: text if it is JSON, bytes if not.
void bind_payload(statement& to, int at, const payload& p);

// The error of a change of a job that is not there, or not as the change says. `which` is its id,
// or several of which it is one; `id` is it, or zero.
error not_as_left(const std::string& path, const char* what, const std::string& which, job_id id);

// Gives the names of queues by their numbers, from a connection of its own.
class queue_names {
 public:
  [[nodiscard]] bool prepare(connection& on);
  // corrupt: there is none, though a job says that it is in it.
  result<std::string_view> name_of(queue_number number);  // valid until it is forgotten
  void forget() { known_.clear(); }

 private:
  connection* on_ = nullptr;
  statement find_;
  std::unordered_map<queue_number, std::string> known_;
};

// What such a row says of a job, but for the name of its queue. False: its state is none.
bool read_row(const statement& from, int first, job& j);
// The job of the row that `from` stands at; its columns are column_list(), from `first` on.
result<job> read_job(const statement& from, queue_names& names, const std::string& path,
                     int first = 0);

}  // namespace sluice::jobs::detail
