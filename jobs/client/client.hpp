#pragma once

// A client of the job server over HTTP, with the engine's calls, values and errors.
//
// Use it in a program that pushes jobs to a server, queries them, or works for it (`work_from`).
// Prefer the engine itself (jobs/embedded/open.hpp) if producers and workers are one program.
//
// Every call has two forms: `x(...)` blocks until the reply, `async_x(...)` returns a future.
//
// Guarantees: all functions may be called from any thread. Errors of the server are returned with
// the engine's code and message. If a request cannot be sent or the response is invalid, the error
// is `unavailable`, with the URL and the cause in the message. The limits end a call at once with
// timed_out or stopped, and close its connection, so that the server ends the call, too. Calls that
// wait at the server (lease, wait, push, events) request to wait until the deadline, and wait for
// that reply up to 250 ms longer: an event that is due before the deadline takes precedence over it
// (docs/concepts/time.md). If the request was in progress, it is unknown whether the server has
// executed it; the message states that. A request is repeated only if a reused connection was
// closed by the server and the call is idempotent or nothing of it was sent. Calls that wait
// (lease, wait, push to a full queue that blocks) are repeated if the server's own limit on waiting
// ends before theirs. Where you resume: continuations run on the client's own thread, unless `via`
// names an executor; they must be short and must not make a blocking call (a broken contract). The
// destructor ends the calls in progress with `stopped` and returns after their continuations have
// run. Limits: options::connections_max connections; waiting_max calls that wait for a connection
// (overloaded); answer_bytes_max bytes in a response (unavailable); answer_timeout for a response
// (unavailable). `purge`, `cancel_batch` and `retry_batch` have no answer_timeout, since their
// duration grows with the number of jobs. HTTP/1.1 only.
// Cost: one thread; connections are reused. An idle client uses no CPU.
// Security: https verifies the server's certificate and host name, against the system's authorities
// or options::ca_file. The token is sent with every request and is in no message.
// Times: a `unix_time` in a reply is the server's; only lease times are converted to this machine's
// clock if the clocks differ.
//
//     auto server = jobs::client::open({.url = "http://127.0.0.1:7433"}).value();
//     auto pushed = server.push({.kind = "mail", .args = {R"({"to":"ada"})"}});
//     if (!pushed) return complain(pushed.error());
//     auto job = server.wait(pushed->id, deadline::after(30s));

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/batch.hpp"
#include "jobs/model/cron.hpp"
#include "jobs/model/events.hpp"
#include "jobs/model/faktory_worker.hpp"
#include "jobs/model/requests.hpp"
#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"
#include "sluice/future/future.hpp"
#include "sluice/sync/waiter.hpp"

namespace sluice::jobs {

struct client_options {
  std::string url{};      // empty: SLUICE_URL, else http://127.0.0.1:7433
  std::string token{};    // empty: SLUICE_TOKEN, else none
  std::string ca_file{};  // PEM; empty: SLUICE_CA_FILE, else the system's authorities
  std::size_t connections_max = 16;
  std::size_t waiting_max = 10'000;
  milliseconds connect_timeout{5'000};
  milliseconds answer_timeout{30'000};  // in addition to the time that the server waits
  milliseconds wait_step{30'000};       // longest wait requested from the server at a time
  milliseconds keep_idle{60'000};       // for an unused connection; longer than heartbeat intervals
  std::size_t answer_bytes_max = std::size_t{256} << 20;
  std::string user_agent = "sluice-client";
  time_source* time = nullptr;  // for lease times; null: real_time()
};

class client {
 public:
  using options = client_options;

  // Fails with `invalid` if the URL, the token or the ca_file is invalid. Does not connect yet.
  static result<client> open(options o = {});
  client(client&&) noexcept;
  client& operator=(client&&) noexcept;
  ~client();

  const std::string& url() const noexcept;

  // For producers.
  result<push_receipt> push(job_spec spec, wait_limits limits = {});
  std::vector<result<push_receipt>> push_many(std::vector<job_spec> specs, bulk mode = bulk::each,
                                              wait_limits limits = {});

  result<batch_receipt> push_batch(batch_spec spec, wait_limits limits = {});

  // For workers.
  result<std::vector<leased_job>> lease(lease_request request, wait_limits limits = {});
  result<extension> extend(lease_ref lease, milliseconds by = {},
                           std::optional<progress> update = {}, wait_limits limits = {});
  void_result report(lease_ref lease, progress update, wait_limits limits = {});
  void_result log(lease_ref lease, std::vector<std::string> lines, wait_limits limits = {});
  void_result ack(lease_ref lease, std::optional<payload> job_result = {}, wait_limits limits = {});
  std::vector<void_result> ack_many(std::vector<ack_item> items, wait_limits limits = {});
  result<fail_receipt> fail(lease_ref lease, failure why, wait_limits limits = {});
  void_result release(lease_ref lease, give_back terms = {}, wait_limits limits = {});

  // For all callers.
  result<job> get(job_id id, wait_limits limits = {});
  result<job> wait(job_id id, wait_limits limits = {});
  result<job_page> list(list_request request, wait_limits limits = {});
  result<job> cancel(job_id id, wait_limits limits = {});
  result<job> retry(job_id id, wait_limits limits = {});
  void_result remove(job_id id, wait_limits limits = {});
  result<log_page> logs(job_id id, std::uint64_t after = 0, std::size_t limit = 1000,
                        wait_limits limits = {});
  result<std::vector<queue_info>> queues(wait_limits limits = {});
  result<queue_info> queue(std::string name, wait_limits limits = {});
  result<queue_info> configure(std::string name, queue_patch patch, wait_limits limits = {});
  result<std::uint64_t> purge(std::string name, wait_limits limits = {});
  result<batch_info> get_batch(job_id id, wait_limits limits = {});
  result<batch_page> batches(job_id after = 0, std::size_t limit = 100, wait_limits limits = {});
  result<batch_info> close_batch(job_id id, wait_limits limits = {});
  result<std::uint64_t> cancel_batch(job_id id, wait_limits limits = {});
  result<std::uint64_t> retry_batch(job_id id, wait_limits limits = {});
  result<cron_info> set_cron(cron_spec spec, wait_limits limits = {});
  result<cron_info> patch_cron(std::string name, cron_patch patch, wait_limits limits = {});
  void_result remove_cron(std::string name, wait_limits limits = {});
  result<push_receipt> run_cron(std::string name, wait_limits limits = {});
  result<std::vector<cron_info>> crons(wait_limits limits = {});
  result<cron_info> get_cron(std::string name, wait_limits limits = {});
  // Waits for one page. Returns a page without events at the deadline, or after options::wait_step.
  result<event_page> events(event_request request, wait_limits limits = {});
  // Returns workers over Faktory's protocol after this wid. Fails with `not_found` if the server
  // does not have that protocol enabled.
  result<faktory_worker_page> faktory_workers(std::string after = {}, std::size_t limit = 100,
                                              wait_limits limits = {});
  // Requests a worker to be quiet or to terminate; it is notified at its next beat.
  result<faktory_worker> set_faktory_worker_state(std::string wid, worker_state state,
                                                  wait_limits limits = {});
  result<engine_stats> stats(wait_limits limits = {});
  // Fails only if there was no reply: an unhealthy state of the server is in the value.
  result<jobs::health> health(wait_limits limits = {});

  future<result<push_receipt>> async_push(job_spec spec, wait_limits limits = {});
  future<std::vector<result<push_receipt>>> async_push_many(std::vector<job_spec> specs,
                                                            bulk mode = bulk::each,
                                                            wait_limits limits = {});
  future<result<batch_receipt>> async_push_batch(batch_spec spec, wait_limits limits = {});
  future<result<std::vector<leased_job>>> async_lease(lease_request request,
                                                      wait_limits limits = {});
  future<result<extension>> async_extend(lease_ref lease, milliseconds by = {},
                                         std::optional<progress> update = {},
                                         wait_limits limits = {});
  future<void_result> async_report(lease_ref lease, progress update, wait_limits limits = {});
  future<void_result> async_log(lease_ref lease, std::vector<std::string> lines,
                                wait_limits limits = {});
  future<void_result> async_ack(lease_ref lease, std::optional<payload> job_result = {},
                                wait_limits limits = {});
  future<std::vector<void_result>> async_ack_many(std::vector<ack_item> items,
                                                  wait_limits limits = {});
  future<result<fail_receipt>> async_fail(lease_ref lease, failure why, wait_limits limits = {});
  future<void_result> async_release(lease_ref lease, give_back terms = {},
                                    wait_limits limits = {});
  future<result<job>> async_get(job_id id, wait_limits limits = {});
  future<result<job>> async_wait(job_id id, wait_limits limits = {});
  future<result<job_page>> async_list(list_request request, wait_limits limits = {});
  future<result<job>> async_cancel(job_id id, wait_limits limits = {});
  future<result<job>> async_retry(job_id id, wait_limits limits = {});
  future<void_result> async_remove(job_id id, wait_limits limits = {});
  future<result<log_page>> async_logs(job_id id, std::uint64_t after = 0, std::size_t limit = 1000,
                                      wait_limits limits = {});
  future<result<std::vector<queue_info>>> async_queues(wait_limits limits = {});
  future<result<queue_info>> async_queue(std::string name, wait_limits limits = {});
  future<result<queue_info>> async_configure(std::string name, queue_patch patch,
                                             wait_limits limits = {});
  future<result<std::uint64_t>> async_purge(std::string name, wait_limits limits = {});
  future<result<batch_info>> async_get_batch(job_id id, wait_limits limits = {});
  future<result<batch_page>> async_batches(job_id after = 0, std::size_t limit = 100,
                                           wait_limits limits = {});
  future<result<batch_info>> async_close_batch(job_id id, wait_limits limits = {});
  future<result<std::uint64_t>> async_cancel_batch(job_id id, wait_limits limits = {});
  future<result<std::uint64_t>> async_retry_batch(job_id id, wait_limits limits = {});
  future<result<cron_info>> async_set_cron(cron_spec spec, wait_limits limits = {});
  future<result<cron_info>> async_patch_cron(std::string name, cron_patch patch,
                                             wait_limits limits = {});
  future<void_result> async_remove_cron(std::string name, wait_limits limits = {});
  future<result<push_receipt>> async_run_cron(std::string name, wait_limits limits = {});
  future<result<std::vector<cron_info>>> async_crons(wait_limits limits = {});
  future<result<cron_info>> async_get_cron(std::string name, wait_limits limits = {});
  future<result<event_page>> async_events(event_request request, wait_limits limits = {});
  future<result<faktory_worker_page>> async_faktory_workers(std::string after = {},
                                                            std::size_t limit = 100,
                                                            wait_limits limits = {});
  future<result<faktory_worker>> async_set_faktory_worker_state(std::string wid, worker_state state,
                                                                wait_limits limits = {});
  future<result<engine_stats>> async_stats(wait_limits limits = {});
  future<result<jobs::health>> async_health(wait_limits limits = {});

 private:
  class impl;
  explicit client(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
