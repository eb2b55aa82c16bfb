#include "sluice/actor/detail/typed_cell.hpp"

#include <memory>

#include "sluice/actor/detail/cell_extra.hpp"
#include "sluice/actor/detail/system_core.hpp"
#include "sluice/base/check.hpp"
#include "sluice/executor/thread_pool.hpp"

namespace sluice::detail {
namespace {

constinit thread_local cell* under_construction = nullptr;

bool is_default(const supervision& s) {
  const supervision defaults;
  return s.strategy == defaults.strategy && s.action == defaults.action && !s.decide &&
         s.restarts_max == defaults.restarts_max && s.within == defaults.within &&
         s.backoff_first == defaults.backoff_first;
}

}  // namespace

construction::construction(cell& c) noexcept : outer_(std::exchange(under_construction, &c)) {}
construction::~construction() {
  under_construction = outer_;
}

cell& cell_under_construction() noexcept {
  check(under_construction != nullptr, "sluice::actor", "an actor to be created by spawn");
  return *under_construction;
}

bool is_under_construction(const cell& c) noexcept {
  return under_construction == &c;
}

executor& executor_of(system_core& system) noexcept {
  return system.on();
}

executor& executor_for(system_core& system, const actor_options& o,
                       std::unique_ptr<cell_extra>& extra) {
  const bool has_own_stash = o.mailbox.stash_capacity != mailbox_options{}.stash_capacity;
  if (o.name.empty() && !o.own_thread && is_default(o.children) && !has_own_stash) {
    return o.on != nullptr ? *o.on : system.on();
  }
  extra = std::make_unique<cell_extra>();
  extra->name = o.name;
  extra->stash_capacity = o.mailbox.stash_capacity;
  if (!is_default(o.children)) extra->children = o.children;
  if (!o.own_thread) return o.on != nullptr ? *o.on : system.on();
  check(o.on == nullptr, "sluice::actor", "either options.on or options.own_thread, not both");
  thread_pool_options pool;
  pool.core = 1;
  pool.name = o.name.empty() ? system.options().name : o.name;
  extra->own_thread = std::make_unique<thread_pool>(std::move(pool));
  return *extra->own_thread;
}

void cell::set_extra(std::unique_ptr<cell_extra> x) noexcept {
  has_name_ = !x->name.empty();
  extra_ = std::move(x);
}

}  // namespace sluice::detail
