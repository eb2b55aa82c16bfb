// `sluice`: four producers and the consumer are coroutines on one thread, comparable to goroutines
// on Go's scheduler. A send to a full channel and a select over empty ones suspend the coroutine,
// and the thread runs the next one. (`sluice_threads` has a thread for each instead.)
#include <array>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <string>

#include "benchmarks/harness.hpp"
#include "benchmarks/threads.hpp"
#include "sluice/channel/channel.hpp"
#include "sluice/channel/select.hpp"

namespace sluice::bench {
namespace {

// Runs ready coroutines in FIFO order.
class run_queue final : public work_sink {
 public:
  void post(work& item) noexcept override { ready_.push_back(item); }
  void run_all() {
    while (!ready_.empty()) ready_.pop_front().run();
  }

 private:
  intrusive_list<work> ready_;
};

// A coroutine that is resumed on the run_queue given as its first argument.
struct strand {
  struct promise_type {
    template <class... Rest>
    explicit promise_type(run_queue& on, Rest&&...) noexcept : on_(on) {}
    strand get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
    work_sink* resume_sink() noexcept { return &on_; }

   private:
    run_queue& on_;
  };
};

using four_channels = std::array<channel<std::uint64_t>, 4>;

// The sums of the sent and of the received items, which must be equal.
struct account {
  std::uint64_t sent = 0;
  std::uint64_t sum_sent = 0;
  std::uint64_t sum_received = 0;
};

strand produce(run_queue&, channel<std::uint64_t>& out, const run_clock& clock, account& count) {
  std::uint64_t item = 0;
  while (!clock.has_ended()) {
    if (!co_await out.async_send(++item)) fail("a channel was closed");
    count.sum_sent += item;
  }
  count.sent += item;
  if (!co_await out.async_send(0)) fail("a channel was closed");
}

strand consume(run_queue&, four_channels& in, account& count) {
  std::size_t still_sending = in.size();
  const auto take = [&](const outcome<std::uint64_t>& received) {
    count.sum_received += *received;
    if (*received == 0) --still_sending;
  };
  while (still_sending != 0) {
    const auto chosen =
        co_await async_select({}, on_receive(in[0], take), on_receive(in[1], take),
                              on_receive(in[2], take), on_receive(in[3], take));
    if (!chosen) fail("a select ended without a case");
  }
}

tally select_over_four_by_coroutines(std::size_t capacity, seconds duration) {
  four_channels channels{channel<std::uint64_t>(capacity), channel<std::uint64_t>(capacity),
                         channel<std::uint64_t>(capacity), channel<std::uint64_t>(capacity)};
  account count;
  const auto result = run_threads(duration, 1, [&](int, const run_clock& clock) {
    run_queue ready;
    for (auto& c : channels) produce(ready, c, clock, count);
    consume(ready, channels, count);
    ready.run_all();
    return count.sent;
  });
  expect_equal(count.sum_received, count.sum_sent, "sum of the items that arrived");
  return result;
}

const registration added{[](suite& s) {
  for (const std::size_t capacity : {1u, 1024u}) {
    s.add("select-" + std::to_string(capacity), "sluice",
          operations_per_second([capacity](seconds duration) {
            return select_over_four_by_coroutines(capacity, duration);
          }));
  }
}};

}  // namespace
}  // namespace sluice::bench
