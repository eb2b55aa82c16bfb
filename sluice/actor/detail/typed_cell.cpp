#include "sluice/actor/detail/typed_cell.hpp"

#include <memory>

#include "sluice/actor/detail/cell_extra.hpp"
#include "sluice/actor/detail/system_core.hpp"
#include "sluice/base/check.hpp"

namespace sluice::detail {
namespace {

constinit thread_local cell* being_made = nullptr;

bool is_usual(const supervision& s) {
  const supervision usual;
  return s.who == usual.who && s.what == usual.what && !s.decide &&
         s.restarts_max == usual.restarts_max && s.within == usual.within &&
         s.backoff_first == usual.backoff_first;
}

}  // namespace

construction::construction(cell& of) noexcept : before_(std::exchange(being_made, &of)) {}
construction::~construction() {
  being_made = before_;
}

cell& cell_under_construction() noexcept {
  check(being_made != nullptr, "sluice::actor", "to be made by spawn, and not by hand");
  return *being_made;
}

bool is_under_construction(const cell& c) noexcept {
  return being_made == &c;
}

executor& executor_of(system_core& system) noexcept {
  return system.on();
}

executor& executor_for(system_core& system, const actor_options& o,
                       std::unique_ptr<cell_extra>& extra) {
  const bool has_own_stash = o.mailbox.stash_capacity != mailbox_options{}.stash_capacity;
  if (o.name.empty() && !o.own_thread && is_usual(o.children) && !has_own_stash) {
    return o.on != nullptr ? *o.on : system.on();
  }
  extra = std::make_unique<cell_extra>();
  extra->name = o.name;
  extra->stash_capacity = o.mailbox.stash_capacity;
  if (!is_usual(o.children)) extra->children = o.children;
  if (!o.own_thread) return o.on != nullptr ? *o.on : system.on();
  check(o.on == nullptr, "sluice::actor", "an executor or a thread of its own, and not both");
  thread_pool_options one;
  one.core = 1;
  one.name = o.name.empty() ? system.options().name : o.name;
  extra->own_thread = std::make_unique<thread_pool>(std::move(one));
  return *extra->own_thread;
}

void cell::set_extra(std::unique_ptr<cell_extra> x) noexcept {
  has_name_ = !x->name.empty();
  extra_ = std::move(x);
}

}  // namespace sluice::detail
