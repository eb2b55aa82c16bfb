#pragma once

// Calls a function when a wait has ended: the callback form of every `async_x` call, for code that
// is neither a thread that may block nor a coroutine.
//
// `make` returns the awaitable, `done` takes its result. Guarantees: `done` is called exactly once,
// before `on_done` returns if no wait was needed, else on the thread that ends the wait; it must
// not throw. The objects that the awaitable refers to must live until then.
// Cost: one allocation.
//
//     on_done([&] { return queue.async_pop({deadline::after(1s)}); },
//             [](outcome<job> j) { use(j); });

#include <coroutine>
#include <exception>
#include <utility>

namespace sluice {

namespace detail {

struct callback_frame {
  struct promise_type {
    callback_frame get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

template <class Make, class Done>
callback_frame call_when_done(Make make, Done done) {
  done(co_await make());
}

}  // namespace detail

template <class Make, class Done>
void on_done(Make make, Done done) {
  detail::call_when_done(std::move(make), std::move(done));
}

}  // namespace sluice
