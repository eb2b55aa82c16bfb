#include "sluice/actor/sqlite/sqlite_actor_store.hpp"

#include <utility>

#include "sluice/actor/sqlite/detail/state_file.hpp"

namespace sluice {

sqlite_actor_store::sqlite_actor_store(const std::string& path, options o)
    : options_(o), file_(std::make_unique<detail::state_file>(path)), thread_([this] { work(); }) {}

sqlite_actor_store::~sqlite_actor_store() {
  line_.with([](line& l) { l.is_closed = true; });
  thread_.join();
}

template <class T>
future<T> sqlite_actor_store::enqueue(call c, promise<T> done) {
  future<T> result = done.get_future();
  c.done = std::move(done);
  const bool has_room = line_.with([&](line& l) {
    if (l.calls.size() >= options_.queue_max) return false;
    l.calls.push_back(std::move(c));
    return true;
  });
  if (has_room) return result;
  return make_failed_future<T>(
      actor_store_error(file_->path() + ": too many calls wait for the disk (queue_max)"));
}

future<std::optional<std::string>> sqlite_actor_store::load(std::string type, std::string key) {
  return enqueue(call{.operation = kind::load, .type = std::move(type), .key = std::move(key)},
                 promise<std::optional<std::string>>());
}

future<void> sqlite_actor_store::save(std::string type, std::string key, std::string state) {
  return enqueue(call{.operation = kind::save,
                      .type = std::move(type),
                      .key = std::move(key),
                      .state = std::move(state)},
                 promise<void>());
}

future<void> sqlite_actor_store::remove(std::string type, std::string key) {
  return enqueue(call{.operation = kind::remove, .type = std::move(type), .key = std::move(key)},
                 promise<void>());
}

sqlite_actor_store::stats_type sqlite_actor_store::stats() const noexcept {
  return {.calls = answered_.load(relaxed), .commits = commits_.load(relaxed)};
}

// ---- its thread

void sqlite_actor_store::work() {
  for (;;) {
    std::vector<call> some;
    line_.when([](const line& l) { return !l.calls.empty() || l.is_closed; },
               [&](line& l) {
                 while (!l.calls.empty() && some.size() < options_.batch_max) {
                   some.push_back(std::move(l.calls.front()));
                   l.calls.pop_front();
                 }
               });
    if (some.empty()) return;  // closed, and all calls are done
    execute_all(some);
    answered_.fetch_add(some.size(), relaxed);
  }
}

void sqlite_actor_store::execute_all(std::vector<call>& calls) {
  commits_.fetch_add(1, relaxed);
  try {
    file_->begin();
    for (call& c : calls) execute(c);
    file_->commit();
  } catch (...) {
    file_->roll_back();
    if (calls.size() == 1) return refuse(calls.front(), std::current_exception());
    for (call& c : calls) {
      std::vector<call> one;
      one.push_back(std::move(c));
      execute_all(one);
    }
    return;
  }
  for (call& c : calls) answer(c);
}

// Leaves the state to save in the call, which may be tried again.
void sqlite_actor_store::execute(call& c) {
  switch (c.operation) {
    case kind::load: {
      std::optional<std::string> found = file_->load(c.type, c.key);
      c.is_found = found.has_value();
      if (found) c.state = *std::move(found);
      return;
    }
    case kind::save:
      return file_->save(c.type, c.key, c.state);
    case kind::remove:
      return file_->remove(c.type, c.key);
  }
}

void sqlite_actor_store::answer(call& c) {
  if (auto* const loaded = std::get_if<promise<std::optional<std::string>>>(&c.done)) {
    if (!c.is_found) return loaded->set_value(std::nullopt);
    return loaded->set_value(std::move(c.state));
  }
  std::get<promise<void>>(c.done).set_value();
}

void sqlite_actor_store::refuse(call& c, const std::exception_ptr& why) {
  std::visit([&](auto& done) { done.set_exception(why); }, c.done);
}

}  // namespace sluice
