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
  // Does not create a missing queue.
  if (const auto there = c.jobs.queue(c.name); !there) return c.reply.refuse(there.error());
  when_done(std::move(c.reply), c.jobs.configure(std::move(c.name), {.paused = paused}),
            answer_with<queue_info>);
}

}  // namespace

void list_queues(call& c) {
  if (!has_no_query(c)) return;
  std::vector<queue_info> all = c.jobs.queues();
  std::erase_if(all, [&](const queue_info& q) { return !c.caller.may(role::read, q.name); });
  answer_with(c.reply, result<std::vector<queue_info>>(std::move(all)));
}

void get_queue(call& c) {
  if (!has_no_query(c) || !may_use(c, role::read, c.name)) return;
  answer_with(c.reply, c.jobs.queue(c.name));
}

void configure_queue(call& c) {
  if (!has_no_query(c) || !may_use(c, role::admin, c.name)) return;
  const auto patch = json::read<queue_patch>(c.body);
  if (!patch) return c.reply.refuse(patch.error());
  when_done(std::move(c.reply), c.jobs.configure(std::move(c.name), *patch),
            answer_with<queue_info>);
}

void pause_queue(call& c) {
  set_paused(c, true);
}

void resume_queue(call& c) {
  set_paused(c, false);
}

void purge_queue(call& c) {
  if (!has_no_query(c) || !may_use(c, role::admin, c.name)) return;
  when_done(std::move(c.reply), c.jobs.purge(std::move(c.name)),
            [](const ticket& reply, const result<std::uint64_t>& purged) {
              if (!purged) return reply.refuse(purged.error());
              answer_with(reply, result<json::purge_receipt>(json::purge_receipt{*purged}));
            });
}

void get_stats(call& c) {
  if (has_no_query(c)) answer_with(c.reply, result<engine_stats>(c.jobs.stats()));
}

void get_openapi(call& c) {
  if (has_no_query(c)) c.reply.answer_json(200, openapi_text());
}

void get_metrics(call& c) {
  if (!sees_every_queue(c, "the metrics")) return;
  std::string& body = c.reply.client().scratch();
  write_metrics(body, c.server, c.jobs);
  if (const auto& more = c.server.options.more_metrics) more(body);
  c.reply.answer({.status = 200, .type = "text/plain; version=0.0.4; charset=utf-8", .body = body});
}

void get_health(call& c) {
  c.reply.answer_json(200, R"({"status":"ok"})");
}

void get_readiness(call& c) {
  const health now = c.jobs.health();
  if (c.server.is_closing()) {
    return c.reply.refuse({error_code::shutting_down, "the server is shutting down"});
  }
  // Always 503: the status is about the server, not about this request.
  if (!now.takes_pushes) return c.reply.refuse({now.code, now.reason}, 503);
  c.reply.answer_json(200, R"({"status":"ready"})");
}

void get_root(call& c) {
  std::string& body = c.reply.client().scratch();
  json::json_writer w(body);
  w.begin_object().key("service").value("sluice");
  if (!c.server.options.version.empty()) w.key("version").value(c.server.options.version);
  w.key("store").value(c.jobs.describe_store()).end_object();
  c.reply.answer_json(200, body);
}

}  // namespace sluice::jobs::http
