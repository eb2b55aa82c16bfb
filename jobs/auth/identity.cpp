#include "jobs/auth/identity.hpp"

#include <algorithm>

namespace sluice::jobs {

bool identity::covers_scope_of(const identity& other) const noexcept {
  if (!is_scoped()) return true;
  return other.is_scoped() && std::ranges::all_of(other.token_->queues, [&](const auto& pattern) {
           return std::ranges::find(token_->queues, pattern) != token_->queues.end();
         });
}

error identity::refusal(role needed) const {
  return {error_code::forbidden,
          "this needs the role " + std::string(to_string(needed)) + ", but the token " +
              std::string(id()) + " has " +
              (token_ == nullptr ? std::string("every role") : to_string(token_->roles))};
}

error identity::refusal(role needed, std::string_view queue) const {
  if (!may(needed)) {
    error why = refusal(needed);
    why.message += "; the queue is '" + std::string(queue) + "'";
    return why;
  }
  return {error_code::forbidden, "the token " + std::string(id()) + " has the role " +
                                     std::string(to_string(needed)) + ", but not for the queue '" +
                                     std::string(queue) + "'"};
}

}  // namespace sluice::jobs
