// What a token for some queues only may name: jobs and batches that are of these queues.
#include <algorithm>

#include "jobs/http/detail/handlers.hpp"

namespace sluice::jobs::http {
namespace {

constexpr std::size_t looked_through_max = 1000;  // jobs of a batch
constexpr std::size_t named_max = 1000;           // jobs and batches in one push
constexpr std::size_t named_looked_at_max = 100;  // jobs of a batch that a push names

error no_such_batch(job_id id) {
  return {error_code::not_found, "there is no batch " + std::to_string(id), id};
}

error too_long(job_id id, const identity& who) {
  return {error_code::forbidden,
          "batch " + std::to_string(id) + " has more than " + std::to_string(looked_through_max) +
              " jobs, which may be of any queue, and the token " + std::string(who.id()) +
              " is for some of them only",
          id};
}

error too_many_named(const identity& who) {
  return {error_code::too_large, "a push names more than " + std::to_string(named_max) +
                                     " jobs and batches in batch and after, and the token " +
                                     std::string(who.id()) + " is for some queues only"};
}

// None: who asks may do this with these jobs of a batch. Without jobs it may be anybody's.
std::optional<error> refusal_of(const identity& who, role what, job_id id,
                                const result<job_page>& page) {
  if (!page) return page.error();
  const bool is_own =
      std::ranges::all_of(page->jobs, [&](const job& j) { return who.may(what, j.spec.queue); });
  if (!is_own || page->jobs.empty()) return no_such_batch(id);
  return std::nullopt;
}

// Looks at what was named, one after the other.
struct looking_up {
  const server_state& server;
  engine& jobs;
  const identity who;
  std::vector<job_id> left;
  std::function<void(const ticket&)> then;

  using ptr = std::shared_ptr<looking_up>;

  static void go_on(const ticket& to, ptr it) {
    if (it->left.empty()) {
      const auto why = it->server.refusal_of(it->who, role::push);
      if (why) return to.refuse(*why);
      to.keep(0);
      return it->then(to);
    }
    const job_id id = it->left.back();
    it->left.pop_back();
    engine& jobs = it->jobs;
    when_loaded(
        to, [&jobs, id] { return jobs.get(id); },
        [it = std::move(it), id](const ticket& back, const result<job>& found) mutable {
          if (!found && found.error().code == error_code::not_found) {
            return go_on_with_batch(back, std::move(it), id);
          }
          if (!found) return back.refuse(found.error());
          if (!it->who.may(role::push, found->spec.queue)) {
            return back.refuse(no_such_job(id));
          }
          go_on(back, std::move(it));
        });
  }

  static void go_on_with_batch(const ticket& to, ptr it, job_id id) {
    engine& jobs = it->jobs;
    when_done(to, jobs.get_batch(id),
              [it = std::move(it), id](const ticket& back, const result<batch_info>& found) {
                // Neither, or no more: the engine knows what that means.
                if (!found && found.error().code == error_code::not_found) return go_on(back, it);
                if (!found) return back.refuse(found.error());
                go_on_with_jobs_of(back, it, id);
              });
  }

  // The first of them tell whose it is: however long it has become, more may be pushed into it.
  static void go_on_with_jobs_of(const ticket& to, ptr it, job_id batch) {
    engine& jobs = it->jobs;
    when_loaded(
        to, [&jobs, batch] { return jobs.list({.batch = batch, .limit = named_looked_at_max}); },
        [it = std::move(it), batch](const ticket& back, const result<job_page>& page) {
          const auto why = refusal_of(it->who, role::push, batch, page);
          return why ? back.refuse(*why) : go_on(back, it);
        });
  }
};

}  // namespace

void check_batch(call& c, role what, std::function<void(const ticket&)> then) {
  when_loaded(
      c.to,
      [&jobs = c.jobs, id = c.id] { return jobs.list({.batch = id, .limit = looked_through_max}); },
      [&server = c.server, id = c.id, what, who = c.who, then = std::move(then)](
          const ticket& back, const result<job_page>& page) {
        if (const auto why = refusal_of(who, what, id, page)) return back.refuse(*why);
        if (page->cursor) return back.refuse(too_long(id, who));
        if (const auto why = server.refusal_of(who, what)) return back.refuse(*why);
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
  if (ids.size() > named_max) return c.to.refuse(too_many_named(c.who));
  c.to.keep(c.body.size() + jobs * sizeof(job_spec));
  looking_up::go_on(c.to, std::make_shared<looking_up>(looking_up{
                              c.server, c.jobs, c.who, std::move(ids), std::move(then)}));
}

}  // namespace sluice::jobs::http
