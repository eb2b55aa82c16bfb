#include "sluice/actor/detail/keyed_life.hpp"

#include <utility>

#include "sluice/actor/detail/become.hpp"
#include "sluice/actor/detail/cell_extra.hpp"
#include "sluice/actor/detail/keyed_core.hpp"
#include "sluice/actor/detail/typed_cell.hpp"
#include "sluice/base/check.hpp"

namespace sluice::detail {
namespace {

// Calls f; an exception becomes a failed future, since a store may throw.
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
  check(life != nullptr, "sluice::keyed_actor", "to be created by keyed_actors");
  return *life;
}

keyed_life::keyed_life(cell& self, keyed_core& core, std::string key, cell_ptr predecessor)
    : self_(self),
      core_(core.shared_from_this()),
      key_(std::move(key)),
      predecessor_(std::move(predecessor)) {}

keyed_life::~keyed_life() = default;

template <class T, class Then>
void keyed_life::then_in_turn(future<T> f, Then then) {
  (void)std::move(f).handle([held = cell_ptr(&self_), then](settled<T> s) mutable {
    cell& c = *held;
    const bool is_accepted =
        c.call([held = std::move(held), then, s = std::move(s)]() mutable { then(std::move(s)); });
    check(is_accepted, "sluice::keyed_actors", "an actor to end after its store has replied");
  });
}

// ---- load

// Also called at a restart after a failure.
void keyed_life::begin_loading() {
  self_.task_began();
  self_.acquire_exclusive();
  if (!has_started_) {
    has_started_ = true;
    // As a watcher, so that it runs after the state is destroyed.
    self_.extra().watchers.push_back({.notify = [this](const actor_end&) { core_->ended(*this); }});
  }
  const cell_ptr predecessor = std::exchange(predecessor_, cell_ptr());
  if (!predecessor) return load();
  watch_end(*predecessor, [this, held = cell_ptr(&self_)](const actor_end&) { load(); }, {});
}

void keyed_life::end_exclusive_task() noexcept {
  self_.release_exclusive({});
  self_.task_ended();
}

void keyed_life::load() noexcept {
  actor_store* const store = core_->store();
  if (!remove_before_load_.empty()) {
    // The old state need not even be readable.
    return then_in_turn(remove_state(),
                        [this](const settled<void>& s) { removed_before_load(s.error()); });
  }
  future<std::optional<std::string>> found =
      store == nullptr ? make_ready_future<std::optional<std::string>>(std::nullopt)
                       : as_future([&] { return store->load(core_->options().type, key_); });
  core_->count_load();
  then_in_turn(std::move(found),
               [this](settled<std::optional<std::string>> s) { loaded(std::move(s)); });
}

void keyed_life::removed_before_load(const std::exception_ptr& error) noexcept {
  finish_removal(std::exchange(remove_before_load_, {}), error);
  if (error == nullptr && self_.close_if_empty()) {
    is_closed_ = is_saved_ = true;
    // the mailbox is empty: it begins to end before anything else runs
    self_.refuse_messages(nullptr);
    return end_exclusive_task();
  }
  using found = settled<std::optional<std::string>>;
  loaded(error == nullptr ? found(std::in_place, std::nullopt) : found(error));
}

void keyed_life::loaded(settled<std::optional<std::string>> found) noexcept {
  if (self_.current_mode() == cell::mode::running) {
    try {
      const std::optional<std::string> saved = std::move(found).value();
      make_state(saved ? &*saved : nullptr);
      has_state_ = true;
      is_saved_ = false;
    } catch (...) {
      const std::exception_ptr why = std::current_exception();
      is_closed_ = true;
      core_->failed(*this, keyed_step::load, why);
      self_.refuse_messages(why);
    }
  }
  end_exclusive_task();
}

// ---- save

future<void> keyed_life::save_now() {
  actor_store* const store = core_->store();
  if (store == nullptr) return make_ready_future();
  core_->count_save();
  return as_future([&] { return store->save(core_->options().type, key_, state_to_save()); });
}

void keyed_life::passivate() {
  if (!self_.is_idle() || is_closed_) return core_->stays_live(*this);
  future<void> done;
  try {
    if (!may_passivate()) return core_->stays_live(*this);
    done = save_now();
  } catch (...) {
    done = make_failed_future<void>(std::current_exception());
  }
  self_.task_began();
  self_.acquire_exclusive();
  then_in_turn(std::move(done), [this](const settled<void>& s) { passivated(s.error()); });
}

void keyed_life::passivated(const std::exception_ptr& error) noexcept {
  if (error != nullptr) core_->failed(*this, keyed_step::save, error);
  if (error == nullptr && remove_requests_.empty() && self_.close_if_empty()) {
    is_closed_ = is_saved_ = true;
    core_->count_passivation();
    // the mailbox is empty: it begins to end before anything else runs
    self_.refuse_messages(nullptr);
  } else if (error == nullptr) {
    core_->stays_live(*this);
  } else {
    core_->stays_live_unsaved(*this);
  }
  end_exclusive_task();
}

// Returns true if the state is saved, or need not be.
bool keyed_life::save_at_end() noexcept {
  is_closed_ = true;
  const cell_extra* const x = self_.extra_if_any();
  const bool has_failed = x != nullptr && x->reason == end_reason::failed;
  if (std::exchange(is_saved_, true)) return true;
  if (!remove_requests_.empty()) {
    self_.task_began();
    then_in_turn(remove_state(), [this](const settled<void>& s) {
      finish_removal(std::exchange(remove_requests_, {}), s.error());
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

cell_ptr keyed_life::find_successor() {
  return core_->successor(*this);
}

cell_ptr keyed_life::find_successor_within(const wait_limits* limits, status& result) {
  return core_->successor(*this, limits, result);
}

bool keyed_life::may_wait() const noexcept {
  return !core_->is_called_by_member();
}

enlisted keyed_life::enlist(wait_node& node, waiter& waiting) noexcept {
  return core_->wait_for_place(key_, node, waiting);
}

void keyed_life::retract(wait_node& node) noexcept {
  core_->cancel_place_wait(node);
}

cell_ptr keyed_life::take() {
  return core_->successor(*this);
}

const void* keyed_life::owner() const noexcept {
  return core_.get();
}

void keyed_life::done() noexcept {
  core_->release_place();
}

void keyed_life::forget(promise<void> done) {
  if (is_closed_) {
    // By the successor: it will have the state that this cell saved.
    return core_->forget(key_, this, std::move(done));
  }
  remove_requests_.push_back(std::move(done));
  self_.request_stop(stop_mode::drain);
}

future<void> keyed_life::remove_state() {
  actor_store* const store = core_->store();
  if (store == nullptr) return make_ready_future();
  return as_future([&] { return store->remove(core_->options().type, key_); });
}

void keyed_life::finish_removal(std::vector<promise<void>> requests,
                                const std::exception_ptr& error) noexcept {
  if (error != nullptr) core_->failed(*this, keyed_step::remove, error);
  for (promise<void>& done : requests) {
    if (error != nullptr) {
      done.set_exception(error);
    } else {
      done.set_value();
    }
  }
}

}  // namespace sluice::detail
