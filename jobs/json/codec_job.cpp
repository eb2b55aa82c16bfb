// Codec of jobs: specs, stored jobs, pages and leases.
#include <algorithm>

#include "jobs/json/detail/fields.hpp"
#include "jobs/json/detail/shapes.hpp"

namespace sluice::jobs::json::detail {
namespace {

std::string_view word_of(unique_until until) {
  switch (until) {
    case unique_until::started:
      return "started";
    case unique_until::done:
      return "done";
    case unique_until::elapsed:
      return "elapsed";
  }
  return "unknown";
}

std::optional<unique_until> until_from(std::string_view word) {
  for (const auto until : {unique_until::started, unique_until::done, unique_until::elapsed}) {
    if (word == word_of(until)) return until;
  }
  return std::nullopt;
}

// ---- fields of the producer

constexpr std::array<field<retry_policy>, 5> retry_fields = {{
    {"attempts",
     [](json_reader& in, retry_policy& p) {
       p.attempts_max = static_cast<std::uint32_t>(in.natural(1, 1'000'000));
     }},
    {"first", [](json_reader& in, retry_policy& p) { p.first = in.duration(); }},
    {"factor", [](json_reader& in, retry_policy& p) { p.factor = in.number(1, 1000); }},
    {"longest", [](json_reader& in, retry_policy& p) { p.longest = in.duration(); }},
    {"jitter", [](json_reader& in, retry_policy& p) { p.jitter = in.number(0, 1); }},
}};

constexpr std::array<field<unique_key>, 3> unique_fields = {{
    {"key", [](json_reader& in, unique_key& u) { u.key = in.string(); }, field_rule::required},
    {"until",
     [](json_reader& in, unique_key& u) {
       u.until = read_word(in, until_from, R"(expected "started", "done" or "elapsed")");
     }},
    {"for", [](json_reader& in, unique_key& u) { u.lasts = in.duration(); }},
}};

struct spec_reading {
  job_spec& spec;
  unix_time now;
  bool has_args = false;
  bool has_time = false;
};

bool once(json_reader& in, bool& had, std::string_view either) {
  if (had) in.refuse(either);
  return !std::exchange(had, true);
}
constexpr std::string_view one_args = "give either args or args_base64, not both";
constexpr std::string_view one_time = "give either run_at or delay, not both";

// "after": a list of dependencies, each an id, the name of a step, or an object.

struct after_reading {
  dependency parsed{};
  unsigned named = 0;
};

void read_on(json_reader& in, after_reading& a) {
  a.parsed.on = in.natural(1, exact_max);
  ++a.named;
}

constexpr std::array<field<after_reading>, 4> after_fields = {{
    {"job", read_on},
    {"batch", read_on},
    {"step",
     [](json_reader& in, after_reading& a) {
       a.parsed.step = in.string();
       ++a.named;
     }},
    {"when",
     [](json_reader& in, after_reading& a) {
       a.parsed.when = read_word(in, after_when_from, R"(expected "success", "end" or "failure")");
     }},
}};

dependency read_dependency(json_reader& in) {
  after_reading reading;
  switch (in.peek()) {
    case json_reader::kind::number:
      read_on(in, reading);
      break;
    case json_reader::kind::string:
      reading.parsed.step = in.string();
      break;
    case json_reader::kind::object:
      read_object(in, reading, after_fields);
      if (in.ok() && reading.named != 1) {
        in.refuse_object("a dependency must have exactly one of job, batch and step");
      }
      break;
    default:
      in.skip();
      in.refuse("expected the id of a job or batch, the name of a step, or an object");
  }
  return std::move(reading.parsed);
}

void read_after(json_reader& in, spec_reading& s) {
  for (in.begin_array(); in.next_element();) {
    if (s.spec.after.size() == limits::after_max) {
      return in.refuse("a job can wait for " + std::to_string(limits::after_max) +
                       " others at most; put them into a batch and depend on the batch");
    }
    s.spec.after.push_back(read_dependency(in));
  }
}

constexpr std::array<field<spec_reading>, 18> spec_fields = {{
    {"queue", [](json_reader& in, spec_reading& s) { s.spec.queue = in.string(); }},
    {"kind", [](json_reader& in, spec_reading& s) { s.spec.kind = in.string(); },
     field_rule::required},
    {"args",
     [](json_reader& in, spec_reading& s) {
       if (once(in, s.has_args, one_args)) s.spec.args = {std::string(in.raw())};
     },
     field_rule::as_written},
    {"args_base64",
     [](json_reader& in, spec_reading& s) {
       if (once(in, s.has_args, one_args)) s.spec.args = {in.base64(), content_type::bytes};
     }},
    {"priority",
     [](json_reader& in, spec_reading& s) {
       s.spec.priority = in.whole(-limits::priority_max, limits::priority_max);
     }},
    {"run_at",
     [](json_reader& in, spec_reading& s) {
       if (once(in, s.has_time, one_time)) s.spec.run_at = in.time();
     }},
    {"delay",
     [](json_reader& in, spec_reading& s) {
       if (!once(in, s.has_time, one_time)) return;
       if (const milliseconds delay = in.duration(); delay > milliseconds(0)) {
         s.spec.run_at = s.now + delay;
       }
     }},
    {"retry",
     [](json_reader& in, spec_reading& s) { read_object(in, s.spec.retry, retry_fields); }},
    {"lease_for", [](json_reader& in, spec_reading& s) { s.spec.lease_for = in.duration(); }},
    {"time_limit", [](json_reader& in, spec_reading& s) { s.spec.time_limit = in.duration(); }},
    {"unique",
     [](json_reader& in, spec_reading& s) { read_object(in, s.spec.unique, unique_fields); }},
    {"metadata",
     [](json_reader& in, spec_reading& s) { s.spec.metadata = std::string(in.raw_object()); }},
    {"keep_for", [](json_reader& in, spec_reading& s) { s.spec.keep_for = in.duration(); }},
    {"key", [](json_reader& in, spec_reading& s) { s.spec.key = in.string(); }},
    {"batch", [](json_reader& in, spec_reading& s) { s.spec.batch = in.natural(1, exact_max); }},
    {"after", read_after},
    {"step", [](json_reader& in, spec_reading& s) { s.spec.step = in.string(); }},
    {"webhook", [](json_reader& in, spec_reading& s) { s.spec.webhook = in.string(); }},
}};

// ---- fields of the server

constexpr std::array<field<progress>, 2> progress_fields = {{
    {"percent", [](json_reader& in, progress& p) { p.percent = in.number(0, 100); },
     field_rule::required},
    {"text", [](json_reader& in, progress& p) { p.text = in.string(); }},
}};

constexpr std::array<field<attempt_error>, 5> error_fields = {{
    {"attempt",
     [](json_reader& in, attempt_error& e) {
       e.attempt = static_cast<std::uint32_t>(in.natural(0, 0xFFFFFFFFU));
     }},
    {"at", [](json_reader& in, attempt_error& e) { e.at = in.time(); }},
    {"type", [](json_reader& in, attempt_error& e) { e.type = in.string(); }},
    {"message", [](json_reader& in, attempt_error& e) { e.message = in.string(); }},
    {"backtrace", [](json_reader& in, attempt_error& e) { e.backtrace = in.string(); }},
}};

struct job_reading : spec_reading {
  explicit job_reading(job& j) : spec_reading{j.spec, {}}, target(j) {}
  job& target;
  leased_job lease{};
};

constexpr std::array<field<job_reading>, 14> job_fields = {{
    {"id", [](json_reader& in, job_reading& j) { j.target.id = in.natural(0, exact_max); },
     field_rule::required},
    {"state",
     [](json_reader& in, job_reading& j) {
       j.target.state = read_word(in, job_state_from, "expected the state of a job");
     }},
    {"attempts",
     [](json_reader& in, job_reading& j) {
       j.target.attempts = static_cast<std::uint32_t>(in.natural(0, 0xFFFFFFFFU));
     }},
    {"created_at", [](json_reader& in, job_reading& j) { j.target.created_at = in.time(); }},
    {"due_at", [](json_reader& in, job_reading& j) { j.target.due_at = in.time(); }},
    {"ended_at", [](json_reader& in, job_reading& j) { j.target.ended_at = in.time(); }},
    {"errors",
     [](json_reader& in, job_reading& j) {
       for (in.begin_array(); in.next_element();) {
         read_object(in, j.target.errors.emplace_back(), error_fields);
       }
     }},
    {"result", [](json_reader& in, job_reading& j) { read_json_payload(in, j.target.result); },
     field_rule::as_written},
    {"result_base64",
     [](json_reader& in, job_reading& j) { read_base64_payload(in, j.target.result); }},
    {"progress",
     [](json_reader& in, job_reading& j) { read_value(in, j.target.progress.emplace()); }},
    {"blockers",
     [](json_reader& in, job_reading& j) {
       j.target.blockers = static_cast<std::uint32_t>(in.natural(0, 0xFFFFFFFFU));
     }},
    {"lease", [](json_reader& in, job_reading& j) { j.lease.key = in.natural(0, exact_max); }},
    {"attempt",
     [](json_reader& in, job_reading& j) {
       j.lease.attempt = static_cast<std::uint32_t>(in.natural(0, 0xFFFFFFFFU));
     }},
    {"leased_until", [](json_reader& in, job_reading& j) { j.lease.until = in.time(); }},
}};

void write_retry(json_writer& w, const retry_policy& p) {
  w.key("retry").begin_object();
  w.key("attempts").value(p.attempts_max).key("first").value(p.first);
  w.key("factor").value(p.factor).key("longest").value(p.longest).key("jitter").value(p.jitter);
  w.end_object();
}

void write_unique(json_writer& w, const unique_key& u) {
  w.key("unique").begin_object();
  w.key("key").value(u.key).key("until").value(word_of(u.until));
  if (u.lasts != milliseconds(0)) w.key("for").value(u.lasts);
  w.end_object();
}

void write_attempt(json_writer& w, const attempt_error& e) {
  w.begin_object().key("attempt").value(e.attempt).key("at").value(e.at);
  w.key("type").value(e.type).key("message").value(e.message);
  if (!e.backtrace.empty()) w.key("backtrace").value(e.backtrace);
  w.end_object();
}

// Jobs and batches share one sequence of ids, so one field is enough for both.
void write_after(json_writer& w, const std::vector<dependency>& after) {
  w.key("after").begin_array();
  for (const dependency& d : after) {
    const bool is_step = !d.step.empty();
    if (d.when == after_when::success) {
      is_step ? w.value(d.step) : w.value(d.on);
      continue;
    }
    w.begin_object().key(is_step ? "step" : "job");
    is_step ? w.value(d.step) : w.value(d.on);
    w.key("when").value(to_string(d.when)).end_object();
  }
  w.end_array();
}

}  // namespace

void write_time(json_writer& w, std::string_view name, unix_time t) {
  if (t != unix_time{}) w.key(name).value(t);
}
void write_duration(json_writer& w, std::string_view name, milliseconds d) {
  if (d != milliseconds(0)) w.key(name).value(d);
}
void write_text(json_writer& w, std::string_view name, std::string_view text) {
  if (!text.empty()) w.key(name).value(text);
}
void write_id(json_writer& w, std::string_view name, job_id id) {
  if (id != 0) w.key(name).value(id);
}
void write_cursor(json_writer& w, const std::optional<std::uint64_t>& next) {
  w.key("next");
  next ? w.value(*next) : w.null();
}
void write_cursor(json_writer& w, const std::optional<std::string>& next) {
  w.key("next");
  next ? w.value(*next) : w.null();
}

void read_value(json_reader& in, progress& into) {
  read_object(in, into, progress_fields);
}
void write_progress(json_writer& w, const progress& p) {
  w.begin_object().key("percent").value(p.percent);
  write_text(w, "text", p.text);
  w.end_object();
}

void read_json_payload(json_reader& in, std::optional<payload>& into) {
  if (into) return in.refuse("give either result or result_base64, not both");
  into = payload{std::string(in.raw())};
}

void read_base64_payload(json_reader& in, std::optional<payload>& into) {
  if (into) return in.refuse("give either result or result_base64, not both");
  into = payload{in.base64(), content_type::bytes};
}

void read_value(json_reader& in, job_spec& into, unix_time now) {
  spec_reading reading{into, now};
  read_object(in, reading, spec_fields);
}

void read_rest(json_reader& in, job_spec& into, unix_time now, std::string_view first) {
  spec_reading reading{into, now};
  read_members(in, reading, first, spec_fields);
}

void read_value(json_reader& in, job& into) {
  job_reading reading(into);
  read_object(in, reading, spec_fields, job_fields);
}

void read_value(json_reader& in, leased_job& into) {
  auto j = std::make_shared<job>();
  job_reading reading(*j);
  read_object(in, reading, spec_fields, job_fields);
  into = std::move(reading.lease);
  into.job = std::move(j);
}

void write_members(json_writer& w, const job_spec& s) {
  w.key("queue").value(s.queue).key("kind").value(s.kind);
  if (s.args.type == content_type::bytes) {
    w.key("args_base64").base64(s.args.data);
  } else if (!s.args.data.empty()) {
    w.key("args").raw(s.args.data);
  }
  if (s.priority != 0) w.key("priority").value(s.priority);
  write_time(w, "run_at", s.run_at);
  if (s.retry != retry_policy{}) write_retry(w, s.retry);
  write_duration(w, "lease_for", s.lease_for);
  write_duration(w, "time_limit", s.time_limit);
  if (!s.unique.key.empty()) write_unique(w, s.unique);
  if (!s.metadata.empty()) w.key("metadata").raw(s.metadata);
  if (s.keep_for) w.key("keep_for").value(*s.keep_for);
  write_text(w, "key", s.key);
  write_id(w, "batch", s.batch);
  if (!s.after.empty()) write_after(w, s.after);
  write_text(w, "step", s.step);
  write_text(w, "webhook", s.webhook);
}

void write_result(json_writer& w, const payload& result) {
  if (result.type == content_type::bytes) {
    w.key("result_base64").base64(result.data);
  } else {
    w.key("result").raw(result.data.empty() ? "null" : std::string_view(result.data));
  }
}

void write_members(json_writer& w, const job& j, job_state state) {
  w.key("id").value(j.id).key("state").value(to_string(state));
  write_members(w, j.spec);
  w.key("attempts").value(j.attempts);
  write_time(w, "created_at", j.created_at);
  write_time(w, "due_at", j.due_at);
  write_time(w, "ended_at", j.ended_at);
  if (!j.errors.empty()) {
    w.key("errors").begin_array();
    for (const attempt_error& e : j.errors) write_attempt(w, e);
    w.end_array();
  }
  if (j.result) write_result(w, *j.result);
  if (j.blockers != 0) w.key("blockers").value(j.blockers);
  if (j.progress) {
    w.key("progress");
    write_progress(w, *j.progress);
  }
}

}  // namespace sluice::jobs::json::detail
