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
constexpr std::size_t queues_max = 1000;  // of one FETCH
constexpr std::size_t bulk_max = 10'000;  // of one PUSHB
constexpr std::size_t labels_max = 64;
constexpr std::size_t labels_bytes_max = 4096;
constexpr std::size_t word_shown_max = 40;  // of an unknown command
constexpr std::size_t run_max = 1000;       // commands that are one call of the engine
// A line longer than this is announced, so that the connection reads on.
constexpr std::size_t usual_line_bytes = std::size_t{32} << 10;

// Behind -ERR as all others: clients do not take a code that they do not know for an error.
std::string_view text_of(const error& why) {
  constexpr std::string_view closing = "Server is shutting down";
  return why.code == error_code::shutting_down ? closing : std::string_view(why.message);
}

// Of a push: it waits for nothing but room.
std::string_view why_refused(const error& why) {
  constexpr std::string_view no_room = "the queue is full, and had no room for the job in time";
  return why.code == error_code::timed_out ? no_room : text_of(why);
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

faktory_session::faktory_session(shared_state& all, protocol::client& to)
    : all_(all), to_(to), me_(all.crew.enter()) {
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
  to_.say(out_);
  to_.wake_at(all_.time.timers().now() + all_.options.hello_time);
}

// Reading.

std::size_t faktory_session::consume(std::string_view in) {
  needs_ = 0;
  std::size_t used = 0;
  while (!is_over_ && !is_busy_ && to_.room() > 0) {
    const std::string_view left = in.substr(used);
    const std::size_t most = is_identified_ ? line_bytes_max : hello_bytes_max;
    const protocol::line_cut cut = protocol::cut_line(left, most, searched_);
    searched_ = 0;
    if (cut.is == protocol::line_cut::what::incomplete) {
      searched_ = left.size();
      if (left.size() > usual_line_bytes) needs_ = left.size() + 1;
      break;
    }
    if (cut.is == protocol::line_cut::what::too_long) {
      begin_run();
      hang_up("the command is longer than " + std::to_string(most) + " bytes");
      return in.size();
    }
    std::string_view rest = cut.text;
    const verb_rule* const rule = rule_of(protocol::cut_word(rest));
    const run_kind run = run_under_way();
    if (run != run_kind::none && (rule == nullptr || rule->kind != run)) break;
    if (pushes_.size() + acks_.size() >= run_max) break;
    used += cut.used;
    all_.counts.commands.fetch_add(1, relaxed);
    take(rule, cut.text);
  }
  begin_run();
  return used;
}

void faktory_session::take(const verb_rule* rule, std::string_view line) {
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
  if (rule == nullptr) return say_error("Unknown command " + std::string(word));
  if (is_identified_ && is_hello) return say_error("HELLO was said already");
  (this->*rule->run)(rest);
}

faktory_session::run_kind faktory_session::run_under_way() const {
  if (!pushes_.empty()) return run_kind::push;
  return acks_.empty() ? run_kind::none : run_kind::ack;
}

void faktory_session::begin_run() {
  if (!pushes_.empty()) begin_pushes();
  if (!acks_.empty()) begin_acks();
}

bool faktory_session::has_no_arguments(std::string_view verb, std::string_view rest) {
  if (rest.empty()) return true;
  say_error(std::string(verb) + " takes no arguments");
  return false;
}

// The life of a connection.

void faktory_session::end_of_input() {
  no_more_input_ = true;
  call_off_fetch();
}

void faktory_session::finish_up() {
  is_over_ = true;
  leaves_well_ = true;
  sweep_stop_.request_stop();
  call_off_fetch();
}

void faktory_session::gone() {
  is_over_ = true;
  next_turn_ = nullptr;
  call_off_fetch();
  leave();
}

void faktory_session::hang_up(std::string_view why) {
  say_error(why);
  end_session();
}

// The connection may last longer: a client may keep its socket open after its END.
void faktory_session::end_session() {
  is_over_ = true;
  to_.wake_at(time_point::max());
  leave();
  to_.end();
}

void faktory_session::call_off_fetch() {
  fetch_stop_.request_stop();
  if (std::exchange(null_at_, time_point::max()) != time_point::max()) finish_null();
}

void faktory_session::leave() {
  if (std::exchange(has_left_, true)) return;
  all_.connections.fetch_sub(1, relaxed);
  std::vector<held_job> left = all_.crew.leave(me_);
  if (!leaves_well_) return all_.lose(left, name_, "its connections went without an END");
  std::vector<lease_ref> leases;
  leases.reserve(left.size());
  for (const held_job& job : left) leases.push_back(job.lease);
  all_.give_back(std::move(leases));
}

void faktory_session::on_time() {
  if (!is_identified_) return hang_up("HELLO did not come in time");
  const time_point now = all_.time.timers().now();
  if (null_at_ <= now) {
    null_at_ = time_point::max();
    finish_null();
  }
  if (look_at_ <= now) {
    all_.lose(all_.crew.lose(me_, all_.options.beat_lost, all_.time.now()), name_,
              "it stopped beating");
    watch_beats();
  }
  if (const auto f = std::exchange(next_turn_, nullptr)) f();
  wake_in_time();
}

void faktory_session::watch_beats() {
  look_at_ = time_point::max();
  const auto lost_at = all_.crew.lost_at(me_, all_.options.beat_lost);
  if (!lost_at) return;
  // Every connection of a worker looks: the one that beats may go before the others.
  const milliseconds left = *lost_at - all_.time.now();
  // One more millisecond: the two clocks need not change at the same moment.
  look_at_ = all_.time.timers().now() + milliseconds(1) +
             (left > milliseconds(0) ? left : all_.options.beat_lost);
  wake_in_time();
}

void faktory_session::wake_in_time() {
  to_.wake_at(next_turn_ ? all_.time.timers().now() : std::min(look_at_, null_at_));
}

void faktory_session::in_next_turn(std::function<void()> f) {
  next_turn_ = std::move(f);
  wake_in_time();
}

// Answers.

void faktory_session::say_ok() {
  out_.clear();
  resp::ok(out_);
  to_.say(out_);
}

void faktory_session::say_error(std::string_view why) {
  say_error(error{error_code::invalid, std::string(why)});
}

void faktory_session::say_error(const error& why) {
  answer_error(to_.open(), why);
}

void faktory_session::answer_ok(std::uint64_t reply) {
  out_.clear();
  resp::ok(out_);
  to_.answer(reply, out_);
}

void faktory_session::answer_error(std::uint64_t reply, const error& why) {
  all_.counts.errors.fetch_add(1, relaxed);
  out_.clear();
  resp::failed(out_, "ERR", text_of(why));
  to_.answer(reply, out_);
}

void faktory_session::begin_command() {
  is_busy_ = true;
  reply_ = to_.open();
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
  to_.answer(reply_, out_);
}

void faktory_session::finish_null() {
  is_busy_ = false;
  out_.clear();
  resp::null(out_);
  to_.answer(reply_, out_);
}

// HELLO, BEAT, END.

void faktory_session::hello(std::string_view rest) {
  auto said = read_hello(rest);
  if (!said) return say_error(said.error());
  if (said->version != protocol_version) {
    return say_error("this server speaks version 2 of the protocol, not " +
                     std::to_string(said->version));
  }
  constexpr std::size_t wid_bytes_max = 256;
  if (said->wid.size() > wid_bytes_max) return say_error("wid is longer than 256 bytes");
  if (said->hostname.size() > wid_bytes_max) return say_error("hostname is longer than 256 bytes");
  std::size_t label_bytes = 0;
  for (const std::string& label : said->labels) label_bytes += label.size();
  if (said->labels.size() > labels_max || label_bytes > labels_bytes_max) {
    return say_error("labels are more than 64, or longer than 4096 bytes in all");
  }
  begin_command();
  salt_.empty() ? welcome(*said) : check_password(*std::move(said));
}

// Last of all: so a connection has one hash made at most.
void faktory_session::check_password(hello_call said) {
  const auto is_wrong = [this] {
    all_.counts.bad_passwords.fetch_add(1, relaxed);
    turn_away({error_code::invalid, "Invalid password"});
  };
  if (!could_be_hash(said.pwdhash)) return is_wrong();
  to_.wake_at(time_point::max());  // it came in time, however long it waits for its turn
  auto expected = try_async(
      all_.hashing.get(),
      [password = std::exchange(password_, {}), salt = salt_,
       times = all_.options.hash_iterations] { return password_hash(password, salt, times); });
  if (!expected) {
    return turn_away({error_code::overloaded, "too many say HELLO at once, try again later"});
  }
  to_.when_done(*std::move(expected),
                [this, is_wrong, said = std::move(said)](const settled<std::string>& hash) {
                  hash&& is_same(hash.value(), said.pwdhash) ? welcome(said) : is_wrong();
                });
}

void faktory_session::welcome(const hello_call& said) {
  if (has_left_) return;
  is_identified_ = true;
  name_ = said.wid.empty() ? to_.address() : said.wid;
  if (!said.hostname.empty()) name_ += '@' + said.hostname;
  all_.crew.introduce(me_, said, all_.time.now());
  to_.wake_at(time_point::max());
  watch_beats();
  finish_ok();
}

void faktory_session::turn_away(const error& why) {
  finish_error(why);
  end_session();
}

void faktory_session::beat(std::string_view rest) {
  const auto said = read_beat(rest);
  if (!said) return say_error(said.error());
  const auto answer = all_.crew.beat(*said, all_.time.now());
  if (answer.is == workers::beat_result::unknown) return say_error("Unknown worker " + said->wid);
  if (answer.to_be == worker_state::running) return say_ok();
  out_.clear();
  resp::simple(out_, R"({"state":")" + std::string(to_string(answer.to_be)) + "\"}");
  to_.say(out_);
}

void faktory_session::end(std::string_view rest) {
  if (!has_no_arguments("END", rest)) return;
  say_ok();
  leaves_well_ = true;
  end_session();
}

// PUSH and PUSHB.

std::string_view faktory_session::error_of_push(const push_receipt& receipt) const {
  switch (receipt.what) {
    case push_receipt::fate::accepted:
      return {};
    case push_receipt::fate::duplicate:
      return "Job not unique";
    case push_receipt::fate::dropped:
      return "the queue is full and drops what arrives";
    case push_receipt::fate::skipped:
      return "what the job was to wait for can no longer come true";
  }
  return {};
}

void faktory_session::push(std::string_view rest) {
  auto job = read_job(rest, {.now = all_.time.now()});
  if (!job) return say_error(job.error());
  pushes_.push_back({to_.open(), std::move(job->jid)});
  specs_.push_back(std::move(job->spec));
}

void faktory_session::begin_pushes() {
  is_busy_ = true;
  const wait_limits limits(deadline::after(all_.options.push_wait, all_.time.timers()),
                           to_.gone_token());
  auto pushed = all_.jobs.push_many(std::exchange(specs_, {}), bulk::each, limits);
  to_.when_done(std::move(pushed), [this, waiting = std::exchange(pushes_, {})](auto ended) {
    is_busy_ = false;
    const unix_time now = all_.time.now();
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      const waiting_push& w = waiting[i];
      if (!ended) {
        answer_error(w.reply, engine_is_over());
        continue;
      }
      const result<push_receipt>& got = ended.value()[i];
      if (!got) {
        answer_error(w.reply, error{got.error().code, std::string(why_refused(got.error()))});
      } else if (const std::string_view why = error_of_push(*got); why.empty()) {
        all_.counts.pushed.fetch_add(1, relaxed);
        all_.tracked.saw_push(w.jid, got->id, now);
        answer_ok(w.reply);
      } else {
        all_.counts.errors.fetch_add(1, relaxed);
        out_.clear();
        const bool is_duplicate = got->what == push_receipt::fate::duplicate;
        resp::failed(out_, is_duplicate ? "NOTUNIQUE" : "ERR", why);
        to_.answer(w.reply, out_);
      }
    }
  });
}

// The jobs of a PUSHB that are left, and what was wrong with those that are not.
struct faktory_session::bulk_push {
  std::vector<std::string> jids;
  std::vector<job_spec> specs;
  std::size_t begun = 0;
  deadline until{};  // for room
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
  if (!texts) return say_error(texts.error());
  if (texts->size() > bulk_max) return say_error("PUSHB takes at most 10000 jobs");
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
    // An answer goes by jid: without one, the whole is refused.
    if (!jid) return say_error("job " + std::to_string(i + 1) + ": " + jid.error().message);
    b->add_error(*jid, job.error().message);
  }
  begin_command();
  push_next(b);
}

// As many as the engine takes at once.
void faktory_session::push_next(const std::shared_ptr<bulk_push>& b) {
  if (b->begun == b->specs.size()) return finish_bulk(b->errors + '}');
  if (has_left_) return finish_error(engine_is_over());
  const std::size_t from = b->begun;
  const std::size_t count = std::min(run_max, b->specs.size() - from);
  b->begun += count;
  std::vector<job_spec> some;
  some.reserve(count);
  for (std::size_t i = from; i < b->begun; ++i) some.push_back(std::move(b->specs[i]));
  const wait_limits limits(b->until, to_.gone_token());
  to_.when_done(all_.jobs.push_many(std::move(some), bulk::each, limits), [this, b,
                                                                           from](auto ended) {
    if (!ended) return finish_error(engine_is_over());
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
      all_.tracked.saw_push(jid, got[i]->id, now);
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
    if (auto named = validate_client_queue(name); !named) return say_error(named.error());
    if (std::ranges::find(fetch_queues_, name) != fetch_queues_.end()) continue;
    if (fetch_queues_.size() == queues_max) return say_error("FETCH names at most 1000 queues");
    fetch_queues_.emplace_back(name);
  }
  if (fetch_queues_.empty()) fetch_queues_.emplace_back("default");
  fetch_until_ = no_more_input_ ? deadline::at(time_point::min(), all_.time.timers())
                                : deadline::after(all_.options.fetch_wait, all_.time.timers());
  fetch_stop_ = std::stop_source();
  begin_command();
  const bool gets_none = all_.is_closed.load(relaxed) || all_.crew.is_told(me_);
  gets_none ? find_nothing_for_a_while() : lease_next();
}

void faktory_session::lease_next() {
  lease_request what;
  what.queues = fetch_queues_;
  what.pick = lease_request::order::strict;
  what.worker = name_;
  to_.when_done(
      all_.jobs.lease(std::move(what), wait_limits(fetch_until_, fetch_stop_.get_token())),
      [this](auto ended) { on_leased(outcome_of(std::move(ended))); });
}

void faktory_session::on_leased(result<std::vector<leased_job>> got) {
  if (!got) {
    const error_code code = got.error().code;
    if (code == error_code::shutting_down && !is_over_) return find_nothing_for_a_while();
    const bool is_nothing = code == error_code::timed_out || code == error_code::stopped ||
                            code == error_code::shutting_down;
    return is_nothing ? finish_null() : finish_error(got.error());
  }
  const leased_job& job = got->front();
  if (has_left_) {  // it came too late
    is_busy_ = false;
    return all_.give_back({job.ref()});
  }
  const job_facts facts = facts_of(*job.it);
  if (!facts.expires_at || *facts.expires_at > all_.time.now()) return hand_out(job, facts);
  to_.when_done(all_.jobs.ack(job.ref()), [this, lease = job.ref()](auto ended) {
    on_dropped(lease, outcome_of(std::move(ended)));
  });
}

// An expired job.
void faktory_session::on_dropped(const lease_ref& lease, const void_result& got) {
  if (got) all_.counts.expired.fetch_add(1, relaxed);
  if (got || got.error().code == error_code::lease_lost) return lease_next();
  const auto given_back = all_.jobs.release(lease);
  finish_error(got.error());
}

// While the server shuts down, or the worker is to be quiet. An error would make clients drop the
// connection over which they still have to say how their jobs went, and an answer at once would
// make them ask again and again.
void faktory_session::find_nothing_for_a_while() {
  if (no_more_input_) return finish_null();
  null_at_ = all_.time.timers().now() + all_.options.fetch_wait;
  wake_in_time();
}

void faktory_session::hand_out(const leased_job& job, const job_facts& facts) {
  // Workers of this protocol do not extend a lease as they go on.
  if (job.it->spec.lease_for == milliseconds(0)) {
    (void)all_.jobs.extend(job.ref(), reserve_for_default);
  }
  all_.crew.forget_ended(me_, [this](job_id id) { return all_.jobs.lease_of(id).has_value(); });
  all_.crew.took(me_, facts.jid,
                 {.lease = job.ref(),
                  .attempt = job.attempt,
                  .losses = losses_of(*job.it),
                  .is_ours = facts.is_ours,
                  .backtrace_lines = facts.backtrace_lines});
  all_.tracked.saw_start(facts.jid, job.it->id, all_.time.now());
  all_.counts.fetched.fetch_add(1, relaxed);
  std::string text;
  write_job(text, *job.it, facts);
  finish_bulk(text);
}

// ACK and FAIL.

void faktory_session::ack(std::string_view rest) {
  auto jid = read_jid(rest);
  if (!jid) return say_error(jid.error());
  const auto job = all_.crew.put_down(me_, *jid);
  if (!job) return say_ok();  // it has run out, or was acked before: somebody has seen to it
  acks_.push_back({to_.open(), *std::move(jid), *job});
}

void faktory_session::begin_acks() {
  is_busy_ = true;
  std::vector<ack_item> items;
  items.reserve(acks_.size());
  for (const waiting_ack& a : acks_) items.push_back({a.job.lease, {}});
  auto acked = all_.jobs.ack_many(std::move(items));
  to_.when_done(std::move(acked), [this, waiting = std::exchange(acks_, {})](auto ended) {
    is_busy_ = false;
    const unix_time now = all_.time.now();
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      const waiting_ack& w = waiting[i];
      const void_result got = ended ? ended.value()[i] : void_result(engine_is_over());
      if (got) {
        all_.counts.acked.fetch_add(1, relaxed);
        all_.tracked.saw_end(w.jid, job_state::done, now);
      }
      if (got || got.error().code == error_code::lease_lost) {
        answer_ok(w.reply);
      } else {  // the lease is as it was: it may be tried again
        take_back(w.jid, w.job);
        answer_error(w.reply, got.error());
      }
    }
  });
}

void faktory_session::take_back(const std::string& jid, const held_job& job) {
  if (has_left_) return all_.give_back({job.lease});
  all_.crew.took(me_, jid, job);
}

void faktory_session::fail(std::string_view rest) {
  auto said = read_fail(rest);
  if (!said) return say_error(said.error());
  const auto job = all_.crew.put_down(me_, said->jid);
  if (!job) return say_ok();  // as an ACK: workers try again for ever what is an error
  failure why;
  why.type = said->errtype;
  why.message = said->message;
  const std::size_t lines =
      job->backtrace_lines
          ? std::min(said->backtrace.size(),
                     static_cast<std::size_t>(std::max(*job->backtrace_lines, std::int64_t{0})))
          : said->backtrace.size();
  for (std::size_t i = 0; i < lines; ++i) {
    if (i > 0) why.backtrace += '\n';
    why.backtrace += said->backtrace[i];
  }
  if (job->is_ours) why.retry_in = all_.pause_after(job->attempt - 1);
  begin_command();
  to_.when_done(all_.jobs.fail(job->lease, std::move(why)),
                [this, jid = said->jid, job = *job](auto ended) {
                  on_failed(jid, job, outcome_of(std::move(ended)));
                });
}

void faktory_session::on_failed(const std::string& jid, const held_job& job,
                                const result<fail_receipt>& got) {
  if (got) {
    all_.counts.failed.fetch_add(1, relaxed);
    if (has_ended(got->state)) {
      all_.tracked.saw_end(jid, got->state, all_.time.now());
    } else {
      all_.tracked.saw_change(jid, all_.time.now());
    }
    return finish_ok();
  }
  if (got.error().code == error_code::lease_lost) return finish_ok();
  take_back(jid, job);
  finish_error(got.error());
}

}  // namespace sluice::jobs::faktory
