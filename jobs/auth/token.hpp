#pragma once

// The permissions of a bearer token: its roles, its queues, and when it expires.
//
// A role covers a group of requests: `push` adds, cancels and retries jobs; `work` leases jobs and
// reports their end; `read` only reads; `admin` changes queues, schedules and the server, and
// includes the other three. A scope is a list of queue names or prefixes such as `mail-*`; an empty
// scope covers every queue.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs {

enum class role : std::uint8_t { push, work, read, admin };
inline constexpr std::array all_roles = {role::push, role::work, role::read, role::admin};
std::string_view to_string(role r) noexcept;
std::optional<role> role_from(std::string_view word) noexcept;

class role_set {
 public:
  constexpr role_set() = default;
  constexpr role_set(std::initializer_list<role> roles) {
    for (const role r : roles) add(r);
  }

  constexpr void add(role r) noexcept { bits_ |= bit(r); }
  constexpr bool empty() const noexcept { return bits_ == 0; }
  constexpr bool names(role r) const noexcept { return (bits_ & bit(r)) != 0; }
  // Returns whether the set has this role or `admin`.
  constexpr bool allows(role r) const noexcept { return names(r) || names(role::admin); }

  friend constexpr bool operator==(role_set, role_set) = default;

 private:
  static constexpr std::uint8_t bit(role r) noexcept {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(r));
  }
  std::uint8_t bits_ = 0;
};
std::string to_string(role_set roles);  // "push, read"

// A token as it is stored: with the hash of its secret, never the secret itself.
struct token {
  using hash = std::array<std::uint8_t, 32>;

  std::string id{};    // eight letters and digits, for people and logs
  std::string name{};  // of its holder, for people
  role_set roles{};
  std::vector<std::string> queues{};  // names, or prefixes such as mail-*; empty: every queue
  unix_time created_at{};
  std::optional<unix_time> expires_at{};
  bool disabled = false;
  hash sha256{};  // of the secret

  bool covers(std::string_view queue) const noexcept;
};

// Returns whether a pattern equals the name, or is a prefix of it that ends with *.
bool matches_any(const std::vector<std::string>& patterns, std::string_view queue) noexcept;
void_result validate_queue_pattern(std::string_view pattern);

}  // namespace sluice::jobs
