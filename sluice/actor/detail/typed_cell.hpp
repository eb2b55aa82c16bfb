#pragma once

// A cell with the state of one type of actor, and how that state is constructed.

#include <cstddef>
#include <new>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/detail/type_name.hpp"

namespace sluice::detail {

// Returns the cell whose state this thread is constructing: used by the base class of an actor.
cell& cell_under_construction() noexcept;
bool is_under_construction(const cell& c) noexcept;

class construction {
 public:
  explicit construction(cell& c) noexcept;
  construction(const construction&) = delete;
  construction& operator=(const construction&) = delete;
  ~construction();

 private:
  cell* const outer_;
};

template <class A>
class typed_cell : public cell {
 public:
  A& state() noexcept { return *std::launder(reinterpret_cast<A*>(storage_)); }
  const A& state() const noexcept { return *std::launder(reinterpret_cast<const A*>(storage_)); }
  std::string_view type() const noexcept final { return type_name<A>(); }

 protected:
  using cell::cell;

  void destroy() noexcept override { state().~A(); }
  void call_stopping() noexcept override {
    if constexpr (requires(A & a) { a.stopping(); }) {
      try {
        state().stopping();
      } catch (...) {
        fail(std::current_exception());
      }
    }
  }

  static_assert(alignof(A) <= alignof(std::max_align_t), "no over-aligned actors");
  alignas(A) std::byte storage_[sizeof(A)];
};

// Constructs an actor from copies of its spawn arguments, again at each restart.
template <class A, class... Args>
class from_arguments {
 public:
  template <class... Given>
  explicit from_arguments(std::in_place_t, Given&&... given)
      : arguments_(std::forward<Given>(given)...) {}
  A operator()() const { return std::make_from_tuple<A>(arguments_); }

 private:
  std::tuple<Args...> arguments_;
};
template <class A>
class from_arguments<A> {
 public:
  explicit from_arguments(std::in_place_t) noexcept {}
  A operator()() const { return A(); }
};

template <class A, class Make>
class spawned_cell final : public typed_cell<A> {
 public:
  spawned_cell(system_core& system, cell& parent, executor& on, const actor_options& o, Make make)
      : typed_cell<A>(system, &parent, on, o), make_(std::move(make)) {}

  using cell::begin_life;
  using cell::set_named;

 private:
  void construct() override {
    const construction scope(*this);
    ::new (static_cast<void*>(this->storage_)) A(make_());
  }

  [[no_unique_address]] Make make_;
};

// The untyped part of a spawn: returns the executor, and fills `extra` if options need it.
executor& executor_for(system_core& system, const actor_options& o,
                       std::unique_ptr<cell_extra>& extra);

// Does not compile if the actor lists a message without a handler (dispatch.hpp).
template <class A>
void check_handlers() noexcept;

template <class A, class Make>
cell_ptr spawn_cell(cell& parent, const actor_options& o, Make make) {
  check_handlers<A>();
  std::unique_ptr<cell_extra> extra;
  executor& on = executor_for(parent.system(), o, extra);
  auto* const spawned = new spawned_cell<A, Make>(parent.system(), parent, on, o, std::move(make));
  cell_ptr held(spawned);
  if (extra != nullptr) spawned->set_extra(std::move(extra));
  spawned->begin_life();
  return held;
}
// With the default options.
template <class A, class Make>
cell_ptr spawn_cell(cell& parent, Make make) {
  check_handlers<A>();
  static const actor_options defaults;
  auto* const spawned = new spawned_cell<A, Make>(
      parent.system(), parent, executor_of(parent.system()), defaults, std::move(make));
  cell_ptr held(spawned);
  spawned->begin_life();
  return held;
}

}  // namespace sluice::detail
