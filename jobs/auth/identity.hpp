#pragma once

// Who asks, once that is known: the token that was shown, or nobody in particular where none is
// asked for. Answers what they may do.
//
//     if (!who.may(role::push, spec.queue)) return who.refusal(role::push, spec.queue);

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "jobs/auth/token.hpp"

namespace sluice::jobs {

class identity {
 public:
  identity() = default;  // where no token is asked for: may do anything
  explicit identity(std::shared_ptr<const token> shown) noexcept : token_(std::move(shown)) {}

  bool may(role what) const noexcept { return token_ == nullptr || token_->roles.allows(what); }
  bool may(role what, std::string_view queue) const noexcept {
    return token_ == nullptr || (token_->roles.allows(what) && token_->covers(queue));
  }
  // The request needed no token.
  bool is_local() const noexcept { return token_ == nullptr; }
  std::optional<unix_time> expires_at() const noexcept {
    return token_ == nullptr ? std::nullopt : token_->expires_at;
  }
  // May see some queues only.
  bool is_scoped() const noexcept { return token_ != nullptr && !token_->queues.empty(); }
  // Has every pattern of the other's scope, or no scope.
  bool covers_scope_of(const identity& other) const noexcept;
  // The id of the token, or "local".
  std::string_view id() const noexcept {
    return token_ == nullptr ? std::string_view("local") : std::string_view(token_->id);
  }

  // `forbidden`: the role that is missing, or the queue that is out of scope.
  error refusal(role what) const;
  error refusal(role what, std::string_view queue) const;

 private:
  friend class token_set;

  std::shared_ptr<const token> token_;
};

}  // namespace sluice::jobs
