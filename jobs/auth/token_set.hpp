#pragma once

// The bearer tokens that a server accepts. Stores only the hashes of their secrets.
//
// A token is `slk_<id>_<secret>`: the id is for people and logs, the secret is 256 random bits. The
// token is shown once, when it is created; only the SHA-256 of the secret is stored. (A long random
// secret needs no salt and no slow hash: a dictionary attack is impossible.)
//
// Guarantees: a plain value; any thread may read it. Secrets are compared in constant time, and
// against a dummy hash if the id is unknown. That a token is disabled or expired is reported only
// to a caller that has its secret. No error contains a secret.
// Cost: authenticate hashes 43 bytes, about a microsecond, and does not allocate on success.
// Limits:
// tokens_max.
//
//     token_set all;
//     auto made = all.create({.name = "web", .roles = {role::push}}, now).value();
//     show(made.text);                                   // once
//     auto caller = all.authenticate(header, now);
//     if (!caller) return answer_401(caller.error());

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/auth/identity.hpp"
#include "jobs/auth/token.hpp"
#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs {

struct token_request {
  std::string name{};
  role_set roles{};
  std::vector<std::string> queues{};  // empty: every queue
  std::optional<unix_time> expires_at{};
};

// The permission that a request needs: a role, and the queue if it is known.
struct need {
  role required = role::admin;
  std::string_view queue{};  // empty: any
};

class token_set {
 public:
  static constexpr std::size_t tokens_max = 1000;
  static constexpr std::size_t name_bytes_max = 100;
  static constexpr std::size_t queues_max = 100;  // per token

  struct created {
    std::string text;  // the token itself, stored nowhere else
    token info;
  };

  // Parses the text that `text` wrote. Fails with `corrupt` and the place of the error.
  static result<token_set> parse(std::string_view text);
  std::string text() const;

  // Fails with `invalid` if the request is not valid, `too_large` if there are tokens_max tokens.
  result<created> create(token_request request, unix_time now);
  // Disables the token. It stays in the list, so that its id in a log can still be resolved.
  result<token> revoke(std::string_view id);
  // Deletes the token. Fails with `not_found`.
  result<token> remove(std::string_view id);

  // All tokens, in the order of creation.
  const std::vector<std::shared_ptr<const token>>& list() const noexcept { return tokens_; }
  bool empty() const noexcept { return tokens_.empty(); }
  // Returns whether a token is neither disabled nor expired.
  bool has_usable(unix_time now) const noexcept;

  // Returns the caller, or `unauthenticated` with the reason. `text` is the token without a prefix
  // such as "Bearer".
  result<identity> authenticate(std::string_view text, unix_time now) const;
  // Returns the caller with the current state of its token. Fails with `unauthenticated` if the
  // token was removed or revoked or has expired, or if the caller is local but a token is required
  // now.
  result<identity> renew(const identity& caller, unix_time now) const;
  // Authenticates and checks the permission. Fails with `unauthenticated` or `forbidden`.
  result<identity> authorize(std::string_view text, const need& permission, unix_time now) const;

 private:
  std::shared_ptr<const token>* find(std::string_view id);
  void rebuild_index();

  std::vector<std::shared_ptr<const token>> tokens_;
  std::map<std::string, std::size_t, std::less<>> places_;  // by id
};

}  // namespace sluice::jobs
