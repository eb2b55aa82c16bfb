#include "jobs/json/webhook.hpp"

#include "jobs/json/json_writer.hpp"

namespace sluice::jobs::json {

std::string webhook_document(const job& it, job_state as, unix_time ended_at,
                             const std::optional<payload>& value, const attempt_error* why) {
  std::string out;
  json_writer w(out);
  w.begin_object().key("url").value(it.spec.webhook).key("event").begin_object();
  w.key("id").value(it.id).key("queue").value(it.spec.queue).key("kind").value(it.spec.kind);
  const bool was_tried = as != job_state::cancelled;
  w.key("state").value(to_string(as)).key("attempts").value(it.attempts + (was_tried ? 1U : 0U));
  w.key("ended_at").value(ended_at);
  if (it.spec.batch != 0) w.key("batch").value(it.spec.batch);
  if (!it.spec.metadata.empty()) w.key("metadata").raw(it.spec.metadata);
  if (value && value->type == content_type::json) w.key("result").raw(value->data);
  if (value && value->type == content_type::bytes) w.key("result_base64").base64(value->data);
  if (why != nullptr) {
    w.key("error").begin_object().key("type").value(why->type);
    w.key("message").value(why->message).end_object();
  }
  w.end_object().end_object();
  return out;
}

}  // namespace sluice::jobs::json
