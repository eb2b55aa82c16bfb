#pragma once

// The result of a call of the job server: a value, or an error that a person or a program can act
// on.
//
// `error::code` is for programs (HTTP, the command line and the protocols each map it in one
// table); `error::message` is for people: what is wrong, where, and what to do.
//
// Guarantees: plain values. Reading the value of a result that holds an error is a broken contract.
//
//     result<push_receipt> pushed = engine.push({.kind = "mail"}).get();
//     if (!pushed) return reply(pushed.error());
//     log(pushed->id);

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "sluice/base/check.hpp"

namespace sluice::jobs {

enum class error_code : std::uint8_t {
  invalid,        // the request itself is wrong; the same request will never succeed
  too_large,      // larger than a limit that the message names
  not_found,      // no such job or queue (it never existed, or its retention period has passed)
  duplicate,      // a unique key is taken; error::job is its holder
  wrong_state,    // the state of the job does not allow the call
  lease_lost,     // the lease expired, was released, or never existed
  queue_full,     // the queue is at its capacity; try again later
  timed_out,      // the caller's deadline passed first; nothing was done
  stopped,        // the caller's stop_token was triggered first; nothing was done
  shutting_down,  // intake is closed
  overloaded,     // a limit of the server itself (waiting calls, bytes in flight); try again later
  disk_full,      // no disk space to make the change durable; retry when space is free again
  io_error,       // the disk failed; nothing was acknowledged
  locked,         // another program holds the store
  corrupt,        // the store is damaged, or the file is not a store
  unavailable,    // the server is unreachable or its response is invalid (clients only)
  unauthenticated,  // the server requires a token, and the request has no valid one
  forbidden,        // the token lacks a role, or is limited to other queues
};
std::string_view to_string(error_code code) noexcept;  // "queue_full"

struct error {
  error_code code = error_code::invalid;
  std::string message{};
  std::uint64_t job = 0;  // the job concerned, if any; for `duplicate`, the holder of the key
};

// Returns the error of an invalid request.
inline error invalid_error(std::string message) {
  return {error_code::invalid, std::move(message)};
}

template <class T>
class [[nodiscard]] result {
 public:
  using value_type = T;

  result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  result(jobs::error error) : held_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const noexcept { return held_.index() == 0; }
  bool has_value() const noexcept { return held_.index() == 0; }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  T& value() & {
    check(has_value(), "sluice::jobs::result", "a value; test the result before reading it");
    return *std::get_if<0>(&held_);
  }
  const T& value() const& { return const_cast<result&>(*this).value(); }
  T&& value() && { return std::move(value()); }

  jobs::error& error() & {
    check(!has_value(), "sluice::jobs::result", "an error; test the result before reading it");
    return *std::get_if<1>(&held_);
  }
  const jobs::error& error() const& { return const_cast<result&>(*this).error(); }

 private:
  std::variant<T, jobs::error> held_;
};

// The result of calls that only succeed or fail.
struct done {};
using void_result = result<done>;

}  // namespace sluice::jobs
