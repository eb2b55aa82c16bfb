#pragma once

// The state of a future that combines several: when_all, when_any and the like. It keeps the inputs
// until it is freed. Each input arrives once, on any thread; a rule determines which arrival
// decides and computes the result.
//
// A rule for `Inputs` has:
//   result                            the type of the result
//   static bool decides(in, i)        returns true if the arrival of input i decides the result
//   static void decide(in, i, out)    sets `out`, because input i decided
//   static void conclude(in, i, out)  sets `out` when all have arrived, i last, and none decided
//
// References to the node: the state's, the consumer's, and one for all inputs that are pending.

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/future/detail/future_parts.hpp"

namespace sluice::detail {

// Operations on one input, for inputs of one type and of several types.
template <class T>
settled<T>& result_of(future<T>& input) noexcept {
  return future_access::parts(input).state->result;
}
template <class T>
void leave_input(future<T>& input) noexcept {
  auto& parts = future_access::parts(input);
  auto& state = parts.take_state();
  state.result.reset();
  state.leave(std::move(parts.way_back));
}
// Marks an error as read: an error of an input that the result leaves out is not reported.
template <class T>
void mark_read(future<T>& input) noexcept {
  if (result_of(input).is_error()) (void)result_of(input).error();
}
template <class T>
void check_input(const future<T>& input) noexcept {
  check(input.valid(), "sluice::when_all or when_any", "valid futures");
}

template <class T>
class vector_inputs {
 public:
  explicit vector_inputs(std::vector<future<T>>&& inputs) noexcept : all_(std::move(inputs)) {
    check(all_.size() <= UINT32_MAX, "sluice::when_all or when_any", "fewer futures");
  }
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(all_.size()); }
  template <class F>
  void each(F&& f) {
    for (std::uint32_t i = 0; i < size(); ++i) f(all_[i], i);
  }
  template <class F>
  decltype(auto) at(std::uint32_t i, F&& f) {
    return f(all_[i]);
  }

 private:
  std::vector<future<T>> all_;
};

template <class... Ts>
class tuple_inputs {
 public:
  explicit tuple_inputs(future<Ts>&&... inputs) noexcept : all_(std::move(inputs)...) {}
  static constexpr std::uint32_t size() noexcept { return sizeof...(Ts); }
  template <class F>
  void each(F&& f) {
    std::apply([&, i = std::uint32_t{0}](auto&... each) mutable { (f(each, i++), ...); }, all_);
  }
  // For an f whose result does not depend on the input's type.
  template <class F>
  auto at(std::uint32_t place, F&& f) {
    return at_from<0>(place, f);
  }
  std::tuple<future<Ts>...>& all() noexcept { return all_; }

 private:
  template <std::size_t I, class F>
  auto at_from(std::uint32_t place, F& f) {
    if constexpr (I + 1 == sizeof...(Ts)) {
      return f(std::get<I>(all_));
    } else {
      return place == I ? f(std::get<I>(all_)) : at_from<I + 1>(place, f);
    }
  }

  std::tuple<future<Ts>...> all_;
};

template <class Inputs, class Rule>
class fan_in_state final : public future_state<typename Rule::result>, public cancel_node {
 public:
  explicit fan_in_state(Inputs&& inputs) noexcept
      : future_state<typename Rule::result>(sizeof(fan_in_state), this),
        cancel_node(3),
        inputs_(std::move(inputs)),
        missing_(inputs_.size()) {}

  // Called after the consumer's future is made: inputs that are complete already arrive here.
  void start() noexcept {
    finish_with([this] {
      state_base* done = nullptr;
      inputs_.each([&](auto& input, std::uint32_t i) {
        auto& state = *future_access::parts(input).state;
        state.place = i;
        if (state.attach(*this)) return;
        if (auto* const completed = arrived(state)) done = completed;
      });
      return done;
    });
  }

  state_base* arrived(state_base& from) noexcept override {
    const auto i = from.place;
    bool has_decided = false;
    if (Rule::decides(inputs_, i)) {
      // relaxed: only saves the exchange. acq_rel: exactly one decides.
      has_decided = !decided_.load(relaxed) && !decided_.exchange(true, acq_rel);
      if (has_decided) {
        Rule::decide(inputs_, i, this->result);
        inputs_.each([&](auto& input, std::uint32_t other) {
          if (other != i) cancel_input(input);
        });
      } else {
        inputs_.at(i, [](auto& input) {  // another input has decided already
          mark_read(input);
          result_of(input).reset();
        });
      }
    }
    // acq_rel: the last arrival sees the results of all.
    if (missing_.fetch_sub(1, acq_rel) == 1) {
      if (!has_decided && !decided_.load(relaxed)) {
        has_decided = true;
        Rule::conclude(inputs_, i, this->result);
      }
      this->unref();  // the last use of this state, unless this arrival publishes the result
    }
    return has_decided ? this : nullptr;
  }
  void run() noexcept override {}

 private:
  template <class T>
  static void cancel_input(future<T>& input) noexcept {
    if (auto& back = future_access::parts(input).way_back; back) back->cancel();
  }
  void each_source(visitor& visits) override {
    inputs_.each([&](auto& input, std::uint32_t) {
      if (auto& back = future_access::parts(input).way_back; back) visits.visit(*back.get());
    });
  }
  void destroy() noexcept override {
    inputs_.each([](auto& input, std::uint32_t) {
      mark_read(input);
      leave_input(input);
    });
    std::destroy_at(&inputs_);
    this->free();
  }

  Inputs inputs_;
  atomic<std::uint32_t> missing_;
  atomic<bool> decided_{false};
};

template <class Rule, class Inputs>
future<typename Rule::result> fan_in(Inputs inputs, executor* on = nullptr) {
  inputs.each([](auto& input, std::uint32_t) { check_input(input); });
  auto* const state = make_state<fan_in_state<Inputs, Rule>>(std::move(inputs));
  auto result = future_access::make(
      future_parts<typename Rule::result>(state, cancel_ref::adopt(state), on));
  state->start();
  return result;
}

// The type of an input's value in the combined result.
template <class T>
using element_t = std::conditional_t<
    std::is_void_v<T>, std::monostate,
    std::conditional_t<std::is_lvalue_reference_v<T>,
                       std::reference_wrapper<std::remove_reference_t<T>>, T>>;

template <class T>
element_t<T> take_element(future<T>& input) {
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return element_t<T>(std::move(result_of(input)).value());
  }
}

// The rule of when_all: all values, or the first failure.
struct fails_at_once {
  template <class Inputs>
  static bool decides(Inputs& in, std::uint32_t i) noexcept {
    return in.at(i, [](auto& input) { return result_of(input).is_error(); });
  }
  template <class Inputs, class Out>
  static void decide(Inputs& in, std::uint32_t i, settled<Out>& out) noexcept {
    in.at(i, [&](auto& input) { result_of(input).pass_error(out); });
  }
};

template <class Out, class Make>
void set_result_of(settled<Out>& out, Make&& make) noexcept {
  try {
    out.construct(std::forward<Make>(make));
  } catch (...) {
    out.fail(std::current_exception());
  }
}

template <class T>
struct all_of_vector : fails_at_once {
  using result =
      std::conditional_t<std::is_void_v<T>, void, std::vector<element_t<T>>>;
  static void conclude(vector_inputs<T>& in, std::uint32_t, settled<result>& out) noexcept {
    set_result_of(out, [&]() -> result {
      if constexpr (!std::is_void_v<T>) {
        result values;
        values.reserve(in.size());
        in.each([&](future<T>& input, std::uint32_t) { values.push_back(take_element(input)); });
        return values;
      }
    });
  }
};

template <class... Ts>
struct all_of_tuple : fails_at_once {
  using result = std::tuple<element_t<Ts>...>;
  static void conclude(tuple_inputs<Ts...>& in, std::uint32_t, settled<result>& out) noexcept {
    set_result_of(out, [&] {
      return std::apply([](auto&... each) { return result(take_element(each)...); }, in.all());
    });
  }
};

}  // namespace sluice::detail
