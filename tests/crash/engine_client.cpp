#include "tests/crash/engine_client.hpp"

#include "sluice/base/deadline.hpp"

namespace sluice::crash {
namespace {

template <class T>
answer to_answer(const jobs::result<T>& made) {
  return made ? answer::yes : answer_for(made.error().code);
}

}  // namespace

std::vector<push_answer> engine_client::push(const std::vector<jobs::job_spec>& specs,
                                             jobs::bulk mode) {
  if (specs.size() == 1) return {answer_of(answer_to(engine_.push(specs.front())))};
  std::vector<push_answer> answers;
  for (const auto& made : answer_to(engine_.push_many(specs, mode)))
    answers.push_back(answer_of(made));
  return answers;
}

std::optional<std::vector<taken_job>> engine_client::lease(std::size_t max, milliseconds wait,
                                                           milliseconds lease_for) {
  jobs::lease_request request;
  request.queues = {"alpha", "beta"};
  request.max = max;
  request.worker = "crash";
  request.lease_for = lease_for;
  auto made = answer_to(engine_.lease(std::move(request), {deadline::after(wait), {}}));
  std::vector<taken_job> all;
  if (!made) {
    if (made.error().code == jobs::error_code::timed_out) return all;
    return std::nullopt;
  }
  for (const auto& job : *made) all.push_back(taken(*job.job, job.ref()));
  return all;
}

answer engine_client::ack(const taken_job& job, const std::string& result) {
  if (result.empty()) return to_answer(answer_to(engine_.ack(job.lease)));
  return to_answer(answer_to(engine_.ack(job.lease, jobs::payload{result})));
}

std::vector<answer> engine_client::ack_many(const std::vector<taken_job>& jobs) {
  std::vector<jobs::ack_item> items;
  for (const auto& job : jobs) items.push_back({job.lease, {}});
  std::vector<answer> answers;
  for (const auto& made : answer_to(engine_.ack_many(std::move(items)))) {
    answers.push_back(to_answer(made));
  }
  return answers;
}

answer engine_client::fail(const taken_job& job, milliseconds retry_in) {
  auto failed = requested_failure();
  failed.retry_in = retry_in;
  return to_answer(answer_to(engine_.fail(job.lease, std::move(failed))));
}

answer engine_client::bury(const taken_job& job) {
  auto failed = requested_failure();
  failed.for_good = true;
  return to_answer(answer_to(engine_.fail(job.lease, std::move(failed))));
}

answer engine_client::extend(const taken_job& job, milliseconds by) {
  const auto outcome = to_answer(engine_.extend(job.lease, by));
  commit_here();
  return outcome;
}

answer engine_client::cancel(jobs::job_id id) {
  return to_answer(answer_to(engine_.cancel(id)));
}

answer engine_client::remove(jobs::job_id id) {
  return to_answer(answer_to(engine_.remove(id)));
}

answer engine_client::retry(jobs::job_id id) {
  return to_answer(answer_to(engine_.retry(id)));
}

std::optional<std::vector<taken_job>> engine_client::list(jobs::job_state state) {
  std::vector<taken_job> all;
  jobs::list_request request;
  request.state = state;
  request.limit = 1000;
  for (;;) {
    const auto page = answer_to(engine_.list(request));
    if (!page) return std::nullopt;
    for (const auto& job : page->jobs) all.push_back(taken(job, {job.id, 0}));
    if (!page->cursor) return all;
    request.after = *page->cursor;
  }
}

std::optional<std::uint64_t> engine_client::unfinished() {
  std::uint64_t count = 0;
  for (const auto& queue : engine_.queues()) count += queue.counts.unfinished();
  return count;
}

}  // namespace sluice::crash
