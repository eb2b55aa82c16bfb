#include "jobs/store/sqlite/detail/job_row.hpp"

#include <optional>
#include <utility>

#include "jobs/store/gates.hpp"
#include "jobs/store/sqlite/detail/after_json.hpp"
#include "jobs/store/sqlite/detail/errors_json.hpp"
#include "jobs/store/sqlite/detail/history_json.hpp"
#include "jobs/store/sqlite/detail/settings_rows.hpp"

namespace sluice::jobs::detail {
namespace {

constexpr std::array<std::pair<unique_until, std::string_view>, 3> until_words = {{
    {unique_until::started, "started"},
    {unique_until::done, "done"},
    {unique_until::elapsed, "elapsed"},
}};

std::string_view word_of(unique_until until) {
  for (const auto& [known, word] : until_words) {
    if (known == until) return word;
  }
  return "done";
}

unique_until until_from(std::string_view word) {
  for (const auto& [until, known] : until_words) {
    if (known == word) return until;
  }
  return unique_until::done;
}

// Binds columns to parameters that count on from `after`, and adds them to the checksum;
// defaults are NULL.
class row_binder {
 public:
  row_binder(statement& to, int after) : to_(to), after_(after) {}

  void value(job_column at, std::int64_t value) {
    sum_.number(at, value, group_of(at));
    to_.number(parameter(at), value);
  }
  void null(job_column at) { to_.null(parameter(at)); }
  void number(job_column at, std::int64_t value, std::int64_t otherwise = 0) {
    value == otherwise ? null(at) : this->value(at, value);
  }
  void time(job_column at, unix_time t) { number(at, t.ms); }
  void duration(job_column at, milliseconds d, milliseconds otherwise) {
    number(at, d.count(), otherwise.count());
  }
  void real_value(job_column at, double value) {
    sum_.real(at, value, group_of(at));
    to_.real(parameter(at), value);
  }
  void real(job_column at, double value, double otherwise) {
    value == otherwise ? null(at) : real_value(at, value);
  }
  void text_value(job_column at, std::string_view value) {
    add(at, value, false);
    to_.text(parameter(at), value);
  }
  void text(job_column at, std::string_view value) {
    value.empty() ? null(at) : text_value(at, value);
  }
  void content_value(job_column at, const payload& p) {
    add(at, p.data, p.type == content_type::bytes);
    bind_payload(to_, parameter(at), p);
  }
  void content(job_column at, const std::optional<payload>& p) {
    p ? content_value(at, *p) : null(at);
  }
  // Columns that are not bound in their place come next, at this parameter.
  void skip_to(job_column at, int parameter) { after_ = parameter - at - 1; }
  // The checksum of all that was bound, at the parameter behind the last.
  void checksum(int parameter) {
    sum_.number(weighed_bytes, weighed_);
    to_.number(parameter, sum_.value());
  }
  int parameter(job_column at) const { return after_ + at + 1; }

 private:
  void add(job_column at, std::string_view value, bool is_bytes) {
    sum_.text(at, value, is_bytes, group_of(at));
    if (is_weighed(at)) weighed_ += static_cast<std::int64_t>(value.size());
  }

  statement& to_;
  int after_;
  row_checksum sum_;
  std::int64_t weighed_ = 0;
};

void bind_retry(row_binder& to, const retry_policy& r) {
  const retry_policy otherwise;
  to.number(c_retry_attempts, r.attempts_max, otherwise.attempts_max);
  to.duration(c_retry_first, r.first, otherwise.first);
  to.duration(c_retry_longest, r.longest, otherwise.longest);
  to.real(c_retry_factor, r.factor, otherwise.factor);
  to.real(c_retry_jitter, r.jitter, otherwise.jitter);
}

void bind_unique(row_binder& to, const unique_key& u) {
  const unique_key otherwise;
  to.text(c_unique_key, u.key);
  to.text(c_unique_until, u.until == otherwise.until ? std::string_view() : word_of(u.until));
  to.duration(c_unique_for, u.lasts, otherwise.lasts);
}

void bind_gates(row_binder& to, const job_spec& s, queue_number queue) {
  to.text(c_key, s.key);
  s.key.empty() ? to.null(c_line) : to.value(c_line, line_of(queue, s.key));
  to.number(c_batch, signed_of(s.batch));
}

// Keys, dependencies, batches, and what a worker says of it.
void bind_waiting(row_binder& to, const job& j, queue_number queue, std::string& after) {
  const job_spec& s = j.spec;
  bind_gates(to, s, queue);
  if (!s.after.empty()) after = after_to_json(s.after);
  to.text(c_after, s.after.empty() ? std::string_view() : std::string_view(after));
  to.text(c_step, s.step);
  to.text(c_webhook, s.webhook);
  to.number(c_blockers, j.blockers);
  to.number(c_has_place, j.has_place ? 1 : 0);
  if (j.progress) {
    to.real_value(c_progress, j.progress->percent);
    to.text_value(c_progress_text, j.progress->text);
  } else {
    to.null(c_progress);
    to.null(c_progress_text);
  }
}

// Reads the columns of one row; what is NULL stays as it is.
class row {
 public:
  row(const statement& from, int first) : from_(from), first_(first) {}

  std::int64_t number(job_column at) const { return from_.number(first_ + at); }
  std::string string(job_column at) const { return from_.string(first_ + at); }
  std::string_view view(job_column at) const { return from_.view(first_ + at); }
  bool has(job_column at) const { return !from_.is_null(first_ + at); }

  void time(job_column at, unix_time& t) const { t.ms = number(at); }  // NULL is zero
  void duration(job_column at, milliseconds& d) const {
    if (has(at)) d = milliseconds(number(at));
  }
  void real(job_column at, double& d) const {
    if (has(at)) d = from_.real(first_ + at);
  }
  payload content(job_column at) const {
    return {string(at), from_.is_bytes(first_ + at) ? content_type::bytes : content_type::json};
  }

 private:
  const statement& from_;
  int first_;
};

void read_retry(const row& r, retry_policy& retry) {
  if (r.has(c_retry_attempts)) {
    retry.attempts_max = static_cast<std::uint32_t>(r.number(c_retry_attempts));
  }
  r.duration(c_retry_first, retry.first);
  r.duration(c_retry_longest, retry.longest);
  r.real(c_retry_factor, retry.factor);
  r.real(c_retry_jitter, retry.jitter);
}

void read_unique(const row& r, unique_key& unique) {
  unique.key = r.string(c_unique_key);
  if (r.has(c_unique_until)) unique.until = until_from(r.view(c_unique_until));
  r.duration(c_unique_for, unique.lasts);
}

// Nothing of it is in a column behind those of a lone job, but for its key and its batch, and it
// has no unique key.
bool is_untouched(const job& j) {
  static const unique_key unique;
  const job_spec& s = j.spec;
  return j.errors.empty() && j.history.empty() && !j.result && s.unique == unique &&
         s.after.empty() && s.step.empty() && s.webhook.empty() && !j.progress && j.blockers == 0 &&
         !j.has_place;
}

bool is_state(std::int64_t number) {
  return number >= 0 && number <= 255 && to_string(static_cast<job_state>(number)) != "unknown" &&
         static_cast<job_state>(number) != job_state::running;
}

}  // namespace

std::string column_list(std::size_t count, std::string_view prefix) {
  std::string list;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) list += ", ";
    list += prefix;
    list += job_columns[i];
  }
  return list;
}

std::string parameter_list(std::size_t count, std::size_t after) {
  std::string list;
  for (std::size_t i = 1; i <= count; ++i) {
    list += (i > 1 ? ", ?" : "?") + std::to_string(after + i);
  }
  return list;
}

bool is_plain_but_for_gates(const job& j) noexcept {
  static const retry_policy retry;
  const job_spec& s = j.spec;
  return is_untouched(j) && j.attempts == 0 && j.ended_at == unix_time{} &&
         s.run_at == unix_time{} && s.lease_for.count() == 0 && s.time_limit.count() == 0 &&
         !s.keep_for && s.metadata.empty() && s.retry == retry;
}

bool is_plain(const job& j) noexcept {
  return j.spec.key.empty() && j.spec.batch == 0 && is_plain_but_for_gates(j);
}

bool is_lone(const job& j) noexcept {
  return j.spec.key.empty() && j.spec.batch == 0 && is_untouched(j);
}

namespace {

void bind_plain_columns(row_binder& to, const job& j, queue_number queue, job_state as) {
  to.value(c_id, signed_of(j.id));
  to.value(c_queue, queue);
  to.value(c_state, static_cast<std::int64_t>(as));
  to.value(c_rank, -j.spec.priority);
  to.value(c_turn, signed_of(j.turn));
  to.time(c_due_at, j.due_at);
  to.value(c_created_at, j.created_at.ms);
  to.text_value(c_kind, j.spec.kind);
  to.content_value(c_args, j.spec.args);
}

void bind_lone_columns(row_binder& to, const job& j, queue_number queue) {
  const job_spec& s = j.spec;
  bind_plain_columns(to, j, queue, j.state);
  to.time(c_ended_at, j.ended_at);
  to.number(c_attempts, j.attempts);
  to.time(c_run_at, s.run_at);
  to.duration(c_lease_for, s.lease_for, milliseconds(0));
  to.duration(c_time_limit, s.time_limit, milliseconds(0));
  s.keep_for ? to.value(c_keep_for, s.keep_for->count()) : to.null(c_keep_for);
  bind_retry(to, s.retry);
  bind_unique(to, s.unique);
  to.text(c_metadata, s.metadata);
}

}  // namespace

void bind_plain(statement& insert, const job& j, queue_number queue, int after) {
  row_binder to(insert, after);
  bind_plain_columns(to, j, queue, j.state);
  to.checksum(after + static_cast<int>(plain_columns) + 1);
}

void bind_lone(statement& insert, const job& j, queue_number queue, int after) {
  row_binder to(insert, after);
  bind_lone_columns(to, j, queue);
  to.checksum(after + static_cast<int>(lone_columns) + 1);
}

void bind_gated(statement& insert, const job& j, queue_number queue, job_state as, int after) {
  row_binder to(insert, after);
  bind_plain_columns(to, j, queue, as);
  const int next = after + static_cast<int>(plain_columns) + 1;
  to.skip_to(c_key, next);
  bind_gates(to, j.spec, queue);
  to.checksum(next + static_cast<int>(gated_columns_count));
}

void bind_job(statement& insert, const job& j, queue_number queue, row_texts& texts, int after) {
  row_binder to(insert, after);
  bind_lone_columns(to, j, queue);
  if (!j.errors.empty()) texts.errors = errors_to_json(j.errors);
  to.text(c_errors, j.errors.empty() ? std::string_view() : std::string_view(texts.errors));
  to.content(c_result, j.result);
  bind_waiting(to, j, queue, texts.after);
  if (!j.history.empty()) texts.history = history_to_json(j.history);
  to.text(c_history, j.history.empty() ? std::string_view() : std::string_view(texts.history));
  to.checksum(to.parameter(c_checksum));
}

void bind_payload(statement& to, int at, const payload& p) {
  p.type == content_type::json ? to.text(at, p.data) : to.bytes(at, p.data);
}

error not_as_left(const std::string& path, const char* what, const std::string& which, job_id id) {
  return {error_code::corrupt,
          path + ": job " + which + " was to be " + what +
              ", but is not there as it was left: somebody has changed the file",
          id};
}

bool queue_names::prepare(connection& on) {
  on_ = &on;
  const auto unverified = on.number("SELECT value FROM meta WHERE name = 'unverified_up_to'");
  if (!unverified) return false;
  unverified_up_to_ = unsigned_of(*unverified);
  return find_.prepare(
      on, "SELECT name FROM queues WHERE number = ?1 AND NOT " + is_damaged(queue_column_list()));
}

result<std::string_view> queue_names::name_of(queue_number number) {
  const auto known = known_.find(number);
  if (known != known_.end()) return std::string_view(known->second);
  const reset_at_end ended(find_);
  const int rc = find_.number(1, number).step();
  // Only what was read is remembered: a disk that failed may read it the next time.
  if (rc == SQLITE_ROW) return std::string_view(known_[number] = find_.string(0));
  if (rc != SQLITE_DONE) return on_->failure("reading the name of a queue");
  return std::string_view();
}

bool read_row(const statement& from, int first, job& j) {
  const row r(from, first);
  j.id = static_cast<job_id>(r.number(c_id));
  const bool has_state = is_state(r.number(c_state));
  if (has_state) j.state = static_cast<job_state>(r.number(c_state));
  j.turn = static_cast<std::uint64_t>(r.number(c_turn));
  j.attempts = static_cast<std::uint32_t>(r.number(c_attempts));
  r.time(c_due_at, j.due_at);
  r.time(c_created_at, j.created_at);
  r.time(c_ended_at, j.ended_at);
  if (r.has(c_errors)) j.errors = errors_from_json(r.view(c_errors));
  if (r.has(c_history)) j.history = history_from_json(r.view(c_history));
  if (r.has(c_result)) j.result = r.content(c_result);
  j.blockers = static_cast<std::uint32_t>(r.number(c_blockers));
  j.has_place = r.number(c_has_place) != 0;
  if (r.has(c_progress)) {
    j.progress.emplace();
    r.real(c_progress, j.progress->percent);
    j.progress->text = r.string(c_progress_text);
  }

  job_spec& s = j.spec;
  s.kind = r.string(c_kind);
  s.args = r.content(c_args);
  s.priority = -r.number(c_rank);
  r.time(c_run_at, s.run_at);
  r.duration(c_lease_for, s.lease_for);
  r.duration(c_time_limit, s.time_limit);
  if (r.has(c_keep_for)) s.keep_for = milliseconds(r.number(c_keep_for));
  s.metadata = r.string(c_metadata);
  read_retry(r, s.retry);
  read_unique(r, s.unique);
  s.key = r.string(c_key);
  s.batch = static_cast<job_id>(r.number(c_batch));
  if (r.has(c_after)) s.after = after_from_json(r.view(c_after));
  s.step = r.string(c_step);
  s.webhook = r.string(c_webhook);
  return has_state;
}

result<job> read_job(const statement& from, queue_names& names, soundness& as) {
  job j;
  as = soundness_of(from, names.unverified_up_to());
  const bool has_state = read_row(from, 0, j);
  auto queue = names.name_of(static_cast<queue_number>(from.number(c_queue)));
  if (!queue) return std::move(queue.error());
  j.spec.queue = *queue;
  if (!has_state || queue->empty()) as = soundness::none;
  j.is_damaged = as == soundness::control || as == soundness::none;
  return j;
}

}  // namespace sluice::jobs::detail
