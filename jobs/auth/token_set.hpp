#pragma once

// The bearer tokens that a server accepts, of which it keeps only what it takes to recognise them.
//
// A token is `slk_<id>_<secret>`: the id is for people and logs, the secret is 256 random bits. It
// is shown once, when it is made; what is kept is the SHA-256 of the secret. (A secret that is
// random and long needs no salt and no slow hash: there is no dictionary of it.)
//
// Guarantees: a plain value; reading it is safe from any thread. Secrets are compared in constant
// time, and against a dummy when there is no such id; that a token is disabled or over is told
// only to who has its secret. No error has a secret in it.
// Cost: authenticate hashes 43 bytes once, about a microsecond, and allocates nothing when it
// succeeds. Limits: tokens_max.
//
//     token_set all;
//     auto made = all.create({.name = "web", .roles = {role::push}}, now).value();
//     show(made.text);                                   // once
//     auto who = all.authenticate(header, now);
//     if (!who) return answer_401(who.error());

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

// What somebody wants to do: a role, and in which queue where that is known.
struct need {
  role what = role::admin;
  std::string_view queue{};  // empty: any
};

class token_set {
 public:
  static constexpr std::size_t tokens_max = 1000;
  static constexpr std::size_t name_bytes_max = 100;
  static constexpr std::size_t queues_max = 100;  // of one token

  struct created {
    std::string text;  // the token itself: it is nowhere else
    token what;
  };

  // From the text of a file, which `text` writes. corrupt: says where and what is wrong.
  static result<token_set> parse(std::string_view text);
  std::string text() const;

  // invalid: what is wrong with the request; too_large: there are too many.
  result<created> create(token_request what, unix_time now);
  // Nobody can use it any more; it stays in the list, so that its id in a log still means
  // something.
  result<token> revoke(std::string_view id);
  // As if it had never been. not_found.
  result<token> remove(std::string_view id);

  // In the order in which they were made.
  const std::vector<std::shared_ptr<const token>>& list() const noexcept { return tokens_; }
  bool empty() const noexcept { return tokens_.empty(); }
  // One at least that is neither disabled nor over.
  bool has_usable(unix_time now) const noexcept;

  // Whose token this is, or `unauthenticated` and why. `shown` is the token's text alone.
  result<identity> authenticate(std::string_view shown, unix_time now) const;
  // The same token as it is now. `unauthenticated` if it was removed, revoked or has expired, or if
  // the server asked for no token when `who` sent the request.
  result<identity> renew(const identity& who, unix_time now) const;
  // Allowed, or unauthenticated, or forbidden.
  result<identity> authorize(std::string_view shown, const need& what, unix_time now) const;

 private:
  std::shared_ptr<const token>* find(std::string_view id);
  void index();

  std::vector<std::shared_ptr<const token>> tokens_;
  std::map<std::string, std::size_t, std::less<>> places_;  // by id
};

}  // namespace sluice::jobs
