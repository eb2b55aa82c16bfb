#include "jobs/protocol/faktory/detail/faktory_job.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "jobs/json/json_reader.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/json/text.hpp"
#include "jobs/model/own_queue.hpp"
#include "jobs/protocol/faktory/detail/object_reader.hpp"
#include "jobs/protocol/faktory/detail/sha256.hpp"

namespace sluice::jobs::faktory {
namespace {

using json::json_reader;
using json::json_writer;

constexpr std::string_view metadata_begin = R"({"faktory":{)";
constexpr std::int64_t retries_default = 25;
constexpr std::int64_t retries_max = 999'999;
constexpr double seconds_max = 3.0e8;  // within limits::duration_max

// Retry delays after an expired lease: an exponential backoff close to Faktory's n^4.
constexpr milliseconds first_pause = std::chrono::seconds(15);
constexpr milliseconds longest_pause = std::chrono::hours(96);

// The members of a job that the server interprets.
enum class member : std::uint8_t {
  jid,
  jobtype,
  args,
  queue,
  priority,
  reserve_for,
  at,
  retry,
  custom,
  enqueued_at,
  failure,
  other
};
constexpr std::array<std::string_view, 11> member_names = {
    "jid", "jobtype", "args",   "queue",       "priority", "reserve_for",
    "at",  "retry",   "custom", "enqueued_at", "failure"};

member member_of(std::string_view key) {
  const auto found = std::ranges::find(member_names, key);
  return static_cast<member>(found - member_names.begin());
}

milliseconds of_seconds(double seconds) {
  return milliseconds(std::llround(seconds * 1000));
}

// The members of "custom" that the server interprets.
struct custom_part {
  double unique_for = 0;
  bool until_start = false;
  std::string bid{};
};

void read_custom(json_reader& in, custom_part& into) {
  for (object_reader o(in); o.next();) {
    if (o.is("unique_for")) {
      into.unique_for = in.number(0, seconds_max);
    } else if (o.is("unique_until")) {
      const std::string_view word = in.word();
      if (word != "start" && word != "success") in.refuse("expected \"start\" or \"success\"");
      into.until_start = word == "start";
    } else if (o.is("bid")) {
      into.bid = in.string();
    } else if (o.is("expires_at")) {
      (void)in.time();
    } else if (o.is("expires_in")) {
      (void)in.number(0, seconds_max);
    } else {
      in.skip();
    }
  }
}

// Parses a job in one pass: interpreted members go into the spec, received members into `kept_`.
class job_text {
 public:
  job_text(std::string_view text, read_rules rules) : in_(text), rules_(rules) {
    kept_ = metadata_begin;
    job_.spec.lease_for = reserve_for_default;
  }

  result<pushed_job> read() {
    in_.begin_object();
    for (std::string_view key; in_.next_key(key);) read_member(key);
    if (auto read = in_.finish(); !read) return std::move(read.error());
    if (auto whole = check_whole(); !whole) return std::move(whole.error());
    if (auto ours = read_custom_part(); !ours) return std::move(ours.error());
    kept_ += "}}";
    job_.spec.metadata = std::move(kept_);
    set_retries();
    return std::move(job_);
  }

 private:
  void read_member(std::string_view key) {
    const member field = member_of(key);
    if (field == member::other) return keep_other(key);
    const std::string_view name = member_names[static_cast<std::size_t>(field)];
    in_.name_member(name);
    const unsigned bit = 1U << static_cast<unsigned>(field);
    if ((seen_ & bit) != 0) return in_.refuse("duplicate field");
    seen_ |= bit;
    if (!in_.skip_null()) read_value(field, name);
  }

  void read_value(member field, std::string_view name) {
    job_spec& spec = job_.spec;
    switch (field) {
      case member::jid:
        job_.jid = in_.string();
        if (job_.jid.size() < jid_bytes_min || job_.jid.size() > jid_bytes_max) {
          in_.refuse("expected at least 8 and at most 256 bytes");
        }
        return keep(name, [&](json_writer& w) { w.value(job_.jid); });
      case member::jobtype:
        spec.kind = in_.string();
        return;
      case member::args:
        if (in_.peek() != json_reader::kind::array) return in_.begin_array();  // fails
        spec.args.data = in_.raw();
        has_args_ = true;
        return;
      case member::queue:
        spec.queue = in_.string();
        return;
      case member::priority:
        priority_ = in_.whole(std::numeric_limits<std::int64_t>::min(),
                              std::numeric_limits<std::int64_t>::max());
        // Clients send other values, too, which the specification does not define: ignored.
        if (priority_ >= 1 && priority_ <= 9) spec.priority = priority_ - 5;
        return keep(name, [&](json_writer& w) { w.value(priority_); });
      case member::reserve_for: {
        const std::int64_t seconds = in_.whole(reserve_seconds_min, reserve_seconds_max);
        spec.lease_for = std::chrono::seconds(seconds);
        return keep(name, [&](json_writer& w) { w.value(seconds); });
      }
      case member::at:
        return read_at(name);
      case member::retry:
        retries_ = in_.whole(-1, retries_max);
        return keep(name, [&](json_writer& w) { w.value(retries_); });
      case member::custom:
        custom_ = in_.raw_object();
        return keep(name, [&](json_writer& w) { w.raw(custom_); });
      case member::enqueued_at:
      case member::failure:
      case member::other:  // written by the server: dropped when a fetched job is pushed again
        return in_.skip();
    }
  }

  // An empty text, or a time before 1970 such as Go's zero, means at once.
  void read_at(std::string_view name) {
    const std::string_view text = in_.word();
    if (!in_.ok() || text.empty()) return;
    const auto at = parse_time(text);
    if (!at) return in_.refuse(at.error().message);
    if (at->ms <= 0) return;
    job_.spec.run_at = *at;
    keep(name, [&](json_writer& w) { w.value(*at); });
  }

  template <class Value>
  void keep(std::string_view name, Value value) {
    if (!in_.ok()) return;
    begin_kept(name);
    json_writer w(kept_);
    value(w);
  }
  void keep_other(std::string_view key) {
    const std::string name(key);
    const std::string_view value = in_.raw();
    if (!in_.ok()) return;
    begin_kept(name);
    kept_ += value;
  }
  void begin_kept(std::string_view name) {
    if (kept_.back() != '{') kept_ += ',';
    json_writer(kept_).value(name);
    kept_ += ':';
  }

  void_result check_whole() const {
    const auto missing = [](std::string_view name) {
      return error{error_code::invalid, "the field \"" + std::string(name) + "\" is missing"};
    };
    if (job_.jid.empty() && rules_.needs_jid) return missing("jid");
    if (job_.spec.kind.empty()) return missing("jobtype");
    if (!has_args_) return missing("args");
    return validate_client_queue(job_.spec.queue);
  }

  void_result read_custom_part() {
    if (custom_.empty()) return done{};
    custom_part custom;
    json_reader in(custom_);
    read_custom(in, custom);
    if (auto read = in.finish(); !read) {
      return error{read.error().code, "custom: " + read.error().message};
    }
    if (custom.unique_for > 0) set_unique(custom);
    if (custom.bid.empty()) return done{};
    const auto batch = id_of_bid(custom.bid);
    if (!batch) return error{error_code::not_found, "custom.bid: no such batch: " + custom.bid};
    job_.spec.batch = *batch;
    return done{};
  }

  void set_unique(const custom_part& custom) {
    job_spec& spec = job_.spec;
    std::string text = spec.kind;
    text += '\0';
    append_without_space(text, spec.args.data);
    spec.unique.key = to_hex(sha256(text));  // keys are per queue
    spec.unique.until = custom.until_start ? unique_until::started : unique_until::done;
    // A scheduled job is unique during its delay, too.
    const milliseconds delay = std::max(milliseconds(0), spec.run_at - rules_.now);
    spec.unique.lasts =
        of_seconds(custom.unique_for) + (spec.run_at.ms > 0 ? delay : milliseconds(0));
  }
  // Normalizes args: white space outside strings does not matter.
  static void append_without_space(std::string& out, std::string_view text) {
    bool quoted = false, escaped = false;
    for (const char c : text) {
      if (!quoted && (c == ' ' || c == '\t' || c == '\r' || c == '\n')) continue;
      if (c == '"' && !escaped) quoted = !quoted;
      escaped = quoted && c == '\\' && !escaped;
      out += c;
    }
  }

  void set_retries() {
    retry_policy& retry = job_.spec.retry;
    retry.attempts_max = static_cast<std::uint32_t>(std::max(retries_, std::int64_t{0})) + 1;
    retry.first = first_pause;
    retry.longest = longest_pause;
    if (retries_ == 0) job_.spec.keep_for = milliseconds(0);
  }

  json_reader in_;
  const read_rules rules_;
  unsigned seen_ = 0;
  pushed_job job_;
  std::string kept_;
  bool has_args_ = false;
  std::int64_t priority_ = 0;
  std::int64_t retries_ = retries_default;
  std::string_view custom_;
};

// Reads the stored members of a fetched job, as far as they are valid.
void read_kept_custom(json_reader& in, job_facts& into, unix_time enqueued) {
  for (object_reader o(in); o.next();) {
    if (o.is("expires_at")) {
      into.expires_at = in.time();
    } else if (o.is("expires_in")) {
      into.expires_at = enqueued + of_seconds(in.number(0, seconds_max));
    } else {
      in.skip();
    }
  }
}

unix_time could_run_at(const job& j) {
  return std::max(j.created_at, j.spec.run_at);
}

// Returns false if the members cannot have been stored by this protocol.
bool read_kept(std::string_view object, const job& j, job_facts& into) {
  json_reader in(object);
  bool makes_sense = true;
  for (object_reader o(in); o.next();) {
    if (o.is("jid")) {
      into.jid = in.string();
    } else if (o.is("created_at")) {
      into.has_created_at = true;
      in.skip();
    } else if (o.is("backtrace") && in.peek() == json_reader::kind::number) {
      into.backtrace_lines = in.whole(std::numeric_limits<std::int64_t>::min(),
                                      std::numeric_limits<std::int64_t>::max());
    } else if (o.is("custom")) {
      into.custom = in.raw_object();
      json_reader custom(into.custom);
      read_kept_custom(custom, into, could_run_at(j));
      makes_sense = static_cast<bool>(custom.finish());
    } else {
      in.skip();
    }
  }
  into.kept = object.substr(1, object.size() - 2);
  return in.finish() && makes_sense;
}

// Returns the batch that a job is a callback of. In this protocol only callbacks have dependencies.
job_id batch_that_calls(const job& j) {
  return j.spec.after.empty() ? 0 : j.spec.after.front().on;
}

// Inserts _bid as the last member of "custom", so that it overrides one of the client.
std::string kept_with_bid(const job_facts& facts, job_id batch) {
  const std::string bid = R"("_bid":")" + bid_of(batch) + '"';
  std::string kept(facts.kept);
  if (facts.custom.empty()) return kept + (kept.empty() ? "" : ",") + "\"custom\":{" + bid + '}';
  const std::string_view members = facts.custom.substr(1, facts.custom.size() - 2);
  const bool has_some = members.find_first_not_of(" \t\r\n") != std::string_view::npos;
  const auto end = static_cast<std::size_t>(members.data() + members.size() - facts.kept.data());
  return kept.insert(end, (has_some ? "," : "") + bid);
}

std::string numbered(std::string_view before, job_id id) {
  const std::string digits = std::to_string(id);
  std::string out(before);
  out.append(digits.size() < 8 ? 8 - digits.size() : 0, '0');
  return out + digits;
}

std::optional<job_id> number_of(std::string_view before, std::string_view text) {
  if (!text.starts_with(before) || text.size() < before.size() + 8) return std::nullopt;
  text.remove_prefix(before.size());
  job_id id = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (failed != std::errc() || end != text.data() + text.size() || id == 0) return std::nullopt;
  return id;
}

void write_args(json_writer& w, const payload& args) {
  if (args.type == content_type::bytes) {
    w.begin_array().base64(args.data).end_array();
  } else if (args.data.empty()) {
    w.begin_array().end_array();
  } else if (args.data[std::min(args.data.find_first_not_of(" \t\r\n"), args.data.size() - 1)] ==
             '[') {
    w.raw(args.data);
  } else {
    w.begin_array().raw(args.data).end_array();
  }
}

void write_failure(json_writer& w, const job& j) {
  const attempt_error& last = j.errors.back();
  const std::uint32_t failures = std::max(j.attempts, 1U);
  w.key("failure").begin_object();
  w.key("retry_count").value(failures - 1);
  w.key("remaining")
      .value(j.spec.retry.attempts_max - std::min(j.attempts, j.spec.retry.attempts_max));
  w.key("failed_at").value(last.at);
  if (j.due_at > last.at) w.key("next_at").value(j.due_at);
  w.key("message").value(last.message);
  w.key("errtype").value(last.type);
  if (!last.backtrace.empty()) {
    w.key("backtrace").begin_array();
    for (std::string_view left = last.backtrace; !left.empty();) {
      const std::size_t end = std::min(left.find('\n'), left.size());
      w.value(left.substr(0, end));
      left.remove_prefix(std::min(end + 1, left.size()));
    }
    w.end_array();
  }
  w.end_object();
}

}  // namespace

void_result validate_client_queue(std::string_view name) {
  if (auto named = validate_queue_name(name); !named) return named;
  if (!is_servers_own(name)) return done{};
  return error{error_code::invalid,
               "queue '" + std::string(name) + "' belongs to the server: clients cannot use it"};
}

result<pushed_job> read_job(std::string_view json, read_rules rules) {
  return job_text(json, rules).read();
}

job_facts facts_of(const job& j) {
  job_facts facts;
  // Metadata written by this protocol begins with "faktory", nearly always as its only member.
  if (j.spec.metadata.starts_with(metadata_begin)) {
    json_reader in(j.spec.metadata);
    for (object_reader o(in); o.next();) {
      if (o.is("faktory")) {
        facts.kept = in.raw_object();
      } else {
        in.skip();
      }
    }
    const std::string_view object = facts.kept;
    facts.is_ours = in.finish() && !object.empty() && read_kept(object, j, facts);
  }
  if (!facts.is_ours) facts = {};
  facts.has_jid = !facts.jid.empty();
  if (!facts.has_jid) facts.jid = jid_of(j.id);
  return facts;
}

void write_job(std::string& out, const job& j, const job_facts& facts) {
  json_writer w(out);
  w.begin_object();
  if (!facts.has_jid) w.key("jid").value(facts.jid);
  const job_id batch = batch_that_calls(j);
  if (facts.is_ours && batch != 0) {
    w.raw(kept_with_bid(facts, batch));
  } else if (facts.is_ours) {
    if (!facts.kept.empty()) w.raw(facts.kept);
  } else {
    w.key("retry").value(j.spec.retry.attempts_max - 1);
    const milliseconds lease =
        j.spec.lease_for.count() > 0 ? j.spec.lease_for : reserve_for_default;
    w.key("reserve_for").value(std::chrono::ceil<std::chrono::seconds>(lease).count());
    if (!j.spec.metadata.empty()) w.key("custom").raw(j.spec.metadata);
  }
  w.key("queue").value(j.spec.queue);
  w.key("jobtype").value(j.spec.kind);
  w.key("args");
  write_args(w, j.spec.args);
  if (!facts.has_created_at) w.key("created_at").value(j.created_at);
  w.key("enqueued_at")
      .value(j.errors.empty() ? could_run_at(j) : std::max(j.errors.back().at, j.due_at));
  if (!j.errors.empty()) write_failure(w, j);
  w.end_object();
}

milliseconds pause_after_failures(std::uint32_t failures_before, double chance) {
  const double n = std::min(failures_before, 1000U);
  const double seconds = n * n * n * n + 15 + std::floor(chance * 30) * (n + 1);
  constexpr double longest = 86'400.0 * 365;
  return of_seconds(std::min(seconds, longest));
}

std::string jid_of(job_id id) {
  return numbered("sluice-", id);
}
std::optional<job_id> id_of_jid(std::string_view jid) {
  return number_of("sluice-", jid);
}
std::string bid_of(job_id id) {
  return numbered("b-", id);
}
std::optional<job_id> id_of_bid(std::string_view bid) {
  return number_of("b-", bid);
}

}  // namespace sluice::jobs::faktory
