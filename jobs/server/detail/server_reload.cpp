// Queues, cron entries, tokens and the certificate: loaded at the start and reloaded while serving.
#include <algorithm>

#include "jobs/auth/token_file.hpp"
#include "jobs/json/text.hpp"
#include "jobs/server/detail/server_impl.hpp"

namespace sluice::jobs {
namespace detail {

file_stamp file_stamp::of(const std::string& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return {};
  return {found.st_ino, found.st_size,
          std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec};
}

}  // namespace detail

// Requires tokens once there are any.
void_result server::impl::load_initial_tokens() {
  tokens_stamp_ = detail::file_stamp::of(token_file_of(options_));
  auto tokens = load_tokens(token_file_of(options_));
  if (!tokens) return tokens.error();
  if (options_.auth_required || !tokens->empty()) options_.http.tokens = *std::move(tokens);
  if (options_.http.tokens && !options_.http.tokens->has_usable(real_time().now())) {
    log_.warn("no usable token", {{"requests", "all rejected"},
                                  {"make", "sluice token create --name me --role admin"}});
  }
  return done{};
}

// Applies the queues and the cron entries of the configuration.
void_result server::impl::configure(const server_options& o) {
  for (const auto& [name, patch] : o.queues) {
    if (auto set = engine_->configure(name, patch).get(); !set) {
      return error{set.error().code, "settings of the queue " + name + ": " + set.error().message};
    }
  }
  for (auto [spec, says_paused] : o.crons) {
    if (!says_paused) {  // keeps what an operator has set
      const auto stored = engine_->get_cron(spec.name);
      spec.paused = stored && stored->entry.spec.paused;
    }
    if (auto set = engine_->set_cron(spec).get(); !set) {
      return error{set.error().code, "cron entry " + spec.name + ": " + set.error().message};
    }
  }
  if (!o.queues.empty() || !o.crons.empty()) {
    log_.info("configured", {{"queues", o.queues.size()}, {"cron", o.crons.size()}});
  }
  return done{};
}

void server::impl::log_certificate(const tls_certificate& current) {
  log_.info("certificate",
            {{"subject", current.subject}, {"until", format_time(current.valid_until)}});
  if (current.is_outside_validity) {
    log_.warn("the certificate is not valid now",
              {{"until", format_time(current.valid_until)}, {"clients", "will reject it"}});
  }
}

void server::impl::reload() {
  systemd_.reloading();
  if (reloader_) {
    const auto fresh = reloader_();
    // The rules first: a queue of the new configuration may need them.
    if (fresh) log_reload("delivery", "SIGHUP", update_delivery(*fresh));
    log_reload("configuration", "SIGHUP", fresh ? configure(*fresh) : void_result(fresh.error()));
    if (fresh) reload_faktory_password(*fresh);
  }
  if (http_ != nullptr) log_reload("tokens", "SIGHUP", reload_tokens());
  if (is_secure() && http_ != nullptr) {
    const auto current = http_->reload_tls();
    log_reload("certificate", "SIGHUP",
               current ? void_result(done{}) : void_result(current.error()));
    if (current) log_certificate(*current);
  }
  reload_protocol_certificates();
  log_reload("audit log", "SIGHUP", audit_->reopen());
  systemd_.ready("listening on " + addresses());
}

void_result server::impl::reload_tokens() {
  const auto stamp = detail::file_stamp::of(token_file_of(options_));
  auto tokens = load_tokens(token_file_of(options_));
  if (!tokens) return tokens.error();
  tokens_stamp_ = stamp;  // only after success: a failed load is retried
  // Tokens stay required even if the last is removed.
  if (!options_.http.tokens && tokens->empty()) return done{};
  audit_token_changes(options_.http.tokens.value_or(token_set()), *tokens);
  options_.http.tokens = *tokens;
  http_->use_tokens(*std::move(tokens));
  return done{};
}

// Commands that create and revoke tokens have no audit log, so the server logs the changes.
void server::impl::audit_token_changes(const token_set& before, const token_set& after) {
  const auto find = [](const token_set& in, const std::string& id) {
    const auto at = std::ranges::find_if(in.list(), [&](const auto& t) { return t->id == id; });
    return at == in.list().end() ? nullptr : at->get();
  };
  const auto write = [&](std::string_view act, const token& t) {
    audit_->write({.who = "local",
                   .from = token_file_of(options_),
                   .act = std::string(act) + " token " + t.id + " (" + t.name + ")"});
  };
  for (const auto& t : after.list()) {
    const token* const was = find(before, t->id);
    if (was == nullptr) write("create", *t);
    if (t->disabled && (was == nullptr || !was->disabled)) write("revoke", *t);
  }
  for (const auto& t : before.list()) {
    if (find(after, t->id) == nullptr) write("remove", *t);
  }
}

// Logs and audits a reload. After a failure the previous state stays in use.
void server::impl::log_reload(std::string_view part, std::string_view from,
                              const void_result& outcome) {
  if (outcome) {
    log_.info("reloaded", {{"what", part}});
  } else {
    log_.error("reload failed, keeping the previous state",
               {{"what", part}, {"reason", outcome.error().message}});
  }
  audit_->write({.who = "local",
                 .from = from,
                 .act = "reload " + std::string(part),
                 .outcome = outcome ? "ok" : to_string(outcome.error().code)});
}

}  // namespace sluice::jobs
