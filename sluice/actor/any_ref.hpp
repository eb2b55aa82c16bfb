#pragma once

// The address of an actor whose type does not matter: to inspect, watch and end it. It takes no
// messages.
//
// Guarantees and cost: those of ref (ref.hpp), from which it is made.
//
//     std::vector<any_ref> workers{parser, indexer};
//     for (const any_ref& each : workers) each.close();

#include <functional>
#include <utility>

#include "sluice/actor/ref.hpp"

namespace sluice {

class any_ref : public detail::address {
 public:
  any_ref() noexcept = default;
  template <class A>
  any_ref(const ref<A>& r) noexcept : address(r) {}
  template <class M>
  any_ref(const recipient<M>& r) noexcept : address(r) {}
  explicit any_ref(detail::cell_ptr cell) noexcept : address(std::move(cell)) {}
};

}  // namespace sluice

template <>
struct std::hash<sluice::any_ref> {
  std::size_t operator()(const sluice::any_ref& r) const noexcept { return r.hash(); }
};
