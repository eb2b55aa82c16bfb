// Producers and readers of jobs.
#include <algorithm>
#include <charconv>

#include "jobs/http/detail/handlers.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/json/text.hpp"
#include "jobs/model/own_queue.hpp"

namespace sluice::jobs::http {
namespace {

using fate = push_receipt::fate;

void answer_pushed(const ticket& reply, const result<push_receipt>& pushed,
                   std::optional<job_state> state) {
  if (!pushed) return reply.refuse(pushed.error());
  std::string& body = reply.client().scratch();
  if (pushed->outcome != fate::accepted) {
    json::write(body, *pushed);
    return reply.answer_json(pushed->outcome == fate::duplicate ? 200 : 202, body);
  }
  json::json_writer w(body);
  w.begin_object().key("id").value(pushed->id);
  if (state) w.key("state").value(to_string(*state));
  w.end_object();
  reply.answer_json(201, body, "Location: /v1/jobs/" + std::to_string(pushed->id) + "\r\n");
}

void push_one(engine& jobs, const ticket& asked, const grant& may, job_spec spec, milliseconds wait,
              unix_time now) {
  // Only the store knows whether dependencies or a busy key make it held; the state is unknown
  // then.
  std::optional<job_state> state;
  if (spec.after.empty() && spec.key.empty()) {
    state = spec.run_at > now ? job_state::scheduled : job_state::ready;
  }
  when_done(asked, jobs.push(std::move(spec), may.limits(asked, wait)),
            [state, may](const ticket& reply, const result<push_receipt>& pushed) {
              const auto why = pushed ? std::nullopt : may.refusal();
              why ? reply.refuse(*why) : answer_pushed(reply, pushed, state);
            });
}

void push_many(engine& jobs, const ticket& asked, const grant& may, std::vector<job_spec> specs,
               bulk mode, milliseconds wait) {
  when_done(asked, jobs.push_many(std::move(specs), mode, may.limits(asked, wait)),
            [mode, may](const ticket& reply, const std::vector<result<push_receipt>>& results) {
              const bool has_any = std::ranges::any_of(results, [](const auto& r) { return !!r; });
              const auto why = has_any ? std::nullopt : may.refusal();
              why ? reply.refuse(*why) : answer_pushes(reply, results, mode);
            });
}

void wait_for_job(engine& jobs, const ticket& asked, const grant& may, job_id id,
                  milliseconds wait) {
  when_done(asked, jobs.await_end(id, may.limits(asked, wait)),
            [&jobs, may, id](const ticket& reply, const result<job_ptr>& ended) {
              // The job has not ended in time, or the server stops before: reply with its state.
              const bool is_unended = !ended && (ended.error().code == error_code::timed_out ||
                                                 ended.error().code == error_code::stopped ||
                                                 ended.error().code == error_code::shutting_down);
              if (!ended && !is_unended) return reply.refuse(may.refusal().value_or(ended.error()));
              // All calls that waited for this job resume at once, each with a reply as long as the
              // job.
              reply.begin_load(
                  [&jobs, may, id, ended_job = ended ? *ended : nullptr](const ticket& back) {
                    if (const auto why = may.refusal()) return back.refuse(*why);
                    if (ended_job == nullptr)
                      return when_done(back, jobs.get(id), answer_with<job>);
                    std::string& body = back.client().scratch();
                    json::write(body, *ended_job);
                    back.answer_json(200, body);
                  });
            });
}

result<list_request> read_list_request(std::string_view query) {
  static constexpr std::array<std::string_view, 6> names = {"queue", "state", "kind",
                                                            "batch", "after", "limit"};
  auto values = read_query(query, names);
  if (!values) return std::move(values.error());
  auto& [queue, state, kind, batch, after, limit] = *values;
  list_request request;
  request.queue = queue.value_or("");
  request.kind = kind.value_or("");
  if (state) {
    request.state = job_state_from(*state);
    if (!request.state) {
      return bad_parameter("state",
                           "expected scheduled, held, ready, running, retrying, done, dead or "
                           "cancelled");
    }
  }
  auto of_batch = number_or("batch", batch, 0, 1, id_max);
  if (!of_batch) return std::move(of_batch.error());
  request.batch = *of_batch;
  auto id = number_or("after", after, 0, 0, id_max);
  if (!id) return std::move(id.error());
  request.after = *id;
  auto count = number_or("limit", limit, request.limit, 1, 1000);
  if (!count) return std::move(count.error());
  request.limit = static_cast<std::size_t>(*count);
  return request;
}

}  // namespace

error bad_parameter(std::string_view name, std::string_view why) {
  return {error_code::invalid, "the parameter '" + std::string(name) + "': " + std::string(why)};
}

result<std::uint64_t> number_of(std::string_view name, std::string_view text, std::uint64_t least,
                                std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    return bad_parameter(name, "expected a whole number from " + std::to_string(least) + " to " +
                                   std::to_string(most));
  }
  return value;
}

result<std::uint64_t> number_or(std::string_view name, const std::optional<std::string>& text,
                                std::uint64_t otherwise, std::uint64_t least, std::uint64_t most) {
  if (!text) return otherwise;
  return number_of(name, *text, least, most);
}

result<page_parameters> read_page_parameters(std::string_view query, std::size_t otherwise) {
  static constexpr std::array<std::string_view, 2> names = {"after", "limit"};
  auto values = read_query(query, names);
  if (!values) return std::move(values.error());
  auto after = number_or("after", (*values)[0], 0, 0, id_max);
  if (!after) return std::move(after.error());
  auto limit = number_or("limit", (*values)[1], otherwise, 1, 1000);
  if (!limit) return std::move(limit.error());
  return page_parameters{*after, static_cast<std::size_t>(*limit)};
}

bool may_use(const call& c, role needed, std::string_view queue) {
  if (c.caller.may(needed, queue)) return true;
  c.reply.refuse(c.caller.refusal(needed, queue));
  return false;
}

std::optional<error> refusal_of_own(std::string_view queue) {
  if (!is_servers_own(queue)) return std::nullopt;
  return error{error_code::forbidden,
               "queue '" + std::string(queue) + "' belongs to the server: clients cannot use it"};
}

bool may_use_as_client(const call& c, role needed, std::string_view queue) {
  if (!may_use(c, needed, queue)) return false;
  const auto why = refusal_of_own(queue);
  if (why) c.reply.refuse(*why);
  return !why;
}

bool sees_every_queue(const call& c, std::string_view subject) {
  if (!c.caller.is_scoped()) return true;
  c.reply.refuse({error_code::forbidden, std::string(subject) +
                                             " cover all queues, but the token " +
                                             std::string(c.caller.id()) + " is limited to some"});
  return false;
}

error no_such_job(job_id id) {
  return {error_code::not_found,
          "job " + std::to_string(id) + " does not exist, or its retention period has passed", id};
}

bool has_no_query(const call& c) {
  if (c.head.query().empty()) return true;
  const auto values = read_query(c.head.query(), std::array<std::string_view, 0>{});
  if (values) return true;
  c.reply.refuse(values.error());
  return false;
}

result<milliseconds> wait_of(const call& c, const std::optional<std::string>& given,
                             milliseconds otherwise) {
  milliseconds wait = c.head.prefer_wait.value_or(otherwise);
  if (given) {
    auto parsed = parse_duration(*given);
    if (!parsed) return bad_parameter("wait", parsed.error().message);
    wait = *parsed;
  }
  return std::min(wait, c.server.options.wait_max);
}

result<push_parameters> read_push_parameters(const call& c) {
  static constexpr std::array<std::string_view, 2> names = {"wait", "mode"};
  auto values = read_query(c.head.query(), names);
  if (!values) return std::move(values.error());
  push_parameters p;
  auto wait = wait_of(c, (*values)[0], c.server.options.push_wait);
  if (!wait) return std::move(wait.error());
  p.wait = *wait;
  if (const auto& mode = (*values)[1]) {
    const auto known = json::bulk_from(*mode);
    if (!known) return bad_parameter("mode", "expected each or all_or_nothing");
    p.mode = *known;
  }
  return p;
}

void push_jobs(call& c) {
  const auto asked = read_push_parameters(c);
  if (!asked) return c.reply.refuse(asked.error());
  const unix_time now = c.server.time.now();
  auto push = json::read<json::push_call>(c.body, {.now = c.server.time.after(milliseconds(0))});
  if (!push) return c.reply.refuse(push.error());
  std::vector<job_id> named;
  for (const job_spec& spec : push->jobs) {
    if (!may_use_as_client(c, role::push, spec.queue)) return;
    if (c.caller.is_scoped()) add_named(named, spec);
  }
  if (!push->is_single && asked->mode && push->has_mode && *asked->mode != push->mode) {
    return c.reply.refuse(bad_parameter("mode", "the body has a different mode; send one"));
  }
  const bulk mode = asked->mode.value_or(push->mode);
  const grant may(c.server, c.caller, role::push, queues_of(c.caller, push->jobs));
  const std::size_t count = push->jobs.size();
  auto push_checked = [&jobs = c.jobs, may, push = *std::move(push), wait = asked->wait, now,
                       mode](const ticket& reply) mutable {
    if (push.is_single) return push_one(jobs, reply, may, std::move(push.jobs.front()), wait, now);
    push_many(jobs, reply, may, std::move(push.jobs), mode, wait);
  };
  if (named.empty()) return push_checked(c.reply);
  check_named(c, std::move(named), count, std::move(push_checked));
}

void answer_pushes(const ticket& reply, const std::vector<result<push_receipt>>& results,
                   bulk mode) {
  if (mode == bulk::all_or_nothing) {
    // Nothing was pushed: report one error, preferably an error with a conflicting job.
    auto failed =
        std::ranges::find_if(results, [](const auto& r) { return !r && r.error().job != 0; });
    if (failed == results.end())
      failed = std::ranges::find_if(results, [](const auto& r) { return !r; });
    if (failed != results.end()) return reply.refuse(failed->error());
  }
  push_results all;
  for (const auto& r : results) all.note(r);
  all.answer(reply);
}

void push_results::note(const result<push_receipt>& r) {
  if (noted_++ > 0) json_ += ',';
  json::write_item(json_, r);
  if (r) {
    if (r->outcome == fate::accepted) ++accepted_;
    return;
  }
  const auto later = retry_after(r.error().code);
  if (later.count() == 0) return;
  ++retryable_;
  if (!worst_error_ || later > retry_after(worst_error_->code)) worst_error_ = r.error();
}

void push_results::answer(const ticket& reply) const {
  std::string& body = reply.client().scratch();
  // Appended in place: the results can be long.
  const auto append_rest = [&] {
    body += "\"accepted\":" + std::to_string(accepted_) + ",\"results\":[";
    body += json_;
    body += "]}";
  };
  if (worst_error_ && retryable_ == noted_) {
    const problem_parts p = make_problem(*worst_error_);
    body.append(p.body, 0, p.body.size() - 1);  // without the closing bracket
    body += ',';
    append_rest();
    return reply.answer(
        {.status = p.status, .type = problem_type, .body = body, .headers = p.headers});
  }
  body += '{';
  append_rest();
  std::string headers;
  if (worst_error_) {
    headers = "Retry-After: " + std::to_string(retry_after(worst_error_->code).count()) + "\r\n";
  }
  reply.answer_json(200, body, headers);
}

void get_job(call& c) {
  static constexpr std::array<std::string_view, 1> names = {"wait"};
  const auto values = read_query(c.head.query(), names);
  if (!values) return c.reply.refuse(values.error());
  const auto wait = wait_of(c, (*values)[0], milliseconds(0));
  if (!wait) return c.reply.refuse(wait.error());
  engine& jobs = c.jobs;
  const job_id id = c.id;
  if (*wait == milliseconds(0)) {
    return with_job(c, role::read, [&jobs, id](ticket reply) {
      when_done(std::move(reply), jobs.get(id), answer_with<job>);
    });
  }
  if (c.caller.is_local()) {
    return wait_for_job(jobs, c.reply, grant(c.server, c.caller, role::read), id, *wait);
  }
  // Look up its queue for the grant: the token may lose that queue while the call waits.
  when_loaded(
      c.reply, [&jobs, id] { return jobs.get(id); },
      [&server = c.server, &jobs, caller = c.caller, wait = *wait](const ticket& reply,
                                                                   const result<job>& found) {
        if (!found) return reply.refuse(found.error());
        const std::string& queue = found->spec.queue;
        if (!caller.may(role::read, queue)) return reply.refuse(no_such_job(found->id));
        wait_for_job(jobs, reply, grant(server, caller, role::read, {queue}), found->id, wait);
      });
}

void list_jobs(call& c) {
  const auto request = read_list_request(c.head.query());
  if (!request) return c.reply.refuse(request.error());
  if (!request->queue.empty() && !may_use(c, role::read, request->queue)) return;
  when_done(std::move(c.reply), c.jobs.list(*request),
            [caller = std::move(c.caller)](const ticket& reply, result<job_page> page) {
              if (page && caller.is_scoped()) {
                std::erase_if(page->jobs,
                              [&](const job& j) { return !caller.may(role::read, j.spec.queue); });
              }
              answer_with<job_page>(reply, page);
            });
}

void cancel_job(call& c) {
  if (!has_no_query(c)) return;
  with_job(c, role::push, [&jobs = c.jobs, id = c.id](ticket reply) {
    when_done(std::move(reply), jobs.cancel(id), answer_with<job>);
  });
}

void retry_job(call& c) {
  if (!has_no_query(c)) return;
  with_job(c, role::push, [&jobs = c.jobs, id = c.id](ticket reply) {
    when_done(std::move(reply), jobs.retry(id), answer_with<job>);
  });
}

void remove_job(call& c) {
  if (!has_no_query(c)) return;
  with_job(c, role::admin, [&jobs = c.jobs, id = c.id](ticket reply) {
    when_done(std::move(reply), jobs.remove(id), answer_done);
  });
}

}  // namespace sluice::jobs::http
