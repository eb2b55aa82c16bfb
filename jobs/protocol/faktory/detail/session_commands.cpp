// Commands about the server: INFO, FLUSH, QUEUE, MUTATE, TRACK, BATCH.

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

constexpr std::uint64_t queues_without_yield = 100;  // INFO yields first if there are more queues
// Queues changed in one commit, and jobs purged in one commit.
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

// Faktory's names of the states.
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
                        const std::optional<progress>& new_progress) {
  std::string out;
  json_writer w(out);
  w.begin_object().key("jid").value(jid);
  if (new_progress) {
    w.key("percent")
        .value(std::llround(new_progress->percent))
        .key("desc")
        .value(new_progress->text);
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

// The state of a batch's callback job: "" held, "1" released, "2" done.
std::string_view callback_state(const result<job>& found, bool batch_let_go) {
  if (!found) return batch_let_go ? "2" : "";
  if (found->state == job_state::held) return "";
  return found->state == job_state::done ? "2" : "1";
}

}  // namespace

// INFO.

// Takes long with many queues: then yields to other connections first.
void faktory_session::info(std::string_view rest) {
  if (!has_no_arguments("INFO", rest)) return;
  begin_command();
  if (queues_last_seen_ < queues_without_yield) return write_info();
  defer([this] { write_info(); });
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

// FLUSH: fails the fetched jobs for good, then purges every queue with its dead jobs.

void faktory_session::flush(std::string_view rest) {
  if (!has_no_arguments("FLUSH", rest)) return;
  begin_command();
  failure why;
  why.type = "Flushed";
  why.message = "ended by FLUSH";
  why.for_good = true;
  const auto ends = std::make_shared<many_calls>();
  ends->then = [this] { purge_next(all_.jobs.queues()); };
  for (const workers::fetched& job : all_.crew.all_fetched()) {
    ++ends->open;
    client_.when_done(all_.jobs.fail(job.lease, why), [this, ends, job](auto ended) {
      const auto got = outcome_of(std::move(ended));
      const bool is_done = got || is_too_late(got.error());
      if (is_done) all_.crew.remove_job(job);
      end_call(*ends, is_done ? void_result(done{}) : void_result(got.error()));
    });
  }
  end_call(*ends, void_result(done{}));
}

template <class T>
void faktory_session::end_call(many_calls& calls, const result<T>& got) {
  if (!got && !calls.first_error) calls.first_error = got.error();
  if (--calls.open > 0) return;
  calls.first_error ? finish_error(*calls.first_error) : calls.then();
}

// Purges several small queues at a time, so that they share a commit.
void faktory_session::purge_next(std::vector<queue_info> queues) {
  if (has_left_) return finish_error(shutdown_error());
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
    client_.when_done(all_.jobs.purge(q.name), [this, group](auto ended) {
      const auto got = outcome_of(std::move(ended));
      const bool is_gone = !got && got.error().code == error_code::not_found;
      end_call(*group, is_gone || got ? void_result(done{}) : void_result(got.error()));
    });
  }
  group->then = [this, queues = std::move(queues)]() mutable { purge_next(std::move(queues)); };
  end_call(*group, void_result(done{}));
}

// QUEUE.

void faktory_session::queue(std::string_view rest) {
  const std::string_view action = protocol::cut_word(rest);
  if (action != "PAUSE" && action != "RESUME" && action != "REMOVE") {
    return respond_error("expected QUEUE PAUSE, QUEUE RESUME or QUEUE REMOVE");
  }
  std::vector<std::string> names = words_of(rest);
  if (names.empty()) return respond_error("expected the names of queues, or *");
  if (std::ranges::find(names, "*") != names.end()) {
    names = queues_of_clients(all_.jobs);
  }
  for (const std::string& name : names) {
    if (auto named = validate_client_queue(name); !named) return respond_error(named.error());
  }
  begin_command();
  sweep_stop_ = std::stop_source();
  if (action == "REMOVE") return remove_next(std::move(names));
  queue_patch patch;
  patch.paused = action == "PAUSE";
  pause_next(std::move(names), patch);
}

// Changes the queues in groups: each group is one commit, and other connections' commits can run in
// between.
void faktory_session::pause_next(std::vector<std::string> names, queue_patch patch) {
  if (has_left_) return finish_error(shutdown_error());
  if (names.empty()) return finish_ok();
  const auto group = std::make_shared<many_calls>();
  for (; !names.empty() && group->open <= queues_at_a_time; names.pop_back()) {
    ++group->open;
    client_.when_done(
        all_.jobs.configure(std::move(names.back()), patch),
        [this, group](auto ended) { end_call(*group, outcome_of(std::move(ended))); });
  }
  group->then = [this, names = std::move(names), patch]() mutable {
    pause_next(std::move(names), patch);
  };
  end_call(*group, void_result(done{}));
}

sweep_request faktory_session::sweep_of(sweep_request::act action) {
  sweep_request made;
  made.action = action;
  made.stop = sweep_stop_.get_token();
  made.defer = [this](std::function<void()> f) { defer(std::move(f)); };
  return made;
}

void faktory_session::remove_next(std::vector<std::string> names) {
  if (names.empty()) return finish_ok();
  sweep_request request = sweep_of(sweep_request::act::discard);
  request.filter.queue = std::move(names.back());
  request.filter.state = job_state::ready;
  names.pop_back();
  begin_sweep(all_.jobs, client_, std::move(request),
              [this, names = std::move(names)](const void_result& got) mutable {
                if (!got) return finish_error(got.error());
                remove_next(std::move(names));
              });
}

// MUTATE.

void faktory_session::mutate(std::string_view rest) {
  auto call = read_mutate(rest);
  if (!call) return respond_error(call.error());
  using act = mutate_call::act;
  if (call->action == act::kill && call->target == job_state::dead) return respond_ok();
  begin_command();
  sweep_stop_ = std::stop_source();
  sweep_request request = sweep_of(call->action == act::kill      ? sweep_request::act::kill
                                   : call->action == act::requeue ? sweep_request::act::requeue
                                                                  : sweep_request::act::discard);
  request.filter.state = call->target;
  if (call->action != act::clear) {
    request.filter.kind = std::move(call->jobtype);
    request.jids.insert(call->jids.begin(), call->jids.end());
    request.pattern = std::move(call->pattern);
  }
  begin_sweep(all_.jobs, client_, std::move(request),
              [this](const void_result& got) { got ? finish_ok() : finish_error(got.error()); });
}

// TRACK.

void faktory_session::track(std::string_view rest) {
  const std::string_view action = protocol::cut_word(rest);
  if (action == "GET") return track_get(rest);
  if (action == "SET") return track_set(rest);
  respond_error("expected TRACK GET or TRACK SET");
}

void faktory_session::track_get(std::string_view text) {
  std::string jid(text);
  if (jid.empty() || jid.find(' ') != std::string::npos) return respond_error("expected a jid");
  const auto known = all_.tracked.find(jid);
  const job_id id = known ? known->id : id_of_jid(jid).value_or(0);
  begin_command();
  client_.when_done(all_.jobs.get(id), [this, jid = std::move(jid), known](auto ended) {
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
  const auto call = read_track(json);
  if (!call) return respond_error(call.error());
  const auto job = all_.crew.find(me_, call->jid);
  if (!job) return respond_error("Job not found " + call->jid + ": this worker does not hold it");
  begin_command();
  if (call->percent.has_value() == call->desc.has_value()) {
    std::optional<progress> new_progress;
    if (call->percent) new_progress = progress{*call->percent, *call->desc};
    return finish_track(*call, job->lease, new_progress);
  }
  // The omitted member keeps its value.
  client_.when_done(all_.jobs.get(job->lease.job),
                    [this, call = *call, lease = job->lease](auto ended) {
                      const auto found = outcome_of(std::move(ended));
                      if (!found) return finish_error(found.error());
                      progress new_progress = found->progress.value_or(progress{});
                      new_progress.percent = call.percent.value_or(new_progress.percent);
                      new_progress.text = call.desc.value_or(new_progress.text);
                      finish_track(call, lease, new_progress);
                    });
}

void faktory_session::finish_track(const track_call& call, const lease_ref& lease,
                                   const std::optional<progress>& new_progress) {
  const unix_time now = all_.time.now();
  if (new_progress) {
    if (auto reported = all_.jobs.report(lease, *new_progress); !reported)
      return finish_error(reported.error());
    all_.tracked.note_change(call.jid, now);
  }
  if (call.reserve_until) {
    const auto known = all_.jobs.lease_of(lease.job);
    const unix_time longest = now + std::chrono::seconds(reserve_seconds_max);
    const unix_time until = std::min(*call.reserve_until, longest);
    // Never shortens the lease.
    if (known && until > known->until) {
      if (auto got = all_.jobs.extend(lease, until - now); !got) return finish_error(got.error());
    }
  }
  finish_ok();
}

// BATCH.

void faktory_session::batch(std::string_view rest) {
  const std::string_view action = protocol::cut_word(rest);
  if (action == "NEW") return batch_new(rest);
  if (action != "OPEN" && action != "COMMIT" && action != "STATUS") {
    return respond_error("expected BATCH NEW, BATCH OPEN, BATCH COMMIT or BATCH STATUS");
  }
  const auto id = id_of_bid(rest);
  if (!id) return respond_error("No such batch " + std::string(rest.substr(0, 40)));
  if (action == "OPEN") return batch_open(*id);
  if (action == "STATUS") return batch_status(*id);
  finish_when(all_.jobs.close_batch(*id));
}

void faktory_session::batch_new(std::string_view json) {
  auto call = read_batch(json, all_.time.now());
  if (!call) return respond_error(call.error());
  batch_table::entry known;
  if (!call->parent_bid.empty()) {
    const auto parent = id_of_bid(call->parent_bid);
    if (!parent) return respond_error("parent_bid: no such batch " + call->parent_bid);
    known.parent = *parent;
    // The parent does not end before the callbacks of its children.
    for (auto* const callback : {&call->success, &call->complete}) {
      if (*callback) (*callback)->batch = *parent;
    }
  }
  batch_spec spec;
  spec.name = std::move(call->description);
  spec.open = true;
  spec.on_success = std::move(call->success);
  spec.on_end = std::move(call->complete);
  const wait_limits limits(deadline::after(all_.options.push_wait, all_.time.timers()),
                           client_.gone_token());
  begin_command();
  client_.when_done(all_.jobs.push_batch(std::move(spec), limits),
                    [this, known](auto ended) mutable {
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
  client_.when_done(all_.jobs.get_batch(id), [this, id](auto ended) {
    const auto found = outcome_of(std::move(ended));
    if (!found) return finish_error(found.error());
    if (!found->has_ended()) return finish_bulk(bid_of(id));
    finish_error({error_code::wrong_state, "batch " + bid_of(id) + " has ended"});
  });
}

void faktory_session::batch_status(job_id id) {
  begin_command();
  client_.when_done(all_.jobs.get_batch(id), [this, id](auto ended) {
    const auto found = outcome_of(std::move(ended));
    if (!found) return finish_error(found.error());
    const batch_table::entry known = all_.batches.find(id);
    client_.when_done(all_.jobs.get(known.success), [this, info = *found, known](auto first) {
      const auto success = outcome_of(std::move(first));
      client_.when_done(all_.jobs.get(known.complete), [this, info, known, success](auto second) {
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
