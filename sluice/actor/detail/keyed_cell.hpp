#pragma once

// The cell of an actor that is kept by key, with its type.

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
concept says_its_state = requires(A& a, const A& c, std::string_view bytes) {
  { c.save() } -> std::convertible_to<std::string>;
  a.load(bytes);
};

template <class A>
using keyed_maker = std::function<void(void* at, const std::string& key)>;

template <class A>
class keyed_cell final : public typed_cell<A>, public keyed_life {
 public:
  keyed_cell(cell& parent, executor& on, std::unique_ptr<cell_extra> extra, keyed_core& of,
             const keyed_maker<A>& make, std::string key, cell_ptr before)
      : typed_cell<A>(parent.system(), &parent, on, of.options().each),
        keyed_life(static_cast<cell&>(*this), of, std::move(key), std::move(before)),
        make_(make) {
    this->come_back();
    this->set_extra(std::move(extra));
  }

 private:
  void begin_life_of_cell() override { this->begin_life(); }
  void construct() override { this->begin_loading(); }
  void destroy() noexcept override {
    if (!this->has_state()) return;
    this->state_is_gone();
    typed_cell<A>::destroy();
  }
  void tell_stopping() noexcept override {
    if (this->has_state()) typed_cell<A>::tell_stopping();
  }
  bool ready_to_end() noexcept override { return this->saved_at_end(); }
  cell_ptr successor() override { return this->next_one(); }
  place_line* places() noexcept override { return this; }
  cell_ptr successor_within(const wait_limits* limits, status& how) override {
    return this->next_one_within(limits, how);
  }

  void make_state(const std::string* saved) override {
    const construction of(*this);
    make_(this->storage_, this->key());
    if constexpr (says_its_state<A>) {
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
    if constexpr (says_its_state<A>) return this->state().save();
    return {};
  }
  bool may_rest() const override {
    if constexpr (requires(const A& a) { a.may_rest(); }) return this->state().may_rest();
    return true;
  }

  const keyed_maker<A>& make_;  // the core's
};

template <class A>
class typed_keyed_core final : public keyed_core {
 public:
  typed_keyed_core(system_core& system, keyed_options o, keyed_maker<A> make)
      : keyed_core(system, std::move(o)), make_(std::move(make)) {
    check(store() == nullptr || says_its_state<A>, "sluice::keyed_actors",
          "an actor with save() and load(), since there is a store");
  }

 private:
  keyed_life& make(std::string key, cell_ptr before) override {
    actor_options named = options().each;
    named.name = options().type + "/" + key;
    std::unique_ptr<cell_extra> extra;
    executor& on = executor_for(system_, named, extra);
    return *new keyed_cell<A>(parent(), on, std::move(extra), *this, make_, std::move(key),
                              std::move(before));
  }

  const keyed_maker<A> make_;
};

// Each type of actor has one: what its keyed_actors are found by.
template <class A>
inline constexpr char keyed_kind = 0;

}  // namespace sluice::detail
