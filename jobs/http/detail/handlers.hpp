#pragma once

// What each route does: reads what was sent, calls the engine, writes what it says. No decision of
// its own.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "jobs/http/detail/router.hpp"
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

// Queues.
void list_queues(call& c);
void get_queue(call& c);
void configure_queue(call& c);
void pause_queue(call& c);
void resume_queue(call& c);
void purge_queue(call& c);

// The server itself.
void get_stats(call& c);
void get_metrics(call& c);
void get_health(call& c);
void get_readiness(call& c);
void get_root(call& c);

// How long a request may wait: the query's `wait`, else the Prefer header's, else `otherwise`; at
// most as long as the server allows. `given` is the text of the parameter.
result<milliseconds> wait_of(const call& c, const std::optional<std::string>& given,
                             milliseconds otherwise);
wait_limits limits_of(const call& c, milliseconds wait);

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
  // 200; or 503 with the same results if all of it may be tried again, and nothing else.
  void answer(const ticket& to) const;

 private:
  std::string json_;  // of the results, without the brackets
  std::size_t noted_ = 0;
  std::size_t accepted_ = 0;
  std::size_t to_try_again_ = 0;
  std::optional<error> in_the_way_;  // of those, what lasts longest
};

// For a route that takes no parameters: false, and answered, when there are some.
bool has_no_query(const call& c);

}  // namespace sluice::jobs::http
