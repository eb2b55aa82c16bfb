// Workers: leases and their ends.
#include "jobs/http/detail/handlers.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "jobs/json/codec.hpp"

namespace sluice::jobs::http {
namespace {

void give_back(engine& jobs, const std::vector<leased_job>& leased) {
  for (const leased_job& l : leased) const auto given = jobs.release(l.ref());
}

void answer_leased(engine& jobs, const ticket& reply, const grant& may,
                   const result<std::vector<leased_job>>& leased) {
  if (const auto why = may.refusal()) {
    if (leased) give_back(jobs, *leased);
    return reply.refuse(*why);
  }
  if (!leased) {
    const error_code code = leased.error().code;
    const bool is_empty = code == error_code::timed_out || code == error_code::stopped;
    return is_empty ? reply.answer(204) : reply.refuse(leased.error());
  }
  // The client has gone.
  if (reply.client().is_gone()) {
    give_back(jobs, *leased);
    return reply.answer(204);
  }
  std::string& body = reply.client().scratch();
  json::write(body, *leased);
  response r{.status = 200, .type = json_type, .body = body};
  r.leases.reserve(leased->size());
  for (const leased_job& l : *leased) r.leases.push_back(l.ref());
  reply.answer(std::move(r));
}

// Returns none if the token has the role work for the job's queue, or the job does not exist: the
// engine reports that.
std::optional<error> refusal_of(const identity& caller, job_id id, const result<job>& found) {
  if (!found && found.error().code == error_code::not_found) return std::nullopt;
  if (!found) return found.error();
  if (caller.may(role::work, found->spec.queue)) return std::nullopt;
  return no_such_job(id);
}

// Calls `then(ticket)` if the token of the call may work in the queue of the call's job. The parsed
// body, of `lines` lines, counts as the connection's memory until then.
template <class Then>
void with_lease(call& c, Then then, std::size_t lines = 0) {
  if (!c.caller.is_scoped()) return then(std::move(c.reply));
  c.reply.keep(c.body.size() + lines * sizeof(std::string));
  when_loaded(
      c.reply, [&jobs = c.jobs, id = c.id] { return jobs.get(id); },
      [&server = c.server, id = c.id, caller = c.caller, then = std::move(then)](
          const ticket& reply, const result<job>& found) mutable {
        if (const auto why = refusal_of(caller, id, found)) return reply.refuse(*why);
        if (const auto why = server.refusal_of(caller, role::work)) return reply.refuse(*why);
        reply.keep(0);
        then(reply);
      });
}

// Many acks with a token that is limited to some queues: looks up each job, and acks those of its
// queues.
struct acking {
  const server_state& server;
  engine& jobs;
  const identity caller;
  std::vector<ack_item> asked;
  std::vector<std::optional<error>> refused{};  // for each job looked up so far

  using ptr = std::shared_ptr<acking>;

  static void check_next(const ticket& reply, ptr state) {
    if (state->refused.size() == state->asked.size()) return finish(reply, std::move(state));
    const job_id id = state->asked[state->refused.size()].lease.job;
    engine& jobs = state->jobs;
    when_loaded(
        reply, [&jobs, id] { return jobs.get(id); },
        [state = std::move(state), id](const ticket& back, const result<job>& found) mutable {
          state->refused.push_back(refusal_of(state->caller, id, found));
          check_next(back, std::move(state));
        });
  }

  static void finish(const ticket& reply, ptr state) {
    if (const auto why = state->server.refusal_of(state->caller, role::work))
      return reply.refuse(*why);
    std::vector<ack_item> allowed;
    for (std::size_t i = 0; i < state->asked.size(); ++i) {
      if (!state->refused[i]) allowed.push_back(std::move(state->asked[i]));
    }
    state->asked = {};
    reply.keep(0);
    if (allowed.empty()) return state->answer(reply, {});
    engine& jobs = state->jobs;
    when_done(
        reply, jobs.ack_many(std::move(allowed)),
        [state = std::move(state)](const ticket& back, const std::vector<void_result>& results) {
          state->answer(back, results);
        });
  }

  void answer(const ticket& reply, const std::vector<void_result>& acked) const {
    std::vector<void_result> all;
    auto next = acked.begin();
    for (const auto& why : refused) all.push_back(why ? void_result(*why) : *next++);
    std::string& body = reply.client().scratch();
    json::write(body, all);
    reply.answer_json(200, body);
  }
};

}  // namespace

void lease_jobs(call& c) {
  auto asked = body_of<json::lease_call>(c);
  if (!asked) return;
  for (const std::string& queue : asked->request.queues) {
    if (!may_use_as_client(c, role::work, queue)) return;
  }
  const milliseconds wait = std::min(asked->wait, c.server.options.wait_max);
  const grant may(c.server, c.caller, role::work,
                  c.caller.is_local() ? std::vector<std::string>() : asked->request.queues);
  engine& jobs = c.jobs;
  auto leased = jobs.lease(std::move(asked->request), may.limits(c.reply, wait));
  when_done(std::move(c.reply), std::move(leased),
            [&jobs, may](const ticket& reply, const result<std::vector<leased_job>>& taken) {
              answer_leased(jobs, reply, may, taken);
            });
}

void extend_lease(call& c) {
  const auto asked = body_of<json::extend_call>(c);
  if (!asked) return;
  with_lease(c, [&jobs = c.jobs, id = c.id, asked = *asked](const ticket& reply) {
    answer_with(reply, jobs.extend({id, asked.lease}, asked.by, asked.progress));
  });
}

void ack_job(call& c) {
  auto asked = body_of<json::ack_call>(c);
  if (!asked) return;
  with_lease(c, [&jobs = c.jobs, id = c.id, asked = *std::move(asked)](ticket reply) mutable {
    when_done(std::move(reply), jobs.ack({id, asked.lease}, std::move(asked.result)), answer_done);
  });
}

void ack_jobs(call& c) {
  auto asked = body_of<json::acks_call>(c);
  if (!asked) return;
  if (c.caller.is_scoped()) {
    c.reply.keep(c.body.size() + asked->acks.size() * sizeof(ack_item));
    return acking::check_next(c.reply, std::make_shared<acking>(acking{c.server, c.jobs, c.caller,
                                                                       std::move(asked->acks)}));
  }
  when_done(std::move(c.reply), c.jobs.ack_many(std::move(asked->acks)),
            [](const ticket& reply, const std::vector<void_result>& results) {
              std::string& body = reply.client().scratch();
              json::write(body, results);
              reply.answer_json(200, body);
            });
}

void fail_job(call& c) {
  auto asked = body_of<json::fail_call>(c);
  if (!asked) return;
  with_lease(c, [&jobs = c.jobs, id = c.id, asked = *std::move(asked)](ticket reply) mutable {
    when_done(std::move(reply), jobs.fail({id, asked.lease}, std::move(asked.failure)),
              answer_with<fail_receipt>);
  });
}

void release_job(call& c) {
  const auto asked = body_of<json::release_call>(c);
  if (!asked) return;
  with_lease(c, [&jobs = c.jobs, id = c.id, asked = *asked](ticket reply) {
    when_done(std::move(reply), jobs.release({id, asked.lease}, asked.release), answer_done);
  });
}

void report_progress(call& c) {
  auto asked = body_of<json::progress_call>(c);
  if (!asked) return;
  with_lease(c,
             [&jobs = c.jobs, id = c.id, asked = *std::move(asked)](const ticket& reply) mutable {
               answer_done(reply, jobs.report({id, asked.lease}, std::move(asked.progress)));
             });
}

void add_logs(call& c) {
  auto asked = body_of<json::log_call>(c);
  if (!asked) return;
  const std::size_t lines = asked->lines.size();
  with_lease(
      c,
      [&jobs = c.jobs, id = c.id, asked = *std::move(asked)](ticket reply) mutable {
        when_done(std::move(reply), jobs.log({id, asked.lease}, std::move(asked.lines)),
                  answer_done);
      },
      lines);
}

void get_logs(call& c) {
  const auto page = read_page_parameters(c.head.query(), 1000);
  if (!page) return c.reply.refuse(page.error());
  with_job(c, role::read, [&jobs = c.jobs, id = c.id, page = *page](ticket asked) {
    when_done(std::move(asked), jobs.logs(id, page.after, page.limit),
              [&jobs, id](const ticket& reply, const result<log_page>& found) {
                if (!found || !found->lines.empty()) return answer_with(reply, found);
                // Either the job has no log, or there is no such job.
                when_done(reply, jobs.get(id),
                          [none = *found](const ticket& back, const result<job>& owner) {
                            if (!owner) return back.refuse(owner.error());
                            answer_with(back, result<log_page>(none));
                          });
              });
  });
}

}  // namespace sluice::jobs::http
