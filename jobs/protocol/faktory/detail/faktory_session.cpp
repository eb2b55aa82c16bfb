#include "jobs/protocol/faktory/detail/faktory_session.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "jobs/json/json_writer.hpp"
#include "jobs/protocol/browser_line.hpp"
#include "jobs/protocol/faktory/detail/sha256.hpp"
#include "jobs/protocol/frames.hpp"
#include "sluice/future/async.hpp"

namespace sluice::jobs::faktory {
namespace {

namespace resp = protocol::resp;

constexpr std::int64_t protocol_version = 2;
constexpr std::size_t queues_max = 1000;  // per FETCH
constexpr std::size_t bulk_max = 10'000;  // per PUSHB
constexpr std::size_t labels_max = 64;
constexpr std::size_t labels_bytes_max = 4096;
constexpr std::size_t word_shown_max = 40;  // of an unknown command
constexpr std::size_t run_max = 1000;       // commands that share one call of the engine
// A longer line is announced with `needs`, so that the connection continues to read.
constexpr std::size_t usual_line_bytes = std::size_t{32} << 10;

// The text behind -ERR. Clients do not recognize other codes as errors.
std::string_view text_of(const error& why) {
  constexpr std::string_view closing = "Server is shutting down";
  return why.code == error_code::shutting_down ? closing : std::string_view(why.message);
}

// The text for a failed push, which times out only while it waits for capacity.
std::string_view why_refused(const error& why) {
  constexpr std::string_view full = "the queue is full and had no capacity in time";
  return why.code == error_code::timed_out ? full : text_of(why);
}

}  // namespace

struct faktory_session::verb_rule {
  std::string_view word;
  void (faktory_session::*run)(std::string_view rest);
  run_kind kind = run_kind::none;
};

const faktory_session::verb_rule* faktory_session::rule_of(std::string_view word) {
  using self = faktory_session;
  static constexpr std::array<verb_rule, 14> rules = {{
      {"PUSH", &self::push, run_kind::push},
      {"FETCH", &self::fetch},
      {"ACK", &self::ack, run_kind::ack},
      {"FAIL", &self::fail},
      {"PUSHB", &self::push_bulk},
      {"BEAT", &self::beat},
      {"HELLO", &self::hello},
      {"INFO", &self::info},
      {"TRACK", &self::track},
      {"BATCH", &self::batch},
      {"QUEUE", &self::queue},
      {"MUTATE", &self::mutate},
      {"FLUSH", &self::flush},
      {"END", &self::end},
  }};
  const auto found = std::ranges::find(rules, word, &verb_rule::word);
  return found == rules.end() ? nullptr : &*found;
}

faktory_session::faktory_session(shared_state& all, protocol::client& client)
    : all_(all), client_(client), me_(all.crew.enter()) {
  all_.connections.fetch_add(1, relaxed);
}

faktory_session::~faktory_session() {
  leave();
}

void faktory_session::begin() {
  password_ = all_.password.with([](std::string& p) { return p; });
  std::string hi = R"(HI {"v":2)";
  if (!password_.empty()) {
    salt_ = random_salt();
    hi += ",\"i\":" + std::to_string(all_.options.hash_iterations) + ",\"s\":\"" + salt_ + '"';
  }
  out_.clear();
  resp::simple(out_, hi + '}');
  client_.respond(out_);
  client_.wake_at(all_.time.timers().now() + all_.options.hello_time);
}

// Reading.

std::size_t faktory_session::consume(std::string_view in) {
  needs_ = 0;
  std::size_t used = 0;
  while (!is_ended_ && !is_busy_ && client_.replies_left() > 0) {
    const std::string_view left = in.substr(used);
    const std::size_t most = is_identified_ ? line_bytes_max : hello_bytes_max;
    const protocol::line_cut cut = protocol::cut_line(left, most, searched_);
    searched_ = 0;
    if (cut.is == protocol::line_cut::kind::incomplete) {
      searched_ = left.size();
      if (left.size() > usual_line_bytes) needs_ = left.size() + 1;
      break;
    }
    if (cut.is == protocol::line_cut::kind::too_long) {
      begin_run();
      hang_up("the command is longer than " + std::to_string(most) + " bytes");
      return in.size();
    }
    std::string_view rest = cut.text;
    const verb_rule* const rule = rule_of(protocol::cut_word(rest));
    const run_kind run = current_run();
    if (run != run_kind::none && (rule == nullptr || rule->kind != run)) break;
    if (pushes_.size() + acks_.size() >= run_max) break;
    used += cut.used;
    all_.counts.commands.fetch_add(1, relaxed);
    run_command(rule, cut.text);
  }
  begin_run();
  return used;
}

void faktory_session::run_command(const verb_rule* rule, std::string_view line) {
  const bool is_known = is_identified_ && rule != nullptr;
  if (!is_known && protocol::is_browser_line(line)) {
    return hang_up("this port speaks Faktory's protocol, not HTTP");
  }
  std::string_view rest = line;
  const std::string_view word = protocol::cut_word(rest).substr(0, word_shown_max);
  const bool is_hello = rule != nullptr && rule->run == &faktory_session::hello;
  if (!is_identified_ && !is_hello) {
    return hang_up(std::string(word) + " is not allowed before HELLO");
  }
  if (rule == nullptr) return respond_error("Unknown command " + std::string(word));
  if (is_identified_ && is_hello) return respond_error("HELLO was already received");
  (this->*rule->run)(rest);
}

faktory_session::run_kind faktory_session::current_run() const {
  if (!pushes_.empty()) return run_kind::push;
  return acks_.empty() ? run_kind::none : run_kind::ack;
}

void faktory_session::begin_run() {
  if (!pushes_.empty()) begin_pushes();
  if (!acks_.empty()) begin_acks();
}

bool faktory_session::has_no_arguments(std::string_view verb, std::string_view rest) {
  if (rest.empty()) return true;
  respond_error(std::string(verb) + " takes no arguments");
  return false;
}

// The life of a connection.

void faktory_session::end_of_input() {
  no_more_input_ = true;
  stop_fetch();
}

void faktory_session::finish_up() {
  is_ended_ = true;
  is_clean_leave_ = true;
  sweep_stop_.request_stop();
  stop_fetch();
}

void faktory_session::gone() {
  is_ended_ = true;
  deferred_ = nullptr;
  stop_fetch();
  leave();
}

void faktory_session::hang_up(std::string_view why) {
  respond_error(why);
  end_session();
}

// Ends the session, perhaps before the connection: a client may keep its socket open after END.
void faktory_session::end_session() {
  is_ended_ = true;
  client_.wake_at(time_point::max());
  leave();
  client_.end();
}

void faktory_session::stop_fetch() {
  fetch_stop_.request_stop();
  if (std::exchange(null_at_, time_point::max()) != time_point::max()) finish_null();
}

void faktory_session::leave() {
  if (std::exchange(has_left_, true)) return;
  all_.connections.fetch_sub(1, relaxed);
  std::vector<held_job> left = all_.crew.leave(me_);
  if (!is_clean_leave_) return all_.lose(left, name_, "its connections closed without an END");
  std::vector<lease_ref> leases;
  leases.reserve(left.size());
  for (const held_job& job : left) leases.push_back(job.lease);
  all_.give_back(std::move(leases));
}

void faktory_session::on_time() {
  if (!is_identified_) return hang_up("HELLO did not arrive in time");
  const time_point now = all_.time.timers().now();
  if (null_at_ <= now) {
    null_at_ = time_point::max();
    finish_null();
  }
  if (beat_check_at_ <= now) {
    all_.lose(all_.crew.lose(me_, all_.options.beat_lost, all_.time.now()), name_,
              "its beats stopped");
    schedule_beat_check();
  }
  if (const auto f = std::exchange(deferred_, nullptr)) f();
  wake_in_time();
}

void faktory_session::schedule_beat_check() {
  beat_check_at_ = time_point::max();
  const auto lost_at = all_.crew.lost_at(me_, all_.options.beat_lost);
  if (!lost_at) return;
  // Every connection of a worker checks: the connection of the BEATs may close before the others.
  const milliseconds left = *lost_at - all_.time.now();
  // One more millisecond: the two clocks do not tick at the same moment.
  beat_check_at_ = all_.time.timers().now() + milliseconds(1) +
                   (left > milliseconds(0) ? left : all_.options.beat_lost);
  wake_in_time();
}

void faktory_session::wake_in_time() {
  client_.wake_at(deferred_ ? all_.time.timers().now() : std::min(beat_check_at_, null_at_));
}

void faktory_session::defer(std::function<void()> f) {
  deferred_ = std::move(f);
  wake_in_time();
}

// Answers.

void faktory_session::respond_ok() {
  out_.clear();
  resp::ok(out_);
  client_.respond(out_);
}

void faktory_session::respond_error(std::string_view why) {
  respond_error(error{error_code::invalid, std::string(why)});
}

void faktory_session::respond_error(const error& why) {
  answer_error(client_.open(), why);
}

void faktory_session::answer_ok(std::uint64_t reply) {
  out_.clear();
  resp::ok(out_);
  client_.answer(reply, out_);
}

void faktory_session::answer_error(std::uint64_t reply, const error& why) {
  all_.counts.errors.fetch_add(1, relaxed);
  out_.clear();
  resp::failed(out_, "ERR", text_of(why));
  client_.answer(reply, out_);
}

void faktory_session::begin_command() {
  is_busy_ = true;
  reply_ = client_.open();
}

void faktory_session::finish_ok() {
  is_busy_ = false;
  answer_ok(reply_);
}

void faktory_session::finish_error(const error& why) {
  is_busy_ = false;
  answer_error(reply_, why);
}

void faktory_session::finish_bulk(std::string_view bytes) {
  is_busy_ = false;
  out_.clear();
  resp::bulk(out_, bytes);
  client_.answer(reply_, out_);
}

void faktory_session::finish_null() {
  is_busy_ = false;
  out_.clear();
  resp::null(out_);
  client_.answer(reply_, out_);
}

// HELLO, BEAT, END.

void faktory_session::hello(std::string_view rest) {
  auto call = read_hello(rest);
  if (!call) return respond_error(call.error());
  if (call->version != protocol_version) {
    return respond_error("this server supports version 2 of the protocol, not " +
                         std::to_string(call->version));
  }
  constexpr std::size_t wid_bytes_max = 256;
  if (call->wid.size() > wid_bytes_max) return respond_error("wid is longer than 256 bytes");
  if (call->hostname.size() > wid_bytes_max)
    return respond_error("hostname is longer than 256 bytes");
  std::size_t label_bytes = 0;
  for (const std::string& label : call->labels) label_bytes += label.size();
  if (call->labels.size() > labels_max || label_bytes > labels_bytes_max) {
    return respond_error("expected at most 64 labels with 4096 bytes in total");
  }
  begin_command();
  salt_.empty() ? welcome(*call) : check_password(*std::move(call));
}

// The last check of HELLO, so a connection computes at most one hash.
void faktory_session::check_password(hello_call call) {
  const auto is_wrong = [this] {
    all_.counts.bad_passwords.fetch_add(1, relaxed);
    refuse_hello({error_code::invalid, "Invalid password"});
  };
  if (!could_be_hash(call.pwdhash)) return is_wrong();
  client_.wake_at(time_point::max());  // HELLO arrived in time; hashing may be queued
  auto expected = try_async(
      all_.hashing.get(),
      [password = std::exchange(password_, {}), salt = salt_,
       times = all_.options.hash_iterations] { return password_hash(password, salt, times); });
  if (!expected) {
    return refuse_hello(
        {error_code::overloaded, "too many HELLO commands at once, try again later"});
  }
  client_.when_done(*std::move(expected),
                    [this, is_wrong, call = std::move(call)](const settled<std::string>& hash) {
                      hash&& is_same(hash.value(), call.pwdhash) ? welcome(call) : is_wrong();
                    });
}

void faktory_session::welcome(const hello_call& call) {
  if (has_left_) return;
  is_identified_ = true;
  name_ = call.wid.empty() ? client_.address() : call.wid;
  if (!call.hostname.empty()) name_ += '@' + call.hostname;
  all_.crew.introduce(me_, call, all_.time.now());
  client_.wake_at(time_point::max());
  schedule_beat_check();
  finish_ok();
}

void faktory_session::refuse_hello(const error& why) {
  finish_error(why);
  end_session();
}

void faktory_session::beat(std::string_view rest) {
  const auto call = read_beat(rest);
  if (!call) return respond_error(call.error());
  const auto answer = all_.crew.beat(*call, all_.time.now());
  if (answer.is == workers::beat_result::unknown)
    return respond_error("Unknown worker " + call->wid);
  if (answer.requested == worker_state::running) return respond_ok();
  out_.clear();
  resp::simple(out_, R"({"state":")" + std::string(to_string(answer.requested)) + "\"}");
  client_.respond(out_);
}

void faktory_session::end(std::string_view rest) {
  if (!has_no_arguments("END", rest)) return;
  respond_ok();
  is_clean_leave_ = true;
  end_session();
}

// PUSH and PUSHB.

std::string_view faktory_session::error_of_push(const push_receipt& receipt) const {
  switch (receipt.outcome) {
    case push_receipt::fate::accepted:
      return {};
    case push_receipt::fate::duplicate:
      return "Job not unique";
    case push_receipt::fate::dropped:
      return "the queue is full and drops what arrives";
    case push_receipt::fate::skipped:
      return "a dependency of the job can no longer be met";
  }
  return {};
}

void faktory_session::push(std::string_view rest) {
  auto job = read_job(rest, {.now = all_.time.now()});
  if (!job) return respond_error(job.error());
  pushes_.push_back({client_.open(), std::move(job->jid)});
  specs_.push_back(std::move(job->spec));
}

void faktory_session::begin_pushes() {
  is_busy_ = true;
  const wait_limits limits(deadline::after(all_.options.push_wait, all_.time.timers()),
                           client_.gone_token());
  auto pushed = all_.jobs.push_many(std::exchange(specs_, {}), bulk::each, limits);
  client_.when_done(std::move(pushed), [this, waiting = std::exchange(pushes_, {})](auto ended) {
    is_busy_ = false;
    const unix_time now = all_.time.now();
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      const waiting_push& w = waiting[i];
      if (!ended) {
        answer_error(w.reply, shutdown_error());
        continue;
      }
      const result<push_receipt>& got = ended.value()[i];
      if (!got) {
        answer_error(w.reply, error{got.error().code, std::string(why_refused(got.error()))});
      } else if (const std::string_view why = error_of_push(*got); why.empty()) {
        all_.counts.pushed.fetch_add(1, relaxed);
        all_.tracked.note_push(w.jid, got->id, now);
        answer_ok(w.reply);
      } else {
        all_.counts.errors.fetch_add(1, relaxed);
        out_.clear();
        const bool is_duplicate = got->outcome == push_receipt::fate::duplicate;
        resp::failed(out_, is_duplicate ? "NOTUNIQUE" : "ERR", why);
        client_.answer(w.reply, out_);
      }
    }
  });
}

// The remaining jobs of a PUSHB, and the errors of the others.
struct faktory_session::bulk_push {
  std::vector<std::string> jids;
  std::vector<job_spec> specs;
  std::size_t begun = 0;
  deadline until{};  // for capacity
  std::string errors;

  void add_error(std::string_view jid, std::string_view why) {
    if (errors.size() > 1) errors += ',';
    json::json_writer(errors).value(jid);
    errors += ':';
    json::json_writer(errors).value(why);
  }
};

void faktory_session::push_bulk(std::string_view rest) {
  const auto texts = read_jobs(rest);
  if (!texts) return respond_error(texts.error());
  if (texts->size() > bulk_max) return respond_error("PUSHB takes at most 10000 jobs");
  const auto b = std::make_shared<bulk_push>();
  b->errors = "{";
  b->until = deadline::after(all_.options.push_wait, all_.time.timers());
  const unix_time now = all_.time.now();
  for (std::size_t i = 0; i < texts->size(); ++i) {
    auto job = read_job((*texts)[i], {.now = now});
    if (job) {
      b->jids.push_back(std::move(job->jid));
      b->specs.push_back(std::move(job->spec));
      continue;
    }
    const auto jid = read_jid((*texts)[i]);
    // The reply reports errors by jid: a job without one fails the whole command.
    if (!jid) return respond_error("job " + std::to_string(i + 1) + ": " + jid.error().message);
    b->add_error(*jid, job.error().message);
  }
  begin_command();
  push_next(b);
}

// Pushes the next jobs, up to run_max.
void faktory_session::push_next(const std::shared_ptr<bulk_push>& b) {
  if (b->begun == b->specs.size()) return finish_bulk(b->errors + '}');
  if (has_left_) return finish_error(shutdown_error());
  const std::size_t from = b->begun;
  const std::size_t count = std::min(run_max, b->specs.size() - from);
  b->begun += count;
  std::vector<job_spec> some;
  some.reserve(count);
  for (std::size_t i = from; i < b->begun; ++i) some.push_back(std::move(b->specs[i]));
  const wait_limits limits(b->until, client_.gone_token());
  client_.when_done(all_.jobs.push_many(std::move(some), bulk::each, limits), [this, b,
                                                                               from](auto ended) {
    if (!ended) return finish_error(shutdown_error());
    const unix_time now = all_.time.now();
    const auto& got = ended.value();
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::string& jid = b->jids[from + i];
      const std::string_view why = got[i] ? error_of_push(*got[i]) : why_refused(got[i].error());
      if (!why.empty()) {
        b->add_error(jid, why);
        continue;
      }
      all_.counts.pushed.fetch_add(1, relaxed);
      all_.tracked.note_push(jid, got[i]->id, now);
    }
    push_next(b);
  });
}

// FETCH.

void faktory_session::fetch(std::string_view rest) {
  fetch_queues_.clear();
  while (!rest.empty()) {
    const std::string_view name = protocol::cut_word(rest);
    if (name.empty()) continue;
    if (auto named = validate_client_queue(name); !named) return respond_error(named.error());
    if (std::ranges::find(fetch_queues_, name) != fetch_queues_.end()) continue;
    if (fetch_queues_.size() == queues_max) return respond_error("FETCH names at most 1000 queues");
    fetch_queues_.emplace_back(name);
  }
  if (fetch_queues_.empty()) fetch_queues_.emplace_back("default");
  fetch_until_ = no_more_input_ ? deadline::at(time_point::min(), all_.time.timers())
                                : deadline::after(all_.options.fetch_wait, all_.time.timers());
  fetch_stop_ = std::stop_source();
  begin_command();
  const bool gets_none = all_.is_closed.load(relaxed) || all_.crew.is_stopping(me_);
  gets_none ? reply_null_later() : lease_next();
}

void faktory_session::lease_next() {
  lease_request request;
  request.queues = fetch_queues_;
  request.pick = lease_request::order::strict;
  request.worker = name_;
  client_.when_done(
      all_.jobs.lease(std::move(request), wait_limits(fetch_until_, fetch_stop_.get_token())),
      [this](auto ended) { on_leased(outcome_of(std::move(ended))); });
}

void faktory_session::on_leased(result<std::vector<leased_job>> got) {
  if (!got) {
    const error_code code = got.error().code;
    if (code == error_code::shutting_down && !is_ended_) return reply_null_later();
    const bool is_nothing = code == error_code::timed_out || code == error_code::stopped ||
                            code == error_code::shutting_down;
    return is_nothing ? finish_null() : finish_error(got.error());
  }
  const leased_job& job = got->front();
  if (has_left_) {
    is_busy_ = false;
    return all_.give_back({job.ref()});
  }
  const job_facts facts = facts_of(*job.job);
  if (!facts.expires_at || *facts.expires_at > all_.time.now()) return send_job(job, facts);
  client_.when_done(all_.jobs.ack(job.ref()), [this, lease = job.ref()](auto ended) {
    on_dropped(lease, outcome_of(std::move(ended)));
  });
}

// Called when an expired job was acked, to drop it.
void faktory_session::on_dropped(const lease_ref& lease, const void_result& got) {
  if (got) all_.counts.expired.fetch_add(1, relaxed);
  if (got || got.error().code == error_code::lease_lost) return lease_next();
  const auto given_back = all_.jobs.release(lease);
  finish_error(got.error());
}

// Used while the server shuts down or the worker must be quiet. An error would make clients drop
// the connection that they still need for ACK and FAIL, and an immediate reply would make them
// poll.
void faktory_session::reply_null_later() {
  if (no_more_input_) return finish_null();
  null_at_ = all_.time.timers().now() + all_.options.fetch_wait;
  wake_in_time();
}

void faktory_session::send_job(const leased_job& job, const job_facts& facts) {
  // Workers of this protocol do not extend leases.
  if (job.job->spec.lease_for == milliseconds(0)) {
    (void)all_.jobs.extend(job.ref(), reserve_for_default);
  }
  all_.crew.forget_ended(me_, [this](job_id id) { return all_.jobs.lease_of(id).has_value(); });
  all_.crew.add_job(me_, facts.jid,
                    {.lease = job.ref(),
                     .attempt = job.attempt,
                     .losses = losses_of(*job.job),
                     .is_ours = facts.is_ours,
                     .backtrace_lines = facts.backtrace_lines});
  all_.tracked.note_start(facts.jid, job.job->id, all_.time.now());
  all_.counts.fetched.fetch_add(1, relaxed);
  std::string text;
  write_job(text, *job.job, facts);
  finish_bulk(text);
}

// ACK and FAIL.

void faktory_session::ack(std::string_view rest) {
  auto jid = read_jid(rest);
  if (!jid) return respond_error(jid.error());
  const auto job = all_.crew.remove_job(me_, *jid);
  if (!job) return respond_ok();  // the lease expired, or the job was acked before
  acks_.push_back({client_.open(), *std::move(jid), *job});
}

void faktory_session::begin_acks() {
  is_busy_ = true;
  std::vector<ack_item> items;
  items.reserve(acks_.size());
  for (const waiting_ack& a : acks_) items.push_back({a.job.lease, {}});
  auto acked = all_.jobs.ack_many(std::move(items));
  client_.when_done(std::move(acked), [this, waiting = std::exchange(acks_, {})](auto ended) {
    is_busy_ = false;
    const unix_time now = all_.time.now();
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      const waiting_ack& w = waiting[i];
      const void_result got = ended ? ended.value()[i] : void_result(shutdown_error());
      if (got) {
        all_.counts.acked.fetch_add(1, relaxed);
        all_.tracked.note_end(w.jid, job_state::done, now);
      }
      if (got || got.error().code == error_code::lease_lost) {
        answer_ok(w.reply);
      } else {  // the lease is unchanged: the ACK may be repeated
        restore_job(w.jid, w.job);
        answer_error(w.reply, got.error());
      }
    }
  });
}

void faktory_session::restore_job(const std::string& jid, const held_job& job) {
  if (has_left_) return all_.give_back({job.lease});
  all_.crew.add_job(me_, jid, job);
}

void faktory_session::fail(std::string_view rest) {
  auto call = read_fail(rest);
  if (!call) return respond_error(call.error());
  const auto job = all_.crew.remove_job(me_, call->jid);
  if (!job) return respond_ok();  // like ACK: workers repeat a failed command forever
  failure why;
  why.type = call->errtype;
  why.message = call->message;
  const std::size_t lines =
      job->backtrace_lines
          ? std::min(call->backtrace.size(),
                     static_cast<std::size_t>(std::max(*job->backtrace_lines, std::int64_t{0})))
          : call->backtrace.size();
  for (std::size_t i = 0; i < lines; ++i) {
    if (i > 0) why.backtrace += '\n';
    why.backtrace += call->backtrace[i];
  }
  if (job->is_ours) why.retry_in = all_.pause_after(job->attempt - 1);
  begin_command();
  client_.when_done(all_.jobs.fail(job->lease, std::move(why)),
                    [this, jid = call->jid, job = *job](auto ended) {
                      on_failed(jid, job, outcome_of(std::move(ended)));
                    });
}

void faktory_session::on_failed(const std::string& jid, const held_job& job,
                                const result<fail_receipt>& got) {
  if (got) {
    all_.counts.failed.fetch_add(1, relaxed);
    if (has_ended(got->state)) {
      all_.tracked.note_end(jid, got->state, all_.time.now());
    } else {
      all_.tracked.note_change(jid, all_.time.now());
    }
    return finish_ok();
  }
  if (got.error().code == error_code::lease_lost) return finish_ok();
  restore_job(jid, job);
  finish_error(got.error());
}

}  // namespace sluice::jobs::faktory
