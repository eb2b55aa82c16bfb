#pragma once

// Talks to a job server over HTTP with the words of the engine: the same calls, the same values,
// the same errors.
//
// Use it in a program that pushes jobs to a server, looks at them, or works for it (`work_from`).
// Prefer the engine itself (jobs/embedded/open.hpp) where producers and workers are one program.
//
// Every call comes in two forms: `x(...)` waits for the answer, `async_x(...)` gives a future of
// it.
//
// Guarantees: any thread may call anything. An error that the server gives is the engine's, code
// and message; what could not be sent, or was answered by nonsense, is `unavailable`, and its
// message has the URL and the cause. The limits end a call at once with timed_out or stopped, and
// close its connection, so that the server ends the call, too. A call that waits at the server
// (lease, wait, push, events) asks it to wait until the deadline, and waits for that reply up to
// 250 ms longer: an event that is due before the deadline wins over it (docs/concepts/time.md). If
// the request was on its way, whether it was done is then not known; the message says so. Nothing
// is sent twice on its own account, but for one case: a kept connection turns out to have been
// closed by the server meanwhile, and the call only reads, or nothing of it was sent. Calls that
// wait (lease, wait, push to a full queue that blocks) ask anew when the server's own limit on
// waiting comes before theirs.
// Where you resume: continuations run on the client's own thread, unless `via` names an executor;
// they must be short, and a blocking call from there is a broken contract. Destroying the client
// ends the calls under way with `stopped`; their continuations have run when it returns.
// Bounds: connections at a time by options::connections_max; calls that wait for one of them by
// waiting_max (overloaded); an answer by answer_bytes_max (unavailable), and in time by
// answer_timeout (unavailable), but for `purge`, `cancel_batch` and `retry_batch`, which take as
// long as there are jobs: only their limits end them.
// Cost: one thread; connections are kept and used again. Idle costs nothing.
// Security: https verifies the server's certificate and its host name, against the system's
// authorities or options::ca_file. The token goes with every request, and into no message.
// Limits: HTTP/1.1. `unix_time`s in answers are the server's, but for those of leases, which are
// turned into this machine's if the clocks differ.
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
  std::string url{};      // empty: the environment's SLUICE_URL, else http://127.0.0.1:7433
  std::string token{};    // empty: the environment's SLUICE_TOKEN, else none is sent
  std::string ca_file{};  // PEM; empty: the environment's SLUICE_CA_FILE, else the system's
  std::size_t connections_max = 16;
  std::size_t waiting_max = 10'000;
  milliseconds connect_timeout{5'000};
  milliseconds answer_timeout{30'000};  // beyond the time that the server was asked to wait
  milliseconds wait_step{30'000};       // the longest that a server is asked to wait at a time
  milliseconds keep_idle{60'000};       // an unused connection; beyond the time between heartbeats
  std::size_t answer_bytes_max = std::size_t{256} << 20;
  std::string user_agent = "sluice-client";
  time_source* time = nullptr;  // of lease times; null: real_time()
};

class client {
 public:
  using options = client_options;

  // invalid: the URL, the token or the ca_file is none that it can use. Does not connect yet.
  static result<client> open(options o = {});
  client(client&&) noexcept;
  client& operator=(client&&) noexcept;
  ~client();

  const std::string& url() const noexcept;

  // Producers.
  result<push_receipt> push(job_spec spec, wait_limits limits = {});
  std::vector<result<push_receipt>> push_many(std::vector<job_spec> specs, bulk mode = bulk::each,
                                              wait_limits limits = {});

  result<batch_receipt> push_batch(batch_spec spec, wait_limits limits = {});

  // Workers.
  result<std::vector<leased_job>> lease(lease_request what, wait_limits limits = {});
  result<extension> extend(lease_ref lease, milliseconds by = {},
                           std::optional<progress> how_far = {}, wait_limits limits = {});
  void_result report(lease_ref lease, progress how_far, wait_limits limits = {});
  void_result log(lease_ref lease, std::vector<std::string> lines, wait_limits limits = {});
  void_result ack(lease_ref lease, std::optional<payload> job_result = {}, wait_limits limits = {});
  std::vector<void_result> ack_many(std::vector<ack_item> items, wait_limits limits = {});
  result<fail_receipt> fail(lease_ref lease, failure why, wait_limits limits = {});
  void_result release(lease_ref lease, give_back how = {}, wait_limits limits = {});

  // Anybody.
  result<job> get(job_id id, wait_limits limits = {});
  result<job> wait(job_id id, wait_limits limits = {});
  result<job_page> list(list_request what, wait_limits limits = {});
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
  // One page; waits for it. A page without events at the deadline, or after options::wait_step.
  result<event_page> events(event_request what, wait_limits limits = {});
  // Workers of Faktory's protocol, behind this wid. not_found: the server does not speak it.
  result<faktory_worker_page> faktory_workers(std::string after = {}, std::size_t limit = 100,
                                              wait_limits limits = {});
  // Tells one to be quiet or to end, at its next beat.
  result<faktory_worker> tell_faktory_worker(std::string wid, worker_state what,
                                             wait_limits limits = {});
  result<engine_stats> stats(wait_limits limits = {});
  // An error only when there was no answer: what the server says of itself is in the value.
  result<jobs::health> health(wait_limits limits = {});

  future<result<push_receipt>> async_push(job_spec spec, wait_limits limits = {});
  future<std::vector<result<push_receipt>>> async_push_many(std::vector<job_spec> specs,
                                                            bulk mode = bulk::each,
                                                            wait_limits limits = {});
  future<result<batch_receipt>> async_push_batch(batch_spec spec, wait_limits limits = {});
  future<result<std::vector<leased_job>>> async_lease(lease_request what, wait_limits limits = {});
  future<result<extension>> async_extend(lease_ref lease, milliseconds by = {},
                                         std::optional<progress> how_far = {},
                                         wait_limits limits = {});
  future<void_result> async_report(lease_ref lease, progress how_far, wait_limits limits = {});
  future<void_result> async_log(lease_ref lease, std::vector<std::string> lines,
                                wait_limits limits = {});
  future<void_result> async_ack(lease_ref lease, std::optional<payload> job_result = {},
                                wait_limits limits = {});
  future<std::vector<void_result>> async_ack_many(std::vector<ack_item> items,
                                                  wait_limits limits = {});
  future<result<fail_receipt>> async_fail(lease_ref lease, failure why, wait_limits limits = {});
  future<void_result> async_release(lease_ref lease, give_back how = {}, wait_limits limits = {});
  future<result<job>> async_get(job_id id, wait_limits limits = {});
  future<result<job>> async_wait(job_id id, wait_limits limits = {});
  future<result<job_page>> async_list(list_request what, wait_limits limits = {});
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
  future<result<event_page>> async_events(event_request what, wait_limits limits = {});
  future<result<faktory_worker_page>> async_faktory_workers(std::string after = {},
                                                            std::size_t limit = 100,
                                                            wait_limits limits = {});
  future<result<faktory_worker>> async_tell_faktory_worker(std::string wid, worker_state what,
                                                           wait_limits limits = {});
  future<result<engine_stats>> async_stats(wait_limits limits = {});
  future<result<jobs::health>> async_health(wait_limits limits = {});

 private:
  class impl;
  explicit client(std::unique_ptr<impl> it);
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
