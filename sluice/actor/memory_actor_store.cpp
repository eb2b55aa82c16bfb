#include "sluice/actor/memory_actor_store.hpp"

#include <type_traits>

#include "sluice/future/promise.hpp"

namespace sluice {

// Promises are set without the lock: their continuations may call the store again.
template <class T, class F>
future<T> memory_actor_store::do_or_hold(F f) {
  promise<T> done;
  future<T> result = done.get_future();
  auto act = [this, f = std::move(f), done = std::move(done)]() mutable {
    std::exception_ptr failure;
    if constexpr (std::is_void_v<T>) {
      inside_.with([&](inside& in) {
        failure = in.failure;
        if (failure == nullptr) f(in);
      });
      if (failure == nullptr) return done.set_value();
    } else {
      T value;
      inside_.with([&](inside& in) {
        failure = in.failure;
        if (failure == nullptr) value = f(in);
      });
      if (failure == nullptr) return done.set_value(std::move(value));
    }
    done.set_exception(failure);
  };
  const bool is_held = inside_.with([&](inside& in) {
    if (!in.holds) return false;
    in.held.push_back(std::move(act));
    return true;
  });
  if (!is_held) act();
  return result;
}

future<std::optional<std::string>> memory_actor_store::load(std::string type, std::string key) {
  return do_or_hold<std::optional<std::string>>(
      [at = std::pair(std::move(type), std::move(key))](inside& in) -> std::optional<std::string> {
        const auto found = in.states.find(at);
        if (found == in.states.end()) return std::nullopt;
        return found->second;
      });
}

future<void> memory_actor_store::save(std::string type, std::string key, std::string state) {
  return do_or_hold<void>([at = std::pair(std::move(type), std::move(key)),
                           state = std::move(state)](inside& in) mutable {
    in.states.insert_or_assign(std::move(at), std::move(state));
  });
}

future<void> memory_actor_store::remove(std::string type, std::string key) {
  return do_or_hold<void>(
      [at = std::pair(std::move(type), std::move(key))](inside& in) { in.states.erase(at); });
}

std::size_t memory_actor_store::size() const {
  return inside_.with([](const inside& in) { return in.states.size(); });
}

void memory_actor_store::fail_with(std::exception_ptr why) {
  inside_.with([&](inside& in) { in.failure = std::move(why); });
}

void memory_actor_store::hold() {
  inside_.with([](inside& in) { in.holds = true; });
}

void memory_actor_store::release() {
  for (;;) {
    unique_function<void()> next;
    const bool is_one = inside_.with([&](inside& in) {
      if (in.held.empty()) {
        in.holds = false;
        return false;
      }
      next = std::move(in.held.front());
      in.held.pop_front();
      return true;
    });
    if (!is_one) return;
    next();
  }
}

std::size_t memory_actor_store::held() const {
  return inside_.with([](const inside& in) { return in.held.size(); });
}

}  // namespace sluice
