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

// Binds columns to parameters numbered from `after` + 1, and adds them to the checksum; defaults
// are NULL.
class row_binder {
 public:
  row_binder(statement& target, int after) : target_(target), after_(after) {}

  void value(job_column at, std::int64_t value) {
    sum_.number(at, value, group_of(at));
    target_.number(parameter(at), value);
  }
  void null(job_column at) { target_.null(parameter(at)); }
  void number(job_column at, std::int64_t value, std::int64_t otherwise = 0) {
    value == otherwise ? null(at) : this->value(at, value);
  }
  void time(job_column at, unix_time t) { number(at, t.ms); }
  void duration(job_column at, milliseconds d, milliseconds otherwise) {
    number(at, d.count(), otherwise.count());
  }
  void real_value(job_column at, double value) {
    sum_.real(at, value, group_of(at));
    target_.real(parameter(at), value);
  }
  void real(job_column at, double value, double otherwise) {
    value == otherwise ? null(at) : real_value(at, value);
  }
  void text_value(job_column at, std::string_view value) {
    add(at, value, false);
    target_.text(parameter(at), value);
  }
  void text(job_column at, std::string_view value) {
    value.empty() ? null(at) : text_value(at, value);
  }
  void content_value(job_column at, const payload& p) {
    add(at, p.data, p.type == content_type::bytes);
    bind_payload(target_, parameter(at), p);
  }
  void content(job_column at, const std::optional<payload>& p) {
    p ? content_value(at, *p) : null(at);
  }
  // Continues with column `at` at this parameter.
  void skip_to(job_column at, int parameter) { after_ = parameter - at - 1; }
  // Binds the checksum of all bound columns, to the parameter after the last.
  void checksum(int parameter) {
    sum_.number(weighed_bytes, weighed_);
    target_.number(parameter, sum_.value());
  }
  int parameter(job_column at) const { return after_ + at + 1; }

 private:
  void add(job_column at, std::string_view value, bool is_bytes) {
    sum_.text(at, value, is_bytes, group_of(at));
    if (is_weighed(at)) weighed_ += static_cast<std::int64_t>(value.size());
  }

  statement& target_;
  int after_;
  row_checksum sum_;
  std::int64_t weighed_ = 0;
};

void bind_retry(row_binder& row, const retry_policy& r) {
  const retry_policy otherwise;
  row.number(c_retry_attempts, r.attempts_max, otherwise.attempts_max);
  row.duration(c_retry_first, r.first, otherwise.first);
  row.duration(c_retry_longest, r.longest, otherwise.longest);
  row.real(c_retry_factor, r.factor, otherwise.factor);
  row.real(c_retry_jitter, r.jitter, otherwise.jitter);
}

void bind_unique(row_binder& row, const unique_key& u) {
  const unique_key otherwise;
  row.text(c_unique_key, u.key);
  row.text(c_unique_until, u.until == otherwise.until ? std::string_view() : word_of(u.until));
  row.duration(c_unique_for, u.lasts, otherwise.lasts);
}

void bind_gates(row_binder& row, const job_spec& s, queue_number queue) {
  row.text(c_key, s.key);
  s.key.empty() ? row.null(c_line) : row.value(c_line, line_of(queue, s.key));
  row.number(c_batch, signed_of(s.batch));
}

// Binds the key, dependencies, batch, and the report of a worker.
void bind_waiting(row_binder& row, const job& j, queue_number queue, std::string& after) {
  const job_spec& s = j.spec;
  bind_gates(row, s, queue);
  if (!s.after.empty()) after = after_to_json(s.after);
  row.text(c_after, s.after.empty() ? std::string_view() : std::string_view(after));
  row.text(c_step, s.step);
  row.text(c_webhook, s.webhook);
  row.number(c_blockers, j.blockers);
  row.number(c_has_place, j.has_place ? 1 : 0);
  if (j.progress) {
    row.real_value(c_progress, j.progress->percent);
    row.text_value(c_progress_text, j.progress->text);
  } else {
    row.null(c_progress);
    row.null(c_progress_text);
  }
}

// Reads the columns of one row; for NULL the target is unchanged.
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

// True if the job uses no column after lone_columns, except its key and batch, and has no unique
// key.
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

void bind_plain_columns(row_binder& row, const job& j, queue_number queue, job_state as) {
  row.value(c_id, signed_of(j.id));
  row.value(c_queue, queue);
  row.value(c_state, static_cast<std::int64_t>(as));
  row.value(c_rank, -j.spec.priority);
  row.value(c_turn, signed_of(j.turn));
  row.time(c_due_at, j.due_at);
  row.value(c_created_at, j.created_at.ms);
  row.text_value(c_kind, j.spec.kind);
  row.content_value(c_args, j.spec.args);
}

void bind_lone_columns(row_binder& row, const job& j, queue_number queue) {
  const job_spec& s = j.spec;
  bind_plain_columns(row, j, queue, j.state);
  row.time(c_ended_at, j.ended_at);
  row.number(c_attempts, j.attempts);
  row.time(c_run_at, s.run_at);
  row.duration(c_lease_for, s.lease_for, milliseconds(0));
  row.duration(c_time_limit, s.time_limit, milliseconds(0));
  s.keep_for ? row.value(c_keep_for, s.keep_for->count()) : row.null(c_keep_for);
  bind_retry(row, s.retry);
  bind_unique(row, s.unique);
  row.text(c_metadata, s.metadata);
}

}  // namespace

void bind_plain(statement& insert, const job& j, queue_number queue, int after) {
  row_binder row(insert, after);
  bind_plain_columns(row, j, queue, j.state);
  row.checksum(after + static_cast<int>(plain_columns) + 1);
}

void bind_lone(statement& insert, const job& j, queue_number queue, int after) {
  row_binder row(insert, after);
  bind_lone_columns(row, j, queue);
  row.checksum(after + static_cast<int>(lone_columns) + 1);
}

void bind_gated(statement& insert, const job& j, queue_number queue, job_state as, int after) {
  row_binder row(insert, after);
  bind_plain_columns(row, j, queue, as);
  const int next = after + static_cast<int>(plain_columns) + 1;
  row.skip_to(c_key, next);
  bind_gates(row, j.spec, queue);
  row.checksum(next + static_cast<int>(gated_columns_count));
}

void bind_job(statement& insert, const job& j, queue_number queue, row_texts& texts, int after) {
  row_binder row(insert, after);
  bind_lone_columns(row, j, queue);
  if (!j.errors.empty()) texts.errors = errors_to_json(j.errors);
  row.text(c_errors, j.errors.empty() ? std::string_view() : std::string_view(texts.errors));
  row.content(c_result, j.result);
  bind_waiting(row, j, queue, texts.after);
  if (!j.history.empty()) texts.history = history_to_json(j.history);
  row.text(c_history, j.history.empty() ? std::string_view() : std::string_view(texts.history));
  row.checksum(row.parameter(c_checksum));
}

void bind_payload(statement& target, int at, const payload& p) {
  p.type == content_type::json ? target.text(at, p.data) : target.bytes(at, p.data);
}

error changed_elsewhere(const std::string& path, const char* done_to, const std::string& name,
                        job_id id) {
  return {error_code::corrupt,
          path + ": job " + name + " cannot be " + done_to +
              ": its row is missing or was changed by another program",
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
  // Only names that were read are cached: after a failure the next read may succeed.
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
