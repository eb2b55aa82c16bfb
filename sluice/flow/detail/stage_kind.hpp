#pragma once

// How each kind of stage converts the results of its function, and where the results go. See
// pipeline.hpp.

#include <iterator>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/flow/detail/call_kind.hpp"
#include "sluice/queue/bounded_queue.hpp"

namespace sluice::detail {

// The destination of a stage's results: the queue of the next stage.
template <class T>
class out_port {
 public:
  bounded_queue<T>* next = nullptr;

 protected:
  ~out_port() = default;
};
template <>
class out_port<void> {
 protected:
  ~out_port() = default;
};

// ---- conversion of a function's result into a range of results

struct as_map {
  template <class In, class R>
  using out = R;
  template <class U, class In>
  static std::optional<U> results(U&& made, In&) {
    return std::optional<U>(std::move(made));
  }
};
// An optional, or a bool: true passes the item itself on.
struct as_filter {
  template <class In, class R>
  struct of;
  template <class In, class U>
  struct of<In, std::optional<U>> {
    using type = U;
  };
  template <class In>
  struct of<In, bool> {
    using type = In;
  };
  template <class In, class R>
  using out = typename of<In, R>::type;
  template <class U, class In>
  static std::optional<U> results(std::optional<U>&& made, In&) {
    return std::move(made);
  }
  template <class U, class In>
  static std::optional<U> results(bool&& passes, In& item) {
    return passes ? std::optional<U>(std::move(item)) : std::nullopt;
  }
};
struct as_flat_map {
  template <class In, class R>
  using out = std::remove_cvref_t<decltype(*std::begin(std::declval<R&>()))>;
  template <class U, class In, class R>
  static std::vector<U> results(R&& made, In&) {
    if constexpr (std::is_same_v<std::remove_cvref_t<R>, std::vector<U>>) {
      return std::move(made);
    } else {
      std::vector<U> all;
      for (auto&& one : made) all.push_back(std::forward<decltype(one)>(one));
      return all;
    }
  }
};
template <class U>
std::span<U> as_range(std::optional<U>& one) noexcept {
  return one ? std::span<U>(&*one, 1) : std::span<U>();
}
template <class U>
std::span<U> as_range(std::vector<U>& all) noexcept {
  return all;
}

struct as_sink {
  template <class In, class R>
  using out = void;
};

// The argument of a stage's function: it is moved the item, except a filter that returns a bool,
// which gets a const reference.
template <class In, class F, class Kind>
struct stage_call {
  using argument = In&&;
  using traits = call_traits<std::invoke_result_t<F&, In&&>>;
};
template <class In, class F>
requires std::is_same_v < typename call_traits<std::invoke_result_t<F&, const In&>>::value,
bool > struct stage_call<In, F, as_filter> {
  using argument = const In&;
  using traits = call_traits<std::invoke_result_t<F&, const In&>>;
};
template <class In, class F, class Kind>
using stage_out = typename Kind::template out<In, typename stage_call<In, F, Kind>::traits::value>;

}  // namespace sluice::detail
