// Posting of jobs and of their ends to URLs.
#include <algorithm>

#include "jobs/deliver/signature.hpp"
#include "jobs/deliver/url_rules.hpp"
#include "jobs/server/detail/server_impl.hpp"

namespace sluice::jobs {

void_result server::impl::open_delivery() {
  deliverer_options o;
  o.rules = rules_.with([](const url_rules& r) { return r; });
  o.secrets = split_secrets(options_.delivery.secret);
  o.version = SLUICE_VERSION;
  o.ca_file = options_.delivery.ca_file;
  o.requests_max = options_.delivery.concurrency;
  o.webhook_timeout = options_.delivery.timeout;
  o.webhook_concurrency = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(o.webhook_concurrency, options_.delivery.concurrency));
  o.on_event = [this](const delivery_event& e) { log_delivery(e); };
  auto posts = deliverer::open(*engine_, std::move(o));
  if (!posts) return posts.error();
  posts_.with([&](std::unique_ptr<deliverer>& p) { p = *std::move(posts); });
  return done{};
}

void server::impl::log_delivery(const delivery_event& e) {
  const bool is_good = e.kind == delivery_event::event_kind::resumed;
  const auto write = is_good ? &event_log::info : &event_log::warn;
  (log_.*write)("delivery", {{"what", to_string(e.kind)},
                             {"queue", e.queue},
                             {"receiver", e.receiver},
                             {"job", e.job},
                             {"reason", e.message}});
}

void_result server::impl::update_delivery(const server_options& o) {
  auto rules = url_rules::parse(o.delivery.allow);
  if (!rules) return error{rules.error().code, "delivery.allow: " + rules.error().message};
  auto updated = posts_.with([&](std::unique_ptr<deliverer>& posts) {
    return posts->update(*rules, split_secrets(o.delivery.secret));
  });
  if (!updated) return updated;
  rules_.with([&](url_rules& r) { r = *std::move(rules); });
  return done{};
}

}  // namespace sluice::jobs
