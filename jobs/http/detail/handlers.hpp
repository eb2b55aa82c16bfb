#pragma once

// What each route does: reads what was sent, calls the engine, writes what it says. No decision of
// its own.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "jobs/http/detail/grant.hpp"
#include "jobs/http/detail/router.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "jobs/json/codec.hpp"

namespace sluice::jobs::http {

// Producers, and whoever looks.
void push_jobs(call& c);
void get_job(call& c);
void list_jobs(call& c);
void cancel_job(call& c);
void retry_job(call& c);
void remove_job(call& c);

// Workers.
void lease_jobs(call& c);
void extend_lease(call& c);
void ack_job(call& c);
void ack_jobs(call& c);
void fail_job(call& c);
void release_job(call& c);
void report_progress(call& c);
void add_logs(call& c);
void get_logs(call& c);

// Batches and workflows.
void push_batch(call& c);
void push_workflow(call& c);
void list_batches(call& c);
void get_batch(call& c);
void get_batch_graph(call& c);
void close_batch(call& c);
void cancel_batch(call& c);
void retry_batch(call& c);

// Cron.
void list_crons(call& c);
void check_cron(call& c);
void get_cron(call& c);
void set_cron(call& c);
void patch_cron(call& c);
void remove_cron(call& c);
void pause_cron(call& c);
void resume_cron(call& c);
void run_cron(call& c);

// Workers of Faktory's protocol.
void list_faktory_workers(call& c);
void quiet_faktory_worker(call& c);
void terminate_faktory_worker(call& c);

// What happens.
void get_events(call& c);

// Queues.
void list_queues(call& c);
void get_queue(call& c);
void configure_queue(call& c);
void pause_queue(call& c);
void resume_queue(call& c);
void purge_queue(call& c);

// The server itself.
void get_stats(call& c);
void get_openapi(call& c);
void get_metrics(call& c);
void get_health(call& c);
void get_readiness(call& c);
void get_root(call& c);

// How long a request may wait: the query's `wait`, else the Prefer header's, else `otherwise`; at
// most as long as the server allows. `given` is the text of the parameter.
result<milliseconds> wait_of(const call& c, const std::optional<std::string>& given,
                             milliseconds otherwise);

// What a push of jobs as NDJSON has in its query.
struct push_parameters {
  milliseconds wait{0};
  std::optional<bulk> mode{};  // none: not said
};
result<push_parameters> read_push_parameters(const call& c);

// Answers that several calls have.
template <class T>
void answer_with(const ticket& to, const result<T>& r) {
  if (!r) return to.refuse(r.error());
  std::string& body = to.who().scratch();
  json::write(body, *r);
  to.answer_json(200, body);
}
inline void answer_done(const ticket& to, const void_result& r) {
  if (!r) return to.refuse(r.error());
  to.answer(204);
}
void answer_pushes(const ticket& to, const std::vector<result<push_receipt>>& results, bulk mode);

// What came of many pushes, each for itself; gathered as it becomes known.
class push_results {
 public:
  void note(const result<push_receipt>& r);
  std::size_t accepted() const noexcept { return accepted_; }
  std::size_t memory() const noexcept { return json_.capacity(); }
  // 200; or 503 with the same results if all of it may be tried again, and nothing else.
  void answer(const ticket& to) const;

 private:
  std::string json_;  // of the results, without the brackets
  std::size_t noted_ = 0;
  std::size_t accepted_ = 0;
  std::size_t to_try_again_ = 0;
  std::optional<error> in_the_way_;  // of those, what lasts longest
};

// What is wrong with a parameter of the query.
error bad_parameter(std::string_view name, std::string_view why);
result<std::uint64_t> number_of(std::string_view name, std::string_view text, std::uint64_t least,
                                std::uint64_t most);
// The same, of one that may be left out.
result<std::uint64_t> number_or(std::string_view name, const std::optional<std::string>& text,
                                std::uint64_t otherwise, std::uint64_t least, std::uint64_t most);
inline constexpr std::uint64_t id_max = std::uint64_t{1} << 53U;

// "?after=&limit=" of lists.
struct page_parameters {
  std::uint64_t after = 0;
  std::size_t limit = 100;
};
result<page_parameters> read_page_parameters(std::string_view query, std::size_t otherwise);

// False, and answered: who asks may not do this in that queue.
bool may_use(const call& c, role what, std::string_view queue);
// The same for what clients do in queues, which they do in none of the server's own.
bool may_use_as_client(const call& c, role what, std::string_view queue);
std::optional<error> refusal_of_own(std::string_view queue);  // none: it is not the server's own
// False, and answered: what is asked for is of every queue, and who asks may see some of them only.
bool sees_every_queue(const call& c, std::string_view what);
error no_such_job(job_id id);  // as the engine says it
// Calls `then(ticket)` if who asks may do this with the job of the call, which is looked up only
// for those who may see some queues and no others. To them, a job of another queue is not there.
template <class Then>
void with_job(call& c, role what, Then then) {
  if (!c.who.is_scoped()) return then(std::move(c.to));
  when_loaded(
      c.to, [&jobs = c.jobs, id = c.id] { return jobs.get(id); },
      [&server = c.server, what, who = c.who, then = std::move(then)](const ticket& to,
                                                                      const result<job>& it) {
        if (!it) return to.refuse(it.error());
        if (!who.may(what, it->spec.queue)) return to.refuse(no_such_job(it->id));
        if (const auto why = server.refusal_of(who, what, {&it->spec.queue, 1})) {
          return to.refuse(*why);
        }
        then(to);
      });
}

// For those who may see some queues only: calls `then` if they may do this with all jobs of the
// batch. To them a batch with a job of another queue, or without any, is not there; one that is
// longer than a page is too long to look through.
void check_batch(call& c, role what, std::function<void(const ticket&)> then);
// The jobs and batches that a job names: the batch that it is to be in, and what it waits for.
void add_named(std::vector<job_id>& ids, const job_spec& spec);
// For tokens that cover some queues only: calls `then` if the token may push to the queues of all
// of these. Of other queues, jobs and batches do not exist for it. The parsed request, of which
// `jobs` are parts, counts as the connection's memory until then.
void check_named(call& c, std::vector<job_id> ids, std::size_t jobs,
                 std::function<void(const ticket&)> then);

// For a route that takes no parameters: false, and answered, when there are some.
bool has_no_query(const call& c);

// Reads the body of a route without parameters; answers, and gives none, when it is wrong.
template <class T>
std::optional<T> body_of(const call& c, json::read_context context = {}) {
  if (!has_no_query(c)) return std::nullopt;
  auto read = json::read<T>(c.body, context);
  if (read) return *std::move(read);
  c.to.refuse(read.error());
  return std::nullopt;
}

}  // namespace sluice::jobs::http
