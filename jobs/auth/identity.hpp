#pragma once

// The authenticated caller: a token, or local if the server requires none. Checks its permissions.
//
//     if (!caller.may(role::push, spec.queue)) return caller.refusal(role::push, spec.queue);

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "jobs/auth/token.hpp"

namespace sluice::jobs {

class identity {
 public:
  identity() = default;  // the server requires no token: everything is allowed
  explicit identity(std::shared_ptr<const token> t) noexcept : token_(std::move(t)) {}

  bool may(role needed) const noexcept { return token_ == nullptr || token_->roles.allows(needed); }
  bool may(role needed, std::string_view queue) const noexcept {
    return token_ == nullptr || (token_->roles.allows(needed) && token_->covers(queue));
  }
  // Returns whether the request needed no token.
  bool is_local() const noexcept { return token_ == nullptr; }
  std::optional<unix_time> expires_at() const noexcept {
    return token_ == nullptr ? std::nullopt : token_->expires_at;
  }
  // Returns whether the token is limited to some queues.
  bool is_scoped() const noexcept { return token_ != nullptr && !token_->queues.empty(); }
  // Returns whether this scope has every pattern of the other's, or is unlimited.
  bool covers_scope_of(const identity& other) const noexcept;
  // Returns the id of the token, or "local".
  std::string_view id() const noexcept {
    return token_ == nullptr ? std::string_view("local") : std::string_view(token_->id);
  }

  // Returns `forbidden` with the missing role, or the queue that is out of scope.
  error refusal(role needed) const;
  error refusal(role needed, std::string_view queue) const;

 private:
  friend class token_set;

  std::shared_ptr<const token> token_;
};

}  // namespace sluice::jobs
