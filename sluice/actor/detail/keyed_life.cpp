#include "sluice/actor/detail/keyed_life.hpp"

#include <utility>

#include "sluice/actor/detail/become.hpp"
#include "sluice/actor/detail/cell_extra.hpp"
#include "sluice/actor/detail/keyed_core.hpp"
#include "sluice/actor/detail/typed_cell.hpp"
#include "sluice/base/check.hpp"

namespace sluice::detail {
namespace {

// A store that throws where it should give a future.
template <class F>
auto as_future(F&& f) -> decltype(f()) {
  using result = typename decltype(f())::value_type;
  try {
    return f();
  } catch (...) {
    return make_failed_future<result>(std::current_exception());
  }
}

}  // namespace

keyed_life& life_under_construction() noexcept {
  auto* const life = dynamic_cast<keyed_life*>(&cell_under_construction());
  check(life != nullptr, "sluice::keyed_actor", "to be made by keyed_actors");
  return *life;
}

keyed_life::keyed_life(cell& self, keyed_core& of, std::string key, cell_ptr before)
    : self_(self), core_(of.shared_from_this()), key_(std::move(key)), before_(std::move(before)) {}

keyed_life::~keyed_life() = default;

template <class T, class Then>
void keyed_life::then_in_turn(future<T> f, Then then) {
  (void)std::move(f).handle([held = cell_ptr(&self_), then](settled<T> s) mutable {
    cell& c = *held;
    const bool taken =
        c.call([held = std::move(held), then, s = std::move(s)]() mutable { then(std::move(s)); });
    check(taken, "sluice::keyed_actors", "an actor not to end before its store has answered");
  });
}

// ---- load

// Also when it is made anew after a failure.
void keyed_life::begin_loading() {
  self_.task_began();
  self_.take_floor();
  if (!was_begun_) {
    was_begun_ = true;
    // When it is over, not before: its state is gone then.
    self_.extra().watchers.push_back({.tell = [this](const actor_end&) { core_->ended(*this); }});
  }
  const cell_ptr before = std::exchange(before_, cell_ptr());
  if (!before) return load();
  watch_end(*before, [this, held = cell_ptr(&self_)](const actor_end&) { load(); }, {});
}

void keyed_life::end_with_floor() noexcept {
  self_.give_floor({});
  self_.task_ended();
}

void keyed_life::load() noexcept {
  actor_store* const store = core_->store();
  if (!forgotten_first_.empty()) {
    // What there is need not even be readable.
    return then_in_turn(remove_state(), [this](const settled<void>& s) { begun_anew(s.error()); });
  }
  future<std::optional<std::string>> found =
      store == nullptr ? make_ready_future<std::optional<std::string>>(std::nullopt)
                       : as_future([&] { return store->load(core_->options().type, key_); });
  core_->count_load();
  then_in_turn(std::move(found),
               [this](settled<std::optional<std::string>> s) { loaded(std::move(s)); });
}

void keyed_life::begun_anew(const std::exception_ptr& error) noexcept {
  told_forgotten(std::exchange(forgotten_first_, {}), error);
  if (error == nullptr && self_.close_if_empty()) {
    is_gone_ = is_saved_ = true;
    self_.refuse_messages(nullptr);  // there are none: it begins to end, before anything else runs
    return end_with_floor();
  }
  using found = settled<std::optional<std::string>>;
  loaded(error == nullptr ? found(std::in_place, std::nullopt) : found(error));
}

void keyed_life::loaded(settled<std::optional<std::string>> found) noexcept {
  if (self_.life() == cell::mode::running) {
    try {
      const std::optional<std::string> saved = std::move(found).value();
      make_state(saved ? &*saved : nullptr);
      has_state_ = true;
      is_saved_ = false;
    } catch (...) {
      const std::exception_ptr why = std::current_exception();
      is_gone_ = true;
      core_->failed(*this, keyed_step::load, why);
      self_.refuse_messages(why);
    }
  }
  end_with_floor();
}

// ---- save

future<void> keyed_life::save_now() {
  actor_store* const store = core_->store();
  if (store == nullptr) return make_ready_future();
  core_->count_save();
  return as_future([&] { return store->save(core_->options().type, key_, state_to_save()); });
}

void keyed_life::rest() {
  if (!self_.is_idle() || is_gone_) return core_->stayed(*this);
  future<void> done;
  try {
    if (!may_rest()) return core_->stayed(*this);
    done = save_now();
  } catch (...) {
    done = make_failed_future<void>(std::current_exception());
  }
  self_.task_began();
  self_.take_floor();
  then_in_turn(std::move(done), [this](const settled<void>& s) { rested(s.error()); });
}

void keyed_life::rested(const std::exception_ptr& error) noexcept {
  if (error != nullptr) core_->failed(*this, keyed_step::save, error);
  if (error == nullptr && forgetting_.empty() && self_.close_if_empty()) {
    is_gone_ = is_saved_ = true;
    core_->count_rest();
    self_.refuse_messages(nullptr);  // there are none: it begins to end, before anything else runs
  } else if (error == nullptr) {
    core_->stayed(*this);
  } else {
    core_->stayed_unsaved(*this);
  }
  end_with_floor();
}

// True: there is nothing to save, or it has been done.
bool keyed_life::saved_at_end() noexcept {
  is_gone_ = true;
  const cell_extra* const x = self_.extra_if_any();
  const bool has_failed = x != nullptr && x->reason == end_reason::failed;
  if (std::exchange(is_saved_, true)) return true;
  if (!forgetting_.empty()) {
    self_.task_began();
    then_in_turn(remove_state(), [this](const settled<void>& s) {
      told_forgotten(std::exchange(forgetting_, {}), s.error());
      self_.task_ended();
    });
    return false;
  }
  if (!has_state_ || has_failed || core_->store() == nullptr) return true;
  self_.task_began();
  then_in_turn(as_future([this] { return save_now(); }), [this](const settled<void>& s) {
    if (!s) core_->failed(*this, keyed_step::last_save, s.error());
    self_.task_ended();
  });
  return false;
}

// ---- the end

cell_ptr keyed_life::next_one() {
  return core_->successor(*this);
}

cell_ptr keyed_life::next_one_within(const wait_limits* limits, status& how) {
  return core_->successor(*this, limits, how);
}

bool keyed_life::lets_wait() const noexcept {
  return !core_->has_no_room_for_sender();
}

enlisted keyed_life::enlist(wait_node& at, waiter& who) noexcept {
  return core_->wait_for_place(key_, at, who);
}

void keyed_life::retract(wait_node& at) noexcept {
  core_->leave_line(at);
}

cell_ptr keyed_life::take() {
  return core_->successor(*this);
}

const void* keyed_life::of() const noexcept {
  return core_.get();
}

void keyed_life::done() noexcept {
  core_->give_place_back();
}

void keyed_life::forget(promise<void> done) {
  if (is_gone_) {
    // Of the next one: it has what this one has saved.
    return core_->forget(key_, this, std::move(done));
  }
  forgetting_.push_back(std::move(done));
  self_.request_stop(stop_how::drain);
}

future<void> keyed_life::remove_state() {
  actor_store* const store = core_->store();
  if (store == nullptr) return make_ready_future();
  return as_future([&] { return store->remove(core_->options().type, key_); });
}

void keyed_life::told_forgotten(std::vector<promise<void>> those,
                                const std::exception_ptr& error) noexcept {
  if (error != nullptr) core_->failed(*this, keyed_step::remove, error);
  for (promise<void>& done : those) {
    if (error != nullptr) {
      done.set_exception(error);
    } else {
      done.set_value();
    }
  }
}

}  // namespace sluice::detail
