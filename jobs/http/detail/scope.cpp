// Checks of the jobs and batches that a request names, for tokens that are limited to some queues.
#include <algorithm>

#include "jobs/http/detail/handlers.hpp"

namespace sluice::jobs::http {
namespace {

constexpr std::size_t checked_jobs_max = 1000;       // of the batch of a call
constexpr std::size_t named_max = 1000;              // jobs and batches in one push
constexpr std::size_t checked_named_jobs_max = 100;  // of a batch that a push names

error no_such_batch(job_id id) {
  return {error_code::not_found, "there is no batch " + std::to_string(id), id};
}

error too_long(job_id id, const identity& caller) {
  return {error_code::forbidden,
          "batch " + std::to_string(id) + " has more than " + std::to_string(checked_jobs_max) +
              " jobs, too many to check for the token " + std::string(caller.id()) +
              ", which is limited to some queues",
          id};
}

error too_many_named(const identity& caller) {
  return {error_code::too_large,
          "the push names more than " + std::to_string(named_max) +
              " jobs and batches in batch and after, too many for the token " +
              std::string(caller.id()) + ", which is limited to some queues"};
}

// Returns none if the token has the role for all these jobs of a batch. A batch without jobs is
// refused: it has no queue.
std::optional<error> refusal_of(const identity& caller, role needed, job_id id,
                                const result<job_page>& page) {
  if (!page) return page.error();
  const bool is_own = std::ranges::all_of(
      page->jobs, [&](const job& j) { return caller.may(needed, j.spec.queue); });
  if (!is_own || page->jobs.empty()) return no_such_batch(id);
  return std::nullopt;
}

// Checks the named ids one after the other, then calls `then`.
struct named_check {
  const server_state& server;
  engine& jobs;
  const identity caller;
  std::vector<job_id> left;
  std::function<void(const ticket&)> then;

  using ptr = std::shared_ptr<named_check>;

  static void check_next(const ticket& reply, ptr state) {
    if (state->left.empty()) {
      const auto why = state->server.refusal_of(state->caller, role::push);
      if (why) return reply.refuse(*why);
      reply.keep(0);
      return state->then(reply);
    }
    const job_id id = state->left.back();
    state->left.pop_back();
    engine& jobs = state->jobs;
    when_loaded(
        reply, [&jobs, id] { return jobs.get(id); },
        [state = std::move(state), id](const ticket& back, const result<job>& found) mutable {
          if (!found && found.error().code == error_code::not_found) {
            return check_batch_of(back, std::move(state), id);
          }
          if (!found) return back.refuse(found.error());
          if (!state->caller.may(role::push, found->spec.queue)) {
            return back.refuse(no_such_job(id));
          }
          check_next(back, std::move(state));
        });
  }

  static void check_batch_of(const ticket& reply, ptr state, job_id id) {
    engine& jobs = state->jobs;
    when_done(reply, jobs.get_batch(id),
              [state = std::move(state), id](const ticket& back, const result<batch_info>& found) {
                // Neither a job nor a batch: the engine decides about it.
                if (!found && found.error().code == error_code::not_found)
                  return check_next(back, state);
                if (!found) return back.refuse(found.error());
                check_jobs_of(back, state, id);
              });
  }

  // Checks the first jobs of the batch only, so that jobs can be pushed into a batch of any length.
  static void check_jobs_of(const ticket& reply, ptr state, job_id batch) {
    engine& jobs = state->jobs;
    when_loaded(
        reply,
        [&jobs, batch] { return jobs.list({.batch = batch, .limit = checked_named_jobs_max}); },
        [state = std::move(state), batch](const ticket& back, const result<job_page>& page) {
          const auto why = refusal_of(state->caller, role::push, batch, page);
          return why ? back.refuse(*why) : check_next(back, state);
        });
  }
};

}  // namespace

void check_batch(call& c, role needed, std::function<void(const ticket&)> then) {
  when_loaded(
      c.reply,
      [&jobs = c.jobs, id = c.id] { return jobs.list({.batch = id, .limit = checked_jobs_max}); },
      [&server = c.server, id = c.id, needed, caller = c.caller, then = std::move(then)](
          const ticket& back, const result<job_page>& page) {
        if (const auto why = refusal_of(caller, needed, id, page)) return back.refuse(*why);
        if (page->cursor) return back.refuse(too_long(id, caller));
        if (const auto why = server.refusal_of(caller, needed)) return back.refuse(*why);
        then(back);
      });
}

void add_named(std::vector<job_id>& ids, const job_spec& spec) {
  if (spec.batch != 0) ids.push_back(spec.batch);
  for (const dependency& d : spec.after) {
    if (d.on != 0) ids.push_back(d.on);
  }
}

void check_named(call& c, std::vector<job_id> ids, std::size_t jobs,
                 std::function<void(const ticket&)> then) {
  std::ranges::sort(ids);
  const auto repeated = std::ranges::unique(ids);
  ids.erase(repeated.begin(), repeated.end());
  if (ids.size() > named_max) return c.reply.refuse(too_many_named(c.caller));
  c.reply.keep(c.body.size() + jobs * sizeof(job_spec));
  named_check::check_next(
      c.reply, std::make_shared<named_check>(
                   named_check{c.server, c.jobs, c.caller, std::move(ids), std::move(then)}));
}

}  // namespace sluice::jobs::http
