#include "jobs/json/webhook.hpp"

#include "jobs/json/json_writer.hpp"

namespace sluice::jobs::json {

std::string webhook_document(const job& j, job_state as, unix_time ended_at,
                             const std::optional<payload>& value, const attempt_error* last_error) {
  std::string out;
  json_writer w(out);
  w.begin_object().key("url").value(j.spec.webhook).key("event").begin_object();
  w.key("id").value(j.id).key("queue").value(j.spec.queue).key("kind").value(j.spec.kind);
  const bool was_tried = as != job_state::cancelled;
  w.key("state").value(to_string(as)).key("attempts").value(j.attempts + (was_tried ? 1U : 0U));
  w.key("ended_at").value(ended_at);
  if (j.spec.batch != 0) w.key("batch").value(j.spec.batch);
  if (!j.spec.metadata.empty()) w.key("metadata").raw(j.spec.metadata);
  if (value && value->type == content_type::json) w.key("result").raw(value->data);
  if (value && value->type == content_type::bytes) w.key("result_base64").base64(value->data);
  if (last_error != nullptr) {
    w.key("error").begin_object().key("type").value(last_error->type);
    w.key("message").value(last_error->message).end_object();
  }
  w.end_object().end_object();
  return out;
}

}  // namespace sluice::jobs::json
