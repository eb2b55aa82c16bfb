// Queues, and the server itself.
#include "jobs/http/detail/handlers.hpp"
#include "jobs/http/detail/openapi.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/json/json_writer.hpp"

namespace sluice::jobs::http {
namespace {

void set_paused(call& c, bool paused) {
  if (!has_no_query(c) || !may_use(c, role::admin, c.name)) return;
  // A queue that is not there is not made by this.
  if (const auto there = c.jobs.queue(c.name); !there) return c.to.refuse(there.error());
  when_done(std::move(c.to), c.jobs.configure(std::move(c.name), {.paused = paused}),
            answer_with<queue_info>);
}

}  // namespace

void list_queues(call& c) {
  if (!has_no_query(c)) return;
  std::vector<queue_info> all = c.jobs.queues();
  std::erase_if(all, [&](const queue_info& q) { return !c.who.may(role::read, q.name); });
  answer_with(c.to, result<std::vector<queue_info>>(std::move(all)));
}

void get_queue(call& c) {
  if (!has_no_query(c) || !may_use(c, role::read, c.name)) return;
  answer_with(c.to, c.jobs.queue(c.name));
}

void configure_queue(call& c) {
  if (!has_no_query(c) || !may_use(c, role::admin, c.name)) return;
  const auto patch = json::read<queue_patch>(c.body);
  if (!patch) return c.to.refuse(patch.error());
  when_done(std::move(c.to), c.jobs.configure(std::move(c.name), *patch), answer_with<queue_info>);
}

void pause_queue(call& c) {
  set_paused(c, true);
}

void resume_queue(call& c) {
  set_paused(c, false);
}

void purge_queue(call& c) {
  if (!has_no_query(c) || !may_use(c, role::admin, c.name)) return;
  when_done(std::move(c.to), c.jobs.purge(std::move(c.name)),
            [](const ticket& to, const result<std::uint64_t>& purged) {
              if (!purged) return to.refuse(purged.error());
              answer_with(to, result<json::purge_receipt>(json::purge_receipt{*purged}));
            });
}

void get_stats(call& c) {
  if (has_no_query(c)) answer_with(c.to, result<engine_stats>(c.jobs.stats()));
}

void get_openapi(call& c) {
  if (has_no_query(c)) c.to.answer_json(200, openapi_text());
}

void get_metrics(call& c) {
  if (!sees_every_queue(c, "the metrics")) return;
  std::string& body = c.to.who().scratch();
  write_metrics(body, c.server, c.jobs);
  if (const auto& more = c.server.options.more_metrics) more(body);
  c.to.answer({.status = 200, .type = "text/plain; version=0.0.4; charset=utf-8", .body = body});
}

void get_health(call& c) {
  c.to.answer_json(200, R"({"status":"ok"})");
}

void get_readiness(call& c) {
  const health now = c.jobs.health();
  if (c.server.is_closing()) {
    return c.to.refuse({error_code::shutting_down, "the server is shutting down"});
  }
  // 503 whatever the reason: this is a question about the server, not about a request.
  if (!now.takes_pushes) return c.to.refuse({now.code, now.reason}, 503);
  c.to.answer_json(200, R"({"status":"ready"})");
}

void get_root(call& c) {
  std::string& body = c.to.who().scratch();
  json::json_writer w(body);
  w.begin_object().key("service").value("sluice");
  if (!c.server.options.version.empty()) w.key("version").value(c.server.options.version);
  w.key("store").value(c.jobs.describe_store()).end_object();
  c.to.answer_json(200, body);
}

}  // namespace sluice::jobs::http
