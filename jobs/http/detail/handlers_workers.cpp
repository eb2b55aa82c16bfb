// Workers: leases, and how they end.
#include "jobs/http/detail/handlers.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "jobs/json/codec.hpp"

namespace sluice::jobs::http {
namespace {

// Reads the body; answers, and gives none, when it is wrong.
template <class T>
std::optional<T> body_of(const call& c) {
  if (!has_no_query(c)) return std::nullopt;
  auto read = json::read<T>(c.body);
  if (read) return *std::move(read);
  c.to.refuse(read.error());
  return std::nullopt;
}

void answer_leased(engine& jobs, const ticket& to, result<std::vector<leased_job>> leased) {
  if (!leased) {
    const error_code code = leased.error().code;
    const bool came_none = code == error_code::timed_out || code == error_code::stopped;
    return came_none ? to.answer(204) : to.refuse(leased.error());
  }
  // Nobody is there to work on them.
  if (to.who().is_gone()) {
    for (const leased_job& l : *leased) const auto given = jobs.release(l.ref());
    return to.answer(204);
  }
  std::string& body = to.who().scratch();
  json::write(body, *leased);
  response r{.status = 200, .type = json_type, .body = body};
  r.leases.reserve(leased->size());
  for (const leased_job& l : *leased) r.leases.push_back(l.ref());
  to.answer(std::move(r));
}

}  // namespace

void lease_jobs(call& c) {
  auto asked = body_of<json::lease_call>(c);
  if (!asked) return;
  const milliseconds wait = std::min(asked->wait, c.server.options.wait_max);
  engine& jobs = c.jobs;
  auto leased = jobs.lease(std::move(asked->what), limits_of(c, wait));
  when_done(std::move(c.to), std::move(leased),
            [&jobs](const ticket& to, result<std::vector<leased_job>> taken) {
              answer_leased(jobs, to, std::move(taken));
            });
}

void extend_lease(call& c) {
  const auto asked = body_of<json::extend_call>(c);
  if (asked) answer_with(c.to, c.jobs.extend({c.id, asked->lease}, asked->by));
}

void ack_job(call& c) {
  auto asked = body_of<json::ack_call>(c);
  if (!asked) return;
  when_done(std::move(c.to), c.jobs.ack({c.id, asked->lease}, std::move(asked->result)),
            answer_done);
}

void ack_jobs(call& c) {
  auto asked = body_of<json::acks_call>(c);
  if (!asked) return;
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
  when_done(std::move(c.to), c.jobs.fail({c.id, asked->lease}, std::move(asked->why)),
            answer_with<fail_receipt>);
}

void release_job(call& c) {
  const auto asked = body_of<json::release_call>(c);
  if (!asked) return;
  when_done(std::move(c.to), c.jobs.release({c.id, asked->lease}, asked->how), answer_done);
}

}  // namespace sluice::jobs::http
