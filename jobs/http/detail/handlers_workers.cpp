// Workers: leases, and how they end.
#include "jobs/http/detail/handlers.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "jobs/json/codec.hpp"

namespace sluice::jobs::http {
namespace {

void give_back(engine& jobs, const std::vector<leased_job>& leased) {
  for (const leased_job& l : leased) const auto given = jobs.release(l.ref());
}

void answer_leased(engine& jobs, const ticket& to, const grant& may,
                   const result<std::vector<leased_job>>& leased) {
  if (const auto why = may.refusal()) {
    if (leased) give_back(jobs, *leased);
    return to.refuse(*why);
  }
  if (!leased) {
    const error_code code = leased.error().code;
    const bool came_none = code == error_code::timed_out || code == error_code::stopped;
    return came_none ? to.answer(204) : to.refuse(leased.error());
  }
  // Nobody is there to work on them.
  if (to.who().is_gone()) {
    give_back(jobs, *leased);
    return to.answer(204);
  }
  std::string& body = to.who().scratch();
  json::write(body, *leased);
  response r{.status = 200, .type = json_type, .body = body};
  r.leases.reserve(leased->size());
  for (const leased_job& l : *leased) r.leases.push_back(l.ref());
  to.answer(std::move(r));
}

// None: who asks may end or extend a lease of this job. Of one that is not there the engine knows
// what to say.
std::optional<error> refusal_of(const identity& who, job_id id, const result<job>& it) {
  if (!it && it.error().code == error_code::not_found) return std::nullopt;
  if (!it) return it.error();
  if (who.may(role::work, it->spec.queue)) return std::nullopt;
  return no_such_job(id);
}

// Calls `then(ticket)` if the token of the call may work in the queue of the call's job. The parsed
// body, of `lines` lines, counts as the connection's memory until then.
template <class Then>
void with_lease(call& c, Then then, std::size_t lines = 0) {
  if (!c.who.is_scoped()) return then(std::move(c.to));
  c.to.keep(c.body.size() + lines * sizeof(std::string));
  when_loaded(
      c.to, [&jobs = c.jobs, id = c.id] { return jobs.get(id); },
      [&server = c.server, id = c.id, who = c.who, then = std::move(then)](
          const ticket& to, const result<job>& it) mutable {
        if (const auto why = refusal_of(who, id, it)) return to.refuse(*why);
        if (const auto why = server.refusal_of(who, role::work)) return to.refuse(*why);
        to.keep(0);
        then(to);
      });
}

// Many acks of who may work in some queues only: each job is looked up, the others are acked.
struct acking {
  const server_state& server;
  engine& jobs;
  const identity who;
  std::vector<ack_item> asked;
  std::vector<std::optional<error>> refused{};  // for each that was looked up

  using ptr = std::shared_ptr<acking>;

  static void go_on(const ticket& to, ptr it) {
    if (it->refused.size() == it->asked.size()) return finish(to, std::move(it));
    const job_id id = it->asked[it->refused.size()].lease.job;
    engine& jobs = it->jobs;
    when_loaded(
        to, [&jobs, id] { return jobs.get(id); },
        [it = std::move(it), id](const ticket& back, const result<job>& found) mutable {
          it->refused.push_back(refusal_of(it->who, id, found));
          go_on(back, std::move(it));
        });
  }

  static void finish(const ticket& to, ptr it) {
    if (const auto why = it->server.refusal_of(it->who, role::work)) return to.refuse(*why);
    std::vector<ack_item> allowed;
    for (std::size_t i = 0; i < it->asked.size(); ++i) {
      if (!it->refused[i]) allowed.push_back(std::move(it->asked[i]));
    }
    it->asked = {};
    to.keep(0);
    if (allowed.empty()) return it->answer(to, {});
    engine& jobs = it->jobs;
    when_done(to, jobs.ack_many(std::move(allowed)),
              [it = std::move(it)](const ticket& back, const std::vector<void_result>& results) {
                it->answer(back, results);
              });
  }

  void answer(const ticket& to, const std::vector<void_result>& acked) const {
    std::vector<void_result> all;
    auto next = acked.begin();
    for (const auto& why : refused) all.push_back(why ? void_result(*why) : *next++);
    std::string& body = to.who().scratch();
    json::write(body, all);
    to.answer_json(200, body);
  }
};

}  // namespace

void lease_jobs(call& c) {
  auto asked = body_of<json::lease_call>(c);
  if (!asked) return;
  for (const std::string& queue : asked->what.queues) {
    if (!may_use_as_client(c, role::work, queue)) return;
  }
  const milliseconds wait = std::min(asked->wait, c.server.options.wait_max);
  const grant may(c.server, c.who, role::work,
                  c.who.is_local() ? std::vector<std::string>() : asked->what.queues);
  engine& jobs = c.jobs;
  auto leased = jobs.lease(std::move(asked->what), may.limits(c.to, wait));
  when_done(std::move(c.to), std::move(leased),
            [&jobs, may](const ticket& to, const result<std::vector<leased_job>>& taken) {
              answer_leased(jobs, to, may, taken);
            });
}

void extend_lease(call& c) {
  const auto asked = body_of<json::extend_call>(c);
  if (!asked) return;
  with_lease(c, [&jobs = c.jobs, id = c.id, asked = *asked](const ticket& to) {
    answer_with(to, jobs.extend({id, asked.lease}, asked.by, asked.how_far));
  });
}

void ack_job(call& c) {
  auto asked = body_of<json::ack_call>(c);
  if (!asked) return;
  with_lease(c, [&jobs = c.jobs, id = c.id, asked = *std::move(asked)](ticket to) mutable {
    when_done(std::move(to), jobs.ack({id, asked.lease}, std::move(asked.result)), answer_done);
  });
}

void ack_jobs(call& c) {
  auto asked = body_of<json::acks_call>(c);
  if (!asked) return;
  if (c.who.is_scoped()) {
    c.to.keep(c.body.size() + asked->acks.size() * sizeof(ack_item));
    return acking::go_on(
        c.to, std::make_shared<acking>(acking{c.server, c.jobs, c.who, std::move(asked->acks)}));
  }
  when_done(std::move(c.to), c.jobs.ack_many(std::move(asked->acks)),
            [](const ticket& to, const std::vector<void_result>& results) {
              std::string& body = to.who().scratch();
              json::write(body, results);
              to.answer_json(200, body);
            });
}

void fail_job(call& c) {
  auto asked = body_of<json::fail_call>(c);
  if (!asked) return;
  with_lease(c, [&jobs = c.jobs, id = c.id, asked = *std::move(asked)](ticket to) mutable {
    when_done(std::move(to), jobs.fail({id, asked.lease}, std::move(asked.why)),
              answer_with<fail_receipt>);
  });
}

void release_job(call& c) {
  const auto asked = body_of<json::release_call>(c);
  if (!asked) return;
  with_lease(c, [&jobs = c.jobs, id = c.id, asked = *asked](ticket to) {
    when_done(std::move(to), jobs.release({id, asked.lease}, asked.how), answer_done);
  });
}

void report_progress(call& c) {
  auto asked = body_of<json::progress_call>(c);
  if (!asked) return;
  with_lease(c, [&jobs = c.jobs, id = c.id, asked = *std::move(asked)](const ticket& to) mutable {
    answer_done(to, jobs.report({id, asked.lease}, std::move(asked.how_far)));
  });
}

void add_logs(call& c) {
  auto asked = body_of<json::log_call>(c);
  if (!asked) return;
  const std::size_t lines = asked->lines.size();
  with_lease(
      c,
      [&jobs = c.jobs, id = c.id, asked = *std::move(asked)](ticket to) mutable {
        when_done(std::move(to), jobs.log({id, asked.lease}, std::move(asked.lines)), answer_done);
      },
      lines);
}

void get_logs(call& c) {
  const auto page = read_page_parameters(c.head.query(), 1000);
  if (!page) return c.to.refuse(page.error());
  with_job(c, role::read, [&jobs = c.jobs, id = c.id, page = *page](ticket to) {
    when_done(std::move(to), jobs.logs(id, page.after, page.limit),
              [&jobs, id](const ticket& who, const result<log_page>& found) {
                if (!found || !found->lines.empty()) return answer_with(who, found);
                // Nothing was written; or there is no such job.
                when_done(who, jobs.get(id),
                          [none = *found](const ticket& back, const result<job>& it) {
                            if (!it) return back.refuse(it.error());
                            answer_with(back, result<log_page>(none));
                          });
              });
  });
}

}  // namespace sluice::jobs::http
