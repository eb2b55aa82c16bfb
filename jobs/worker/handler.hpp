#pragma once

// Wraps a user's function as the handler of one kind of job: decodes the arguments, calls the
// function, and converts its return value or exception to the outcome that the worker reports.
//
// A handler is any of
//   R f(const Args&)      R f(const Args&, job_context&)      R f(job_context&)      R f()
// R is void, a type that can be written as JSON (json_codec.hpp), a `payload`, or a `result<U>` of
// one of these; a coroutine returns a `task<U>` of one of these. Args is any type that can be read
// from JSON; a `payload` receives the arguments unchanged.
//
// Outcome of the job:
//   returns                   done, with the value as its result (void: no result)
//   returns an error          failed: type is the error code's name, message the error's message
//   throws job_failed         failed with the given type, retry delay or `for_good`
//   throws anything else      failed: type is the exception's type, message its what(); nested
//                             exceptions become the backtrace
//   arguments do not decode   failed as options::on_bad_arguments defines; the message names the
//                             place
//
// Guarantees: several threads call a handler concurrently. The function object lives as long as the
// worker. The arguments of a coroutine live until it has ended.

#include <concepts>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "jobs/model/requests.hpp"
#include "jobs/worker/job_context.hpp"
#include "jobs/worker/json_codec.hpp"
#include "sluice/base/unique_function.hpp"
#include "sluice/future/task.hpp"

namespace sluice::jobs {

// Thrown by a handler to fail its job with a type, a retry delay, or without further retries.
//
//     throw job_failed({.type = "rate_limited", .message = "try later", .retry_in = 60s});
//     throw job_failed({.message = "no such customer", .for_good = true});
class job_failed : public std::runtime_error {
 public:
  explicit job_failed(failure why) : std::runtime_error(why.message), why_(std::move(why)) {}
  const failure& why() const noexcept { return why_; }

 private:
  failure why_;
};

// Outcome of one handler call.
struct job_outcome {
  std::optional<payload> result{};
  std::optional<failure> failed{};  // unset if the handler succeeded
  bool bad_arguments = false;       // decoding failed; the handler was not called
};

// Converts an exception or an error to the failure that is reported.
failure failure_of(const std::exception_ptr& thrown);
failure failure_of(const error& why);

// A type-erased handler: exactly one of the two is set.
struct job_handler {
  unique_function<job_outcome(job_context&)> plain;
  unique_function<task<job_outcome>(job_context&)> coroutine;
};

namespace detail {

struct no_args {};

// Arguments of a function: (Args, context), (Args), (context) or none.
template <class F>
struct handler_call : handler_call<decltype(&F::operator())> {};
template <class R, class... A>
struct handler_call<R (*)(A...)> {
  static_assert(sizeof...(A) <= 2, "a handler takes its arguments, a job_context&, or both");
  template <class First = no_args, class...>
  struct first {
    using type = First;
  };
  using first_type = typename first<A...>::type;
  static constexpr bool context_only = std::is_same_v<first_type, job_context&>;
  static constexpr bool takes_context = context_only || sizeof...(A) == 2;
  using args = std::conditional_t<context_only, no_args, std::remove_cvref_t<first_type>>;
  using returned = R;
};
template <class C, class R, class... A>
struct handler_call<R (C::*)(A...)> : handler_call<R (*)(A...)> {};
template <class C, class R, class... A>
struct handler_call<R (C::*)(A...) const> : handler_call<R (*)(A...)> {};
template <class C, class R, class... A>
struct handler_call<R (C::*)(A...) noexcept> : handler_call<R (*)(A...)> {};
template <class C, class R, class... A>
struct handler_call<R (C::*)(A...) const noexcept> : handler_call<R (*)(A...)> {};
template <class R, class... A>
struct handler_call<R (*)(A...) noexcept> : handler_call<R (*)(A...)> {};

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;
template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<result<T>> = true;

template <class F, class Args>
decltype(auto) call_handler(F& f, const Args& args, job_context& ctx) {
  using call = handler_call<F>;
  if constexpr (std::is_same_v<Args, no_args>) {
    if constexpr (call::takes_context) {
      return f(ctx);
    } else {
      return f();
    }
  } else if constexpr (call::takes_context) {
    return f(args, ctx);
  } else {
    return f(args);
  }
}

template <class R>
job_outcome outcome_of(R&& returned) {
  using type = std::remove_cvref_t<R>;
  if constexpr (std::is_same_v<type, job_outcome>) {
    return std::forward<R>(returned);
  } else if constexpr (is_result<type>) {
    if (!returned) return {.failed = failure_of(returned.error())};
    return outcome_of(*std::forward<R>(returned));
  } else if constexpr (std::is_same_v<type, done>) {
    return {};
  } else if constexpr (std::is_same_v<type, std::optional<payload>>) {
    return {.result = std::forward<R>(returned)};
  } else {
    return {.result = encode(returned)};
  }
}

template <class Args>
result<Args> read_args(const job_context& ctx) {
  if constexpr (std::is_same_v<Args, no_args>) {
    return no_args{};
  } else {
    return decode<Args>(ctx.args(), "args");
  }
}

inline job_outcome bad_arguments(const error& why) {
  return {.failed = failure{.type = "bad_arguments", .message = why.message},
          .bad_arguments = true};
}

template <class F, class Args>
job_outcome run_plain(F& f, job_context& ctx) {
  const result<Args> args = read_args<Args>(ctx);
  if (!args) return bad_arguments(args.error());
  if constexpr (std::is_void_v<typename handler_call<F>::returned>) {
    call_handler(f, *args, ctx);
    return {};
  } else {
    return outcome_of(call_handler(f, *args, ctx));
  }
}

template <class F, class Args>
task<job_outcome> run_coroutine(F& f, job_context& ctx) {
  const result<Args> args = read_args<Args>(ctx);
  if (!args) co_return bad_arguments(args.error());
  auto running = call_handler(f, *args, ctx);
  if constexpr (std::is_void_v<typename decltype(running)::value_type>) {
    co_await std::move(running);
    co_return job_outcome{};
  } else {
    auto returned = co_await std::move(running);
    co_return outcome_of(std::move(returned));
  }
}

}  // namespace detail

template <class F>
job_handler make_handler(F f) {
  using call = detail::handler_call<F>;
  using args = typename call::args;
  static_assert(
      std::is_same_v<args, detail::no_args> || readable<args>,
      "these arguments cannot be read from JSON: give the type `fields` (json_codec.hpp)");
  if constexpr (detail::is_task<typename call::returned>) {
    return {.plain = {}, .coroutine = [f = std::move(f)](job_context& ctx) mutable {
              return detail::run_coroutine<F, args>(f, ctx);
            }};
  } else {
    return {.plain = [f = std::move(f)](
                         job_context& ctx) mutable { return detail::run_plain<F, args>(f, ctx); },
            .coroutine = {}};
  }
}

}  // namespace sluice::jobs
