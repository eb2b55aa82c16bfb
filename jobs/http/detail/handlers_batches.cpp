// Batches and workflows.
#include "jobs/http/detail/graph.hpp"
#include "jobs/http/detail/handlers.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "jobs/json/codec.hpp"

namespace sluice::jobs::http {
namespace {

constexpr std::size_t graph_jobs_max = 1000;

bool may_push(const call& c, const batch_spec& spec) {
  for (const job_spec& job : spec.jobs) {
    if (!may_use_as_client(c, role::push, job.queue)) return false;
  }
  for (const auto* callback : {&spec.on_success, &spec.on_end, &spec.on_failure}) {
    if (*callback && !may_use_as_client(c, role::push, (*callback)->queue)) return false;
  }
  return true;
}

// Calls `then(ticket)` if the token has the role for the batch of the call.
template <class Then>
void with_batch(call& c, role needed, Then then) {
  if (!c.caller.is_scoped()) return then(std::move(c.reply));
  check_batch(c, needed, std::move(then));
}

std::vector<job_id> named_by(const batch_spec& spec) {
  std::vector<job_id> ids;
  for (const job_spec& job : spec.jobs) add_named(ids, job);
  for (const auto* callback : {&spec.on_success, &spec.on_end, &spec.on_failure}) {
    if (*callback) add_named(ids, **callback);
  }
  return ids;
}

std::vector<std::string> queues_of_all(const identity& caller, const batch_spec& spec) {
  std::vector<std::string> queues = queues_of(caller, spec.jobs);
  if (caller.is_local()) return queues;
  for (const auto* callback : {&spec.on_success, &spec.on_end, &spec.on_failure}) {
    if (*callback) queues.push_back((*callback)->queue);
  }
  return queues;
}

void push(call& c, batch_spec spec, milliseconds wait) {
  if (!may_push(c, spec)) return;
  const grant may(c.server, c.caller, role::push, queues_of_all(c.caller, spec));
  std::vector<job_id> named = c.caller.is_scoped() ? named_by(spec) : std::vector<job_id>();
  const std::size_t count = spec.jobs.size();
  auto push_checked = [&jobs = c.jobs, may, spec = std::move(spec),
                       wait](const ticket& asked) mutable {
    when_done(asked, jobs.push_batch(std::move(spec), may.limits(asked, wait)),
              [may](const ticket& reply, const result<batch_receipt>& pushed) {
                if (!pushed) return reply.refuse(may.refusal().value_or(pushed.error()));
                std::string& body = reply.client().scratch();
                json::write(body, *pushed);
                reply.answer_json(201, body,
                                  "Location: /v1/batches/" + std::to_string(pushed->id) + "\r\n");
              });
  };
  if (named.empty()) return push_checked(c.reply);
  check_named(c, std::move(named), count, std::move(push_checked));
}

// Reads the batch and how long its push may wait. Returns none if the request was refused.
std::optional<std::pair<batch_spec, milliseconds>> read_push(const call& c) {
  static constexpr std::array<std::string_view, 1> names = {"wait"};
  const auto values = read_query(c.head.query(), names);
  if (!values) {
    c.reply.refuse(values.error());
    return std::nullopt;
  }
  const auto wait = wait_of(c, (*values)[0], c.server.options.push_wait);
  if (!wait) {
    c.reply.refuse(wait.error());
    return std::nullopt;
  }
  auto spec = json::read<batch_spec>(c.body, {.now = c.server.time.after(milliseconds(0))});
  if (!spec) {
    c.reply.refuse(spec.error());
    return std::nullopt;
  }
  return std::pair(*std::move(spec), *wait);
}

// Answers with a receipt that has the number of affected jobs.
template <class Receipt>
void answer_count(const ticket& reply, const result<std::uint64_t>& many) {
  if (!many) return reply.refuse(many.error());
  answer_with(reply, result<Receipt>(Receipt{*many}));
}

// Drops the fields that a graph does not show: a thousand whole jobs can be gigabytes.
job without_payloads(job j) {
  j.spec.args = {};
  j.spec.metadata = {};
  j.errors = {};
  j.history = {};
  j.result.reset();
  j.progress.reset();
  return j;
}

// Reads the jobs of a batch, page by page, and draws them.
struct drawing {
  engine& jobs;
  batch_info batch;
  graph_format format;
  std::vector<job> found{};

  static void read_page(const ticket& reply, std::shared_ptr<drawing> state, job_id after) {
    engine& jobs = state->jobs;
    list_request request{
        .batch = state->batch.id, .after = after, .limit = graph_jobs_max - state->found.size()};
    when_done(reply, jobs.list(std::move(request)),
              [state = std::move(state)](const ticket& back, result<job_page> page) mutable {
                if (!page) return back.refuse(page.error());
                for (job& j : page->jobs) state->found.push_back(without_payloads(std::move(j)));
                const bool is_complete = !page->cursor || state->found.size() >= graph_jobs_max;
                if (!is_complete) return read_page(back, std::move(state), *page->cursor);
                state->draw(back, page->cursor.has_value());
              });
  }

  void draw(const ticket& reply, bool is_cut) const {
    std::string& body = reply.client().scratch();
    draw_graph(body, format, batch, found, is_cut ? graph_part::first : graph_part::all);
    reply.answer({.status = 200, .type = type_of(format), .body = body});
  }
};

}  // namespace

void push_batch(call& c) {
  auto asked = read_push(c);
  if (asked) push(c, std::move(asked->first), asked->second);
}

void push_workflow(call& c) {
  auto asked = read_push(c);
  if (!asked) return;
  if (asked->first.jobs.empty()) {
    return c.reply.refuse({error_code::invalid, "jobs: a workflow must have at least one job"});
  }
  push(c, std::move(asked->first), asked->second);
}

void list_batches(call& c) {
  const auto page = read_page_parameters(c.head.query(), 100);
  if (!page) return c.reply.refuse(page.error());
  if (!sees_every_queue(c, "batches")) return;
  when_done(std::move(c.reply), c.jobs.batches(page->after, page->limit), answer_with<batch_page>);
}

void get_batch(call& c) {
  if (!has_no_query(c)) return;
  with_batch(c, role::read, [&jobs = c.jobs, id = c.id](ticket reply) {
    when_done(std::move(reply), jobs.get_batch(id), answer_with<batch_info>);
  });
}

void get_batch_graph(call& c) {
  static constexpr std::array<std::string_view, 1> names = {"format"};
  const auto values = read_query(c.head.query(), names);
  if (!values) return c.reply.refuse(values.error());
  const auto format = graph_format_from((*values)[0].value_or("mermaid"));
  if (!format) return c.reply.refuse(bad_parameter("format", "expected mermaid or dot"));
  with_batch(c, role::read, [&jobs = c.jobs, id = c.id, format](ticket asked) {
    when_done(
        std::move(asked), jobs.get_batch(id),
        [&jobs, format](const ticket& reply, const result<batch_info>& found) {
          if (!found) return reply.refuse(found.error());
          drawing::read_page(reply, std::make_shared<drawing>(drawing{jobs, *found, *format}), 0);
        });
  });
}

void close_batch(call& c) {
  if (!has_no_query(c)) return;
  with_batch(c, role::push, [&jobs = c.jobs, id = c.id](ticket reply) {
    when_done(std::move(reply), jobs.close_batch(id), answer_with<batch_info>);
  });
}

void cancel_batch(call& c) {
  if (!has_no_query(c)) return;
  with_batch(c, role::push, [&jobs = c.jobs, id = c.id](ticket reply) {
    when_done(std::move(reply), jobs.cancel_batch(id), answer_count<json::cancel_receipt>);
  });
}

void retry_batch(call& c) {
  if (!has_no_query(c)) return;
  with_batch(c, role::push, [&jobs = c.jobs, id = c.id](ticket reply) {
    when_done(std::move(reply), jobs.retry_batch(id), answer_count<json::retry_receipt>);
  });
}

}  // namespace sluice::jobs::http
