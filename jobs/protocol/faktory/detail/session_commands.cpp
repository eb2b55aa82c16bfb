// The commands that look at the server and change it: INFO, FLUSH, QUEUE, MUTATE, TRACK, BATCH.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include "jobs/json/json_writer.hpp"
#include "jobs/json/text.hpp"
#include "jobs/protocol/faktory/detail/faktory_session.hpp"
#include "jobs/protocol/frames.hpp"

namespace sluice::jobs::faktory {
namespace {

using json::json_writer;

constexpr std::uint64_t queues_in_passing = 100;  // that are looked at without a rest
// Queues that are changed in one commit, and jobs that are in those that are emptied in one.
constexpr std::size_t queues_at_a_time = 256;
constexpr std::uint64_t jobs_at_a_time = 1000;

std::uint64_t memory_mb() {
  std::ifstream pages("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  pages >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) >> 20U;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    if (const std::string_view word = protocol::cut_word(text); !word.empty()) {
      words.emplace_back(word);
    }
  }
  return words;
}

std::vector<std::string> queues_of_clients(engine& jobs) {
  std::vector<std::string> names;
  for (queue_info& q : jobs.queues()) {
    if (!is_servers_own(q.name)) names.push_back(std::move(q.name));
  }
  return names;
}

// As Faktory calls the states of a job.
std::string_view state_word(job_state state) {
  switch (state) {
    case job_state::scheduled:
      return "scheduled";
    case job_state::held:
    case job_state::ready:
      return "enqueued";
    case job_state::running:
      return "working";
    case job_state::retrying:
    case job_state::cancelled:
      return "failed";
    case job_state::done:
      return "success";
    case job_state::dead:
      return "dead";
  }
  return "unknown";
}

std::string tracking_of(std::string_view jid, std::string_view state, unix_time at,
                        const std::optional<progress>& how_far) {
  std::string out;
  json_writer w(out);
  w.begin_object().key("jid").value(jid);
  if (how_far) {
    w.key("percent").value(std::llround(how_far->percent)).key("desc").value(how_far->text);
  }
  w.key("state").value(state);
  if (at.ms > 0) {
    w.key("updated_at").value(at);
  } else {
    w.key("updated_at").value("");
  }
  w.end_object();
  return out;
}

// What became of the job that a batch calls when it has ended: "" it waits, "1" it could run, "2"
// it was done.
std::string_view callback_state(const result<job>& found, bool batch_let_go) {
  if (!found) return batch_let_go ? "2" : "";
  if (found->state == job_state::held) return "";
  return found->state == job_state::done ? "2" : "1";
}

}  // namespace

// INFO.

// With many queues it takes long: a client that asks for many at once lets others have their turn
// between them.
void faktory_session::info(std::string_view rest) {
  if (!has_no_arguments("INFO", rest)) return;
  begin_command();
  if (queues_last_seen_ < queues_in_passing) return write_info();
  in_next_turn([this] { write_info(); });
}

void faktory_session::write_info() {
  queue_counts sum;
  std::string text;
  json_writer w(text);
  const unix_time now = all_.time.now();
  const std::string utc = format_time(now);
  w.begin_object();
  w.key("server_utc_time").value(utc.substr(11, 8) + " UTC");
  w.key("now").value(utc);
  w.key("faktory").begin_object().key("queues").begin_object();
  std::uint64_t queues = 0, default_size = 0;
  for (const queue_info& q : all_.jobs.queues()) {
    if (is_servers_own(q.name)) continue;
    w.key(q.name).value(q.counts.ready);
    ++queues;
    if (q.name == "default") default_size = q.counts.ready;
    for (const job_state s : {job_state::ready, job_state::scheduled, job_state::retrying,
                              job_state::dead, job_state::running}) {
      sum.of(s) += q.counts.of(s);
    }
  }
  w.end_object().key("tasks").begin_object();
  const auto task = [&](std::string_view name, std::uint64_t size) {
    w.key(name).begin_object().key("size").value(size).end_object();
  };
  const workers::totals crew = all_.crew.count();
  task("Busy", sum.running);
  task("Dead", sum.dead);
  task("Retries", sum.retrying);
  task("Scheduled", sum.scheduled);
  w.key("Workers").begin_object().key("size").value(crew.workers);
  w.key("reaped").value(crew.lost).end_object();
  w.end_object();
  const engine_stats stats = all_.jobs.stats();
  const std::uint64_t failures = stats.failed + stats.expired;
  w.key("default_size").value(default_size);
  w.key("total_enqueued").value(sum.ready);
  w.key("total_failures").value(failures);
  w.key("total_processed").value(stats.acked + failures);
  w.key("total_queues").value(queues);
  w.end_object().key("server").begin_object();
  w.key("description").value("Sluice");
  w.key("faktory_version").value(all_.options.version);
  w.key("uptime").value(std::chrono::duration_cast<std::chrono::seconds>(now - all_.began).count());
  w.key("connections").value(all_.connections.load(relaxed));
  w.key("command_count").value(all_.counts.commands.load(relaxed));
  w.key("used_memory_mb").value(memory_mb());
  w.end_object().end_object();
  queues_last_seen_ = queues;
  finish_bulk(text);
}

// FLUSH: what is fetched ends as dead, and then every queue is emptied, the dead with it.

void faktory_session::flush(std::string_view rest) {
  if (!has_no_arguments("FLUSH", rest)) return;
  begin_command();
  failure why;
  why.type = "Flushed";
  why.message = "ended by FLUSH";
  why.for_good = true;
  const auto ends = std::make_shared<many_calls>();
  ends->then = [this] { purge_next(all_.jobs.queues()); };
  for (const workers::fetched& it : all_.crew.all_fetched()) {
    ++ends->open;
    to_.when_done(all_.jobs.fail(it.lease, why), [this, ends, it](auto ended) {
      const auto got = outcome_of(std::move(ended));
      const bool is_over = got || came_too_late(got.error());
      if (is_over) all_.crew.put_down(it);
      one_ended(*ends, is_over ? void_result(done{}) : void_result(got.error()));
    });
  }
  one_ended(*ends, void_result(done{}));
}

template <class T>
void faktory_session::one_ended(many_calls& of, const result<T>& got) {
  if (!got && !of.wrong) of.wrong = got.error();
  if (--of.open > 0) return;
  of.wrong ? finish_error(*of.wrong) : of.then();
}

// Several at a time where they hold little: each purge is a commit, or a share of one.
void faktory_session::purge_next(std::vector<queue_info> queues) {
  if (has_left_) return finish_error(engine_is_over());
  if (queues.empty()) return finish_ok();
  const auto group = std::make_shared<many_calls>();
  std::uint64_t jobs = 0;
  for (; !queues.empty() && jobs < jobs_at_a_time && group->open <= queues_at_a_time;
       queues.pop_back()) {
    const queue_info& q = queues.back();
    const std::uint64_t held =
        q.counts.unfinished() + q.counts.done + q.counts.dead + q.counts.cancelled;
    if (is_servers_own(q.name) || held == 0) continue;
    jobs += held;
    ++group->open;
    to_.when_done(all_.jobs.purge(q.name), [this, group](auto ended) {
      const auto got = outcome_of(std::move(ended));
      const bool is_gone = !got && got.error().code == error_code::not_found;
      one_ended(*group, is_gone || got ? void_result(done{}) : void_result(got.error()));
    });
  }
  group->then = [this, queues = std::move(queues)]() mutable { purge_next(std::move(queues)); };
  one_ended(*group, void_result(done{}));
}

// QUEUE.

void faktory_session::queue(std::string_view rest) {
  const std::string_view what = protocol::cut_word(rest);
  if (what != "PAUSE" && what != "RESUME" && what != "REMOVE") {
    return say_error("expected QUEUE PAUSE, QUEUE RESUME or QUEUE REMOVE");
  }
  std::vector<std::string> names = words_of(rest);
  if (names.empty()) return say_error("expected the names of queues, or *");
  if (std::ranges::find(names, "*") != names.end()) {
    names = queues_of_clients(all_.jobs);
  }
  for (const std::string& name : names) {
    if (auto named = validate_client_queue(name); !named) return say_error(named.error());
  }
  begin_command();
  sweep_stop_ = std::stop_source();
  if (what == "REMOVE") return remove_next(std::move(names));
  queue_patch patch;
  patch.paused = what == "PAUSE";
  pause_next(std::move(names), patch);
}

// A group of them at a time: each group is one commit, and others have theirs in between.
void faktory_session::pause_next(std::vector<std::string> names, queue_patch patch) {
  if (has_left_) return finish_error(engine_is_over());
  if (names.empty()) return finish_ok();
  const auto group = std::make_shared<many_calls>();
  for (; !names.empty() && group->open <= queues_at_a_time; names.pop_back()) {
    ++group->open;
    to_.when_done(all_.jobs.configure(std::move(names.back()), patch),
                  [this, group](auto ended) { one_ended(*group, outcome_of(std::move(ended))); });
  }
  group->then = [this, names = std::move(names), patch]() mutable {
    pause_next(std::move(names), patch);
  };
  one_ended(*group, void_result(done{}));
}

sweep_request faktory_session::sweep_of(sweep_request::act what) {
  sweep_request made;
  made.what = what;
  made.until = sweep_stop_.get_token();
  made.in_next_turn = [this](std::function<void()> f) { in_next_turn(std::move(f)); };
  return made;
}

void faktory_session::remove_next(std::vector<std::string> names) {
  if (names.empty()) return finish_ok();
  sweep_request what = sweep_of(sweep_request::act::discard);
  what.which.queue = std::move(names.back());
  what.which.state = job_state::ready;
  names.pop_back();
  begin_sweep(all_.jobs, to_, std::move(what),
              [this, names = std::move(names)](const void_result& got) mutable {
                if (!got) return finish_error(got.error());
                remove_next(std::move(names));
              });
}

// MUTATE.

void faktory_session::mutate(std::string_view rest) {
  auto said = read_mutate(rest);
  if (!said) return say_error(said.error());
  using act = mutate_call::act;
  if (said->what == act::kill && said->target == job_state::dead) return say_ok();
  begin_command();
  sweep_stop_ = std::stop_source();
  sweep_request what = sweep_of(said->what == act::kill      ? sweep_request::act::kill
                                : said->what == act::requeue ? sweep_request::act::requeue
                                                             : sweep_request::act::discard);
  what.which.state = said->target;
  if (said->what != act::clear) {
    what.which.kind = std::move(said->jobtype);
    what.jids.insert(said->jids.begin(), said->jids.end());
    what.pattern = std::move(said->pattern);
  }
  begin_sweep(all_.jobs, to_, std::move(what),
              [this](const void_result& got) { got ? finish_ok() : finish_error(got.error()); });
}

// TRACK.

void faktory_session::track(std::string_view rest) {
  const std::string_view what = protocol::cut_word(rest);
  if (what == "GET") return track_get(rest);
  if (what == "SET") return track_set(rest);
  say_error("expected TRACK GET or TRACK SET");
}

void faktory_session::track_get(std::string_view text) {
  std::string jid(text);
  if (jid.empty() || jid.find(' ') != std::string::npos) return say_error("expected a jid");
  const auto known = all_.tracked.find(jid);
  const job_id id = known ? known->id : id_of_jid(jid).value_or(0);
  begin_command();
  to_.when_done(all_.jobs.get(id), [this, jid = std::move(jid), known](auto ended) {
    const auto found = outcome_of(std::move(ended));
    const unix_time changed = known ? known->changed_at : unix_time{};
    if (found) {
      const unix_time at = std::max(changed, std::max(found->created_at, found->ended_at));
      finish_bulk(tracking_of(jid, state_word(found->state), at, found->progress));
    } else if (found.error().code != error_code::not_found) {
      finish_error(found.error());
    } else {
      const bool has_ended_here = known && known->ended;
      finish_bulk(tracking_of(jid, has_ended_here ? state_word(*known->ended) : "unknown",
                              has_ended_here ? changed : unix_time{}, {}));
    }
  });
}

void faktory_session::track_set(std::string_view json) {
  const auto said = read_track(json);
  if (!said) return say_error(said.error());
  const auto job = all_.crew.find(me_, said->jid);
  if (!job) return say_error("Job not found " + said->jid + ": this worker does not hold it");
  begin_command();
  if (said->percent.has_value() == said->desc.has_value()) {
    std::optional<progress> how_far;
    if (said->percent) how_far = progress{*said->percent, *said->desc};
    return finish_track(*said, job->lease, how_far);
  }
  // What it does not name stays as it is.
  to_.when_done(all_.jobs.get(job->lease.job),
                [this, said = *said, lease = job->lease](auto ended) {
                  const auto found = outcome_of(std::move(ended));
                  if (!found) return finish_error(found.error());
                  progress how_far = found->progress.value_or(progress{});
                  how_far.percent = said.percent.value_or(how_far.percent);
                  how_far.text = said.desc.value_or(how_far.text);
                  finish_track(said, lease, how_far);
                });
}

void faktory_session::finish_track(const track_call& said, const lease_ref& lease,
                                   const std::optional<progress>& how_far) {
  const unix_time now = all_.time.now();
  if (how_far) {
    if (auto told = all_.jobs.report(lease, *how_far); !told) return finish_error(told.error());
    all_.tracked.saw_change(said.jid, now);
  }
  if (said.reserve_until) {
    const auto known = all_.jobs.lease_of(lease.job);
    const unix_time longest = now + std::chrono::seconds(reserve_seconds_max);
    const unix_time until = std::min(*said.reserve_until, longest);
    // Never sooner than it is.
    if (known && until > known->until) {
      if (auto got = all_.jobs.extend(lease, until - now); !got) return finish_error(got.error());
    }
  }
  finish_ok();
}

// BATCH.

void faktory_session::batch(std::string_view rest) {
  const std::string_view what = protocol::cut_word(rest);
  if (what == "NEW") return batch_new(rest);
  if (what != "OPEN" && what != "COMMIT" && what != "STATUS") {
    return say_error("expected BATCH NEW, BATCH OPEN, BATCH COMMIT or BATCH STATUS");
  }
  const auto id = id_of_bid(rest);
  if (!id) return say_error("No such batch " + std::string(rest.substr(0, 40)));
  if (what == "OPEN") return batch_open(*id);
  if (what == "STATUS") return batch_status(*id);
  finish_when(all_.jobs.close_batch(*id));
}

void faktory_session::batch_new(std::string_view json) {
  auto said = read_batch(json, all_.time.now());
  if (!said) return say_error(said.error());
  batch_table::entry known;
  if (!said->parent_bid.empty()) {
    const auto parent = id_of_bid(said->parent_bid);
    if (!parent) return say_error("parent_bid: no such batch " + said->parent_bid);
    known.parent = *parent;
    // The parent goes on until what its child calls is done.
    for (auto* const callback : {&said->success, &said->complete}) {
      if (*callback) (*callback)->batch = *parent;
    }
  }
  batch_spec spec;
  spec.name = std::move(said->description);
  spec.open = true;
  spec.on_success = std::move(said->success);
  spec.on_end = std::move(said->complete);
  const wait_limits limits(deadline::after(all_.options.push_wait, all_.time.timers()),
                           to_.gone_token());
  begin_command();
  to_.when_done(all_.jobs.push_batch(std::move(spec), limits), [this, known](auto ended) mutable {
    const auto got = outcome_of(std::move(ended));
    if (!got) return finish_error(got.error());
    known.success = got->on_success;
    known.complete = got->on_end;
    all_.batches.add(got->id, known);
    finish_bulk(bid_of(got->id));
  });
}

void faktory_session::batch_open(job_id id) {
  begin_command();
  to_.when_done(all_.jobs.get_batch(id), [this, id](auto ended) {
    const auto found = outcome_of(std::move(ended));
    if (!found) return finish_error(found.error());
    if (!found->has_ended()) return finish_bulk(bid_of(id));
    finish_error({error_code::wrong_state, "batch " + bid_of(id) + " has ended"});
  });
}

void faktory_session::batch_status(job_id id) {
  begin_command();
  to_.when_done(all_.jobs.get_batch(id), [this, id](auto ended) {
    const auto found = outcome_of(std::move(ended));
    if (!found) return finish_error(found.error());
    const batch_table::entry known = all_.batches.find(id);
    to_.when_done(all_.jobs.get(known.success), [this, info = *found, known](auto first) {
      const auto success = outcome_of(std::move(first));
      to_.when_done(all_.jobs.get(known.complete), [this, info, known, success](auto second) {
        const auto complete = outcome_of(std::move(second));
        const bool succeeded = info.has_ended() && info.failed == 0;
        write_batch_status(info, known, callback_state(success, succeeded),
                           callback_state(complete, info.has_ended()));
      });
    });
  });
}

void faktory_session::write_batch_status(const batch_info& info, const batch_table::entry& known,
                                         std::string_view success, std::string_view complete) {
  std::string text;
  json_writer w(text);
  w.begin_object().key("bid").value(bid_of(info.id));
  w.key("total").value(info.total);
  w.key("pending").value(info.pending);
  w.key("failed").value(info.failed);
  w.key("created_at").value(info.created_at);
  w.key("description").value(info.name);
  w.key("parent_bid").value(known.parent == 0 ? std::string() : bid_of(known.parent));
  w.key("complete_st").value(complete);
  w.key("success_st").value(success);
  w.end_object();
  finish_bulk(text);
}

}  // namespace sluice::jobs::faktory
