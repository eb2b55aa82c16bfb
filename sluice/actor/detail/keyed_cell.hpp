#pragma once

// The typed cell of an actor that is kept by key.

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/actor/detail/cell_extra.hpp"
#include "sluice/actor/detail/keyed_core.hpp"
#include "sluice/actor/detail/keyed_life.hpp"
#include "sluice/actor/detail/system_core.hpp"
#include "sluice/actor/detail/typed_cell.hpp"

namespace sluice::detail {

template <class A>
concept has_saved_state = requires(A& a, const A& c, std::string_view bytes) {
  { c.save() } -> std::convertible_to<std::string>;
  a.load(bytes);
};

template <class A>
using keyed_maker = std::function<void(void* storage, const std::string& key)>;

template <class A>
class keyed_cell final : public typed_cell<A>, public keyed_life {
 public:
  keyed_cell(cell& parent, executor& on, std::unique_ptr<cell_extra> extra, keyed_core& core,
             const keyed_maker<A>& make, std::string key, cell_ptr predecessor)
      : typed_cell<A>(parent.system(), &parent, on, core.options().each),
        keyed_life(static_cast<cell&>(*this), core, std::move(key), std::move(predecessor)),
        make_(make) {
    this->set_has_successor();
    this->set_extra(std::move(extra));
  }

 private:
  void begin_life_of_cell() override { this->begin_life(); }
  void construct() override { this->begin_loading(); }
  void destroy() noexcept override {
    if (!this->has_state()) return;
    this->state_destroyed();
    typed_cell<A>::destroy();
  }
  void call_stopping() noexcept override {
    if (this->has_state()) typed_cell<A>::call_stopping();
  }
  bool ready_to_end() noexcept override { return this->save_at_end(); }
  cell_ptr successor() override { return this->find_successor(); }
  place_queue* places() noexcept override { return this; }
  cell_ptr successor_within(const wait_limits* limits, status& result) override {
    return this->find_successor_within(limits, result);
  }

  void make_state(const std::string* saved) override {
    const construction scope(*this);
    make_(this->storage_, this->key());
    if constexpr (has_saved_state<A>) {
      if (saved == nullptr) return;
      try {
        this->state().load(*saved);
      } catch (...) {
        typed_cell<A>::destroy();
        throw;
      }
    }
  }
  std::string state_to_save() const override {
    if constexpr (has_saved_state<A>) return this->state().save();
    return {};
  }
  bool may_passivate() const override {
    if constexpr (requires(const A& a) { a.may_passivate(); }) return this->state().may_passivate();
    return true;
  }

  const keyed_maker<A>& make_;  // owned by the core
};

template <class A>
class typed_keyed_core final : public keyed_core {
 public:
  typed_keyed_core(system_core& system, keyed_options o, keyed_maker<A> make)
      : keyed_core(system, std::move(o)), make_(std::move(make)) {
    check(store() == nullptr || has_saved_state<A>, "sluice::keyed_actors",
          "an actor with save() and load(), because options.store is set");
  }

 private:
  keyed_life& make(std::string key, cell_ptr predecessor) override {
    actor_options named = options().each;
    named.name = options().type + "/" + key;
    std::unique_ptr<cell_extra> extra;
    executor& on = executor_for(system_, named, extra);
    return *new keyed_cell<A>(parent(), on, std::move(extra), *this, make_, std::move(key),
                              std::move(predecessor));
  }

  const keyed_maker<A> make_;
};

// Its address is the key under which the system finds the keyed_actors of type A.
template <class A>
inline constexpr char keyed_kind = 0;

}  // namespace sluice::detail
