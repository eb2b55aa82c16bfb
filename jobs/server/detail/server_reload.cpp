// What a server loads when it starts and, while it serves, again: queues, cron entries, tokens and
// the certificate.
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

// Tokens are asked for from when there are some.
void_result server::impl::load_tokens_first() {
  tokens_stamp_ = detail::file_stamp::of(token_file_of(options_));
  auto tokens = load_tokens(token_file_of(options_));
  if (!tokens) return tokens.error();
  if (options_.auth_required || !tokens->empty()) options_.http.tokens = *std::move(tokens);
  if (options_.http.tokens && !options_.http.tokens->has_usable(real_time().now())) {
    log_.warn("no token can be used", {{"requests", "all refused"},
                                       {"make", "sluice token create --name me --role admin"}});
  }
  return done{};
}

// The queues and the cron entries of the configuration.
void_result server::impl::configure(const server_options& o) {
  for (const auto& [name, patch] : o.queues) {
    if (auto set = engine_->configure(name, patch).get(); !set) {
      return error{set.error().code,
                   "the settings of the queue " + name + ": " + set.error().message};
    }
  }
  for (auto [spec, says_paused] : o.crons) {
    if (!says_paused) {  // what an operator did to it holds
      const auto stored = engine_->get_cron(spec.name);
      spec.paused = stored && stored->entry.spec.paused;
    }
    if (auto set = engine_->set_cron(spec).get(); !set) {
      return error{set.error().code, "the cron entry " + spec.name + ": " + set.error().message};
    }
  }
  if (!o.queues.empty() || !o.crons.empty()) {
    log_.info("configured", {{"queues", o.queues.size()}, {"cron", o.crons.size()}});
  }
  return done{};
}

void server::impl::tell_certificate(const tls_certificate& shown) {
  log_.info("certificate", {{"subject", shown.subject}, {"until", format_time(shown.valid_until)}});
  if (shown.is_over) {
    log_.warn("the certificate is not valid now",
              {{"until", format_time(shown.valid_until)}, {"clients", "will refuse it"}});
  }
}

void server::impl::reload() {
  systemd_.reloading();
  if (reloader_) {
    const auto fresh = reloader_();
    // The rules first: a queue of the new configuration may be delivered to where they allow it.
    if (fresh) reload_part("delivery", "SIGHUP", update_delivery(*fresh));
    reload_part("configuration", "SIGHUP", fresh ? configure(*fresh) : void_result(fresh.error()));
    if (fresh) reload_faktory_password(*fresh);
  }
  if (http_ != nullptr) reload_part("tokens", "SIGHUP", reload_tokens());
  if (is_secure() && http_ != nullptr) {
    const auto shown = http_->reload_tls();
    reload_part("certificate", "SIGHUP", shown ? void_result(done{}) : void_result(shown.error()));
    if (shown) tell_certificate(*shown);
  }
  reload_protocol_certificates();
  reload_part("audit log", "SIGHUP", audit_->reopen());
  systemd_.ready("listening on " + places());
}

void_result server::impl::reload_tokens() {
  const auto stamp = detail::file_stamp::of(token_file_of(options_));
  auto tokens = load_tokens(token_file_of(options_));
  if (!tokens) return tokens.error();
  tokens_stamp_ = stamp;  // what could not be read is tried again: a token may have been revoked
  // Once they are asked for they stay so, also when the last is gone.
  if (!options_.http.tokens && tokens->empty()) return done{};
  tell_token_acts(options_.http.tokens.value_or(token_set()), *tokens);
  options_.http.tokens = *tokens;
  http_->use_tokens(*std::move(tokens));
  return done{};
}

// They are made and revoked by commands, which know no audit log: it is seen here.
void server::impl::tell_token_acts(const token_set& before, const token_set& after) {
  const auto find = [](const token_set& in, const std::string& id) {
    const auto at = std::ranges::find_if(in.list(), [&](const auto& t) { return t->id == id; });
    return at == in.list().end() ? nullptr : at->get();
  };
  const auto tell = [&](std::string_view act, const token& t) {
    audit_->write({.who = "local",
                   .from = token_file_of(options_),
                   .act = std::string(act) + " token " + t.id + " (" + t.name + ")"});
  };
  for (const auto& t : after.list()) {
    const token* const was = find(before, t->id);
    if (was == nullptr) tell("create", *t);
    if (t->disabled && (was == nullptr || !was->disabled)) tell("revoke", *t);
  }
  for (const auto& t : before.list()) {
    if (find(after, t->id) == nullptr) tell("remove", *t);
  }
}

// What could not be loaded stays as it was.
void server::impl::reload_part(std::string_view what, std::string_view from,
                               const void_result& how) {
  if (how) {
    log_.info("loaded again", {{"what", what}});
  } else {
    log_.error("not loaded again, and as before",
               {{"what", what}, {"reason", how.error().message}});
  }
  audit_->write({.who = "local",
                 .from = from,
                 .act = "reload " + std::string(what),
                 .outcome = how ? "ok" : to_string(how.error().code)});
}

}  // namespace sluice::jobs
