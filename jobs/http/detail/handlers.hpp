#pragma once

// The handler of each route: parses the request, calls the engine, formats the result. Handlers
// make no decisions about jobs.

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

// Producers and readers.
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

// Events.
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

// Returns how long a request may wait: the query's `wait`, else the Prefer header's, else
// `otherwise`; at most wait_max. `given` is the text of the parameter.
result<milliseconds> wait_of(const call& c, const std::optional<std::string>& given,
                             milliseconds otherwise);

// The query parameters of a push.
struct push_parameters {
  milliseconds wait{0};
  std::optional<bulk> mode{};  // none: not in the query
};
result<push_parameters> read_push_parameters(const call& c);

// Replies that several handlers share.
template <class T>
void answer_with(const ticket& reply, const result<T>& r) {
  if (!r) return reply.refuse(r.error());
  std::string& body = reply.client().scratch();
  json::write(body, *r);
  reply.answer_json(200, body);
}
inline void answer_done(const ticket& reply, const void_result& r) {
  if (!r) return reply.refuse(r.error());
  reply.answer(204);
}
void answer_pushes(const ticket& reply, const std::vector<result<push_receipt>>& results,
                   bulk mode);

// Collects the results of many independent pushes, and formats the reply.
class push_results {
 public:
  void note(const result<push_receipt>& r);
  std::size_t accepted() const noexcept { return accepted_; }
  std::size_t memory() const noexcept { return json_.capacity(); }
  // Answers 200; or 503 with the same results if every push failed and may be retried.
  void answer(const ticket& reply) const;

 private:
  std::string json_;  // of the results, without the brackets
  std::size_t noted_ = 0;
  std::size_t accepted_ = 0;
  std::size_t retryable_ = 0;
  std::optional<error> worst_error_;  // the retryable error with the longest Retry-After
};

// Returns an error that names a parameter of the query and the reason.
error bad_parameter(std::string_view name, std::string_view why);
result<std::uint64_t> number_of(std::string_view name, std::string_view text, std::uint64_t least,
                                std::uint64_t most);
// Like number_of, for an optional parameter.
result<std::uint64_t> number_or(std::string_view name, const std::optional<std::string>& text,
                                std::uint64_t otherwise, std::uint64_t least, std::uint64_t most);
inline constexpr std::uint64_t id_max = std::uint64_t{1} << 53U;

// "?after=&limit=" of lists.
struct page_parameters {
  std::uint64_t after = 0;
  std::size_t limit = 100;
};
result<page_parameters> read_page_parameters(std::string_view query, std::size_t otherwise);

// Checks the token's role for a queue. Returns false if the request was refused.
bool may_use(const call& c, role needed, std::string_view queue);
// Like may_use; also refuses the server's own queues.
bool may_use_as_client(const call& c, role needed, std::string_view queue);
std::optional<error> refusal_of_own(std::string_view queue);  // none: not a server's own queue
// For a request that covers all queues. Returns false if it was refused because the token covers
// some queues only.
bool sees_every_queue(const call& c, std::string_view subject);
error no_such_job(job_id id);  // the engine's error
// Calls `then(ticket)` if the token has the role for the job of the call. The job is looked up only
// if the token is limited to some queues; a job of another queue is then reported as not found.
template <class Then>
void with_job(call& c, role needed, Then then) {
  if (!c.caller.is_scoped()) return then(std::move(c.reply));
  when_loaded(
      c.reply, [&jobs = c.jobs, id = c.id] { return jobs.get(id); },
      [&server = c.server, needed, caller = c.caller, then = std::move(then)](
          const ticket& reply, const result<job>& found) {
        if (!found) return reply.refuse(found.error());
        if (!caller.may(needed, found->spec.queue)) return reply.refuse(no_such_job(found->id));
        if (const auto why = server.refusal_of(caller, needed, {&found->spec.queue, 1})) {
          return reply.refuse(*why);
        }
        then(reply);
      });
}

// For tokens that are limited to some queues: calls `then` if the token has the role for all jobs
// of the batch. A batch without jobs, or with a job of another queue, is reported as not found; a
// batch longer than a page is refused as too long to check.
void check_batch(call& c, role needed, std::function<void(const ticket&)> then);
// Appends the ids that a job names: its batch and its dependencies.
void add_named(std::vector<job_id>& ids, const job_spec& spec);
// For tokens that are limited to some queues: calls `then` if the token may push to the queues of
// all these jobs and batches; others are reported as not found. The parsed request, with `jobs`
// jobs, counts as the connection's memory until then.
void check_named(call& c, std::vector<job_id> ids, std::size_t jobs,
                 std::function<void(const ticket&)> then);

// For a route without parameters. Returns false if the request has some and was refused.
bool has_no_query(const call& c);

// Reads the body of a route without parameters. Returns none if it is invalid and was refused.
template <class T>
std::optional<T> body_of(const call& c, json::read_context context = {}) {
  if (!has_no_query(c)) return std::nullopt;
  auto read = json::read<T>(c.body, context);
  if (read) return *std::move(read);
  c.reply.refuse(read.error());
  return std::nullopt;
}

}  // namespace sluice::jobs::http
