// channel, buffered and as a rendezvous, and select.

#include <array>
#include <chrono>
#include <memory>
#include <stop_token>
#include <thread>

#include "sluice/channel/channel.hpp"
#include "sluice/channel/select.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/testing/coroutine.hpp"
#include "tests/sim/parcel.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;
using testing::detached;

// ---- channel

void a_stream_through(std::size_t capacity) {
  channel<parcel> pipe(capacity);
  std::jthread sender([&] {
    for (const int i : {1, 2}) check(pipe.send(parcel(i)) == status::ok, "to be received");
    pipe.close();
  });
  int last = 0;
  while (auto item = pipe.receive()) check(item->number() == ++last, "items in their order");
  check(last == 2, "every item to be received");
}

void sender_and_receiver_meet() {
  channel<parcel> meeting;
  atomic<bool> receiving{false};
  std::jthread sender([&] {
    check(meeting.send(parcel(1)) == status::ok, "to be received");
    check(receiving.load(relaxed), "a waiting receiver");
  });
  receiving.store(true, relaxed);
  check(meeting.receive()->number() == 1, "the item");
}

void one_of_two_receivers_meets_the_sender() {
  channel<parcel> meeting;
  atomic<int> sum{0};
  const auto receive = [&] {
    if (auto item = meeting.receive()) sum.fetch_add(item->number(), relaxed);
  };
  {
    std::jthread a(receive);
    std::jthread b(receive);
    for (const int i : {1, 2}) check(meeting.send(parcel(i)) == status::ok, "to be received");
  }
  check(sum.load(relaxed) == 3, "one item for each");
}

void a_send_that_timed_out_gave_nothing() {
  channel<parcel> meeting;
  parcel item(1);
  bool received = false;
  std::jthread receiver([&] { received = meeting.receive(1ms).has_value(); });
  const auto sent = meeting.send(std::move(item), 1ms);
  receiver.join();
  check(received == static_cast<bool>(sent), "the same outcome on both sides");
  check(item.number() == (sent ? 0 : 1), "moved from only if received");
}

void a_receive_that_was_stopped_took_nothing() {
  channel<parcel> meeting;
  std::stop_source stop;
  bool received = false;
  std::jthread receiver([&] { received = meeting.receive(stop.get_token()).has_value(); });
  const auto sent = meeting.try_send(parcel(1));
  stop.request_stop();
  receiver.join();
  check(received == static_cast<bool>(sent), "the same outcome on both sides");
}

void close_ends_a_rendezvous() {
  channel<parcel> meeting;
  std::jthread closer([&] { meeting.close(); });
  check(meeting.send(parcel(1)) == status::closed, "status closed");
}

void close_wakes_every_receiver() {
  channel<parcel> meeting;
  const auto wait = [&] { check(meeting.receive().status() == status::closed, "status closed"); };
  std::jthread a(wait);
  std::jthread b(wait);
  meeting.close();
}

void the_receiver_may_destroy_it() {
  auto meeting = std::make_unique<channel<parcel>>();
  std::jthread sender([&] { check(meeting->send(parcel(1)) == status::ok, "to be received"); });
  check(meeting->receive()->number() == 1, "the item");
  meeting.reset();
}

void coroutines_meet_threads() {
  channel<parcel> meeting;
  int got = 0;
  const auto coroutine = [&]() -> detached {
    auto item = co_await meeting.async_receive();
    got = item->number();
  };
  std::jthread receiver([&] { coroutine(); });
  check(meeting.send(parcel(1)) == status::ok, "to be received");
  receiver.join();
  check(got == 1, "the coroutine to have the item");
}

void close_wakes_a_coroutine_that_receives() {
  channel<parcel> meeting;
  bool was_closed = false;
  const auto coroutine = [&]() -> detached {
    const auto item = co_await meeting.async_receive();
    was_closed = item.status() == status::closed;
  };
  std::jthread receiver([&] { coroutine(); });
  meeting.close();
  receiver.join();
  check(was_closed, "status closed in the coroutine");
}

void close_wakes_a_coroutine_that_sends() {
  channel<parcel> meeting;
  bool was_closed = false;
  const auto coroutine = [&]() -> detached {
    const auto sent = co_await meeting.async_send(parcel(1));
    was_closed = sent == status::closed;
  };
  std::jthread sender([&] { coroutine(); });
  meeting.close();
  sender.join();
  check(was_closed, "status closed in the coroutine");
}

// ---- select

// With a concurrent send. In the opposite direction, the receiver may already wait or not.
void a_try_select_takes_an_available_item(std::size_t capacity) {
  channel<parcel> a(capacity);
  channel<parcel> b(capacity);
  bool sent = false;
  std::jthread sender([&] { sent = static_cast<bool>(b.try_send(parcel(1))); });
  int got = 0;
  const auto add = [&](outcome<parcel> item) { got += item->number(); };
  const auto chosen = try_select(on_receive(a, add), on_receive(b, add));
  sender.join();
  check(chosen ? chosen.index == 1 : chosen.status == status::empty, "the case with an item");
  check(got == (chosen ? 1 : 0), "a result if and only if a case was chosen");
  check(sent == (capacity > 0), "success with a buffer, and failure without a waiting receiver");
  check(b.size() == (sent && !chosen ? 1U : 0U), "popped, or still inside");
}

void a_try_select_gives_to_a_waiting_receiver() {
  channel<parcel> a;
  channel<parcel> b;
  int got = 0;
  std::jthread receiver([&] {
    if (auto item = b.receive()) got = item->number();
  });
  parcel for_a(1);
  parcel for_b(2);
  const auto chosen = try_select(on_send(a, for_a), on_send(b, for_b));
  b.close();
  receiver.join();
  check(chosen ? chosen.index == 1 : chosen.status == status::empty, "the case with a receiver");
  check(got == (chosen ? 2 : 0), "received if and only if sent");
  check(for_a.number() == 1 && for_b.number() == (chosen ? 0 : 2), "only the sent item moved from");
}

void a_select_takes_from_either(std::size_t capacity) {
  channel<parcel> a(capacity);
  channel<parcel> b(capacity);
  std::jthread sender([&] {
    check(a.send(parcel(1)) == status::ok, "to be received");
    check(b.send(parcel(2)) == status::ok, "to be received");
  });
  int sum = 0;
  const auto add = [&](outcome<parcel> item) { sum += item->number(); };
  for (int i = 0; i < 2; ++i) {
    check(static_cast<bool>(select(on_receive(a, add), on_receive(b, add))), "one of the cases");
  }
  check(sum == 3, "both items, each once");
}

void a_select_that_timed_out_did_nothing() {
  channel<parcel> a(1);
  channel<parcel> b(1);
  std::jthread sender([&] { check(b.try_send(parcel(1)) == status::ok, "capacity for one item"); });
  int got = 0;
  const auto add = [&](outcome<parcel> item) { got += item->number(); };
  const auto chosen = select(1ms, on_receive(a, add), on_receive(b, add));
  sender.join();
  check(got == (chosen ? 1 : 0), "a result if and only if a case was chosen");
  check(b.size() == (chosen ? 0U : 1U), "popped, or still inside");
}

void a_select_that_was_stopped_did_nothing() {
  channel<parcel> a;
  channel<parcel> b(1);
  std::stop_source stop;
  std::jthread sender([&] {
    stop.request_stop();
    check(b.try_send(parcel(1)) == status::ok, "capacity for one item");
  });
  int got = 0;
  const auto add = [&](outcome<parcel> item) { got += item->number(); };
  const auto chosen = select(stop.get_token(), on_receive(a, add), on_receive(b, add));
  sender.join();
  check(got == (chosen ? 1 : 0) && b.size() == (chosen ? 0U : 1U), "popped, or still inside");
}

void a_case_that_was_not_chosen_gave_nothing() {
  channel<parcel> a;
  channel<parcel> b;
  std::jthread receiver([&] { check(a.receive()->number() == 1, "the item for a"); });
  parcel for_a(1);
  parcel for_b(2);
  const auto chosen = select(on_send(a, for_a), on_send(b, for_b));
  check(chosen.index == 0, "the case with a receiver");
  check(for_a.number() == 0 && for_b.number() == 2, "only the sent item to be moved from");
}

void two_selects_meet() {
  channel<parcel> a;
  channel<parcel> b;
  int got = 0;
  std::jthread other([&] {
    const auto take = [&](outcome<parcel> item) { got = item->number(); };
    check(static_cast<bool>(select(on_receive(b, take), on_receive(a, take))), "one of the cases");
  });
  parcel for_a(1);
  parcel for_b(2);
  const auto chosen = select(on_send(a, for_a), on_send(b, for_b));
  other.join();
  check(got == (chosen.index == 0 ? 1 : 2), "the item of the chosen case");
}

void close_ends_a_select() {
  channel<parcel> a;
  channel<parcel> b(1);
  bool was_closed = false;
  std::jthread closer([&] { b.close(); });
  const auto on_close = [&](outcome<parcel> item) { was_closed = item.status() == status::closed; };
  const auto chosen = select(on_receive(a, [](outcome<parcel>) {}), on_receive(b, on_close));
  check(chosen.index == 1 && was_closed, "the case of the closed channel");
}

void two_selects_share_two_items() {
  channel<parcel> a(1);
  channel<parcel> b(1);
  atomic<int> sum{0};
  const auto take = [&] {
    const auto add = [&](outcome<parcel> item) { sum.fetch_add(item->number(), relaxed); };
    check(static_cast<bool>(select(on_receive(a, add), on_receive(b, add))), "one of the cases");
  };
  {
    std::jthread one(take);
    std::jthread two(take);
    check(a.send(parcel(1)) == status::ok && b.send(parcel(2)) == status::ok, "capacity for both");
  }
  check(sum.load(relaxed) == 3, "one item for each");
}

void a_coroutine_selects() {
  channel<parcel> a;
  channel<parcel> b(1);
  int got = 0;
  const auto coroutine = [&]() -> detached {
    auto from_a = on_receive(a, [&](outcome<parcel> item) { got += item->number(); });
    auto from_b = on_receive(b, [&](outcome<parcel> item) { got += item->number(); });
    for (int i = 0; i < 2; ++i) {
      const auto chosen = co_await async_select({}, from_a, from_b);
      check(static_cast<bool>(chosen), "one of the cases");
    }
  };
  std::jthread other([&] { coroutine(); });
  check(b.send(parcel(2)) == status::ok, "capacity for one item");
  check(a.send(parcel(1)) == status::ok, "to be received");
  other.join();
  check(got == 3, "both items, each once");
}

void a_coroutine_that_was_stopped_selected_nothing() {
  channel<parcel> a;
  channel<parcel> b(1);
  std::stop_source stop;
  int got = -1;
  const auto coroutine = [&]() -> detached {
    int taken = 0;
    const wait_limits limits(stop.get_token());
    auto from_a = on_receive(a, [&](outcome<parcel> item) { taken = item->number(); });
    auto from_b = on_receive(b, [&](outcome<parcel> item) { taken = item->number(); });
    const auto chosen = co_await async_select(limits, from_a, from_b);
    check(static_cast<bool>(chosen) == (taken != 0), "a result if and only if a case was chosen");
    got = taken;
  };
  std::jthread other([&] { coroutine(); });
  check(b.try_send(parcel(1)) == status::ok, "capacity for one item");
  stop.request_stop();
  other.join();
  check(got + static_cast<int>(b.size()) == 1, "popped, or still inside");
}

void the_last_selected_party_may_destroy_both() {
  auto pair = std::make_unique<std::array<channel<parcel>, 2>>();
  std::jthread sender([&] { check((*pair)[1].send(parcel(1)) == status::ok, "to be received"); });
  int got = 0;
  const auto take = [&](outcome<parcel> item) { got = item->number(); };
  check(static_cast<bool>(select(on_receive((*pair)[0], take), on_receive((*pair)[1], take))),
        "the item");
  pair.reset();
  check(got == 1, "the item");
}

[[maybe_unused]] const bool added = [] {
  const auto random = [](const std::string& name, std::function<void()> body,
                         std::uint64_t schedules = 8'000) {
    add({.name = name, .options = {.schedules = schedules}, .body = std::move(body)});
  };
  const auto every = [&](const std::string& name, const std::function<void()>& body) {
    random(name, body, 4'000);
    add({.name = name + ", every schedule", .options = exhaustively(), .body = body});
  };
  every("channel: a stream through a buffer", [] { a_stream_through(1); });
  every("channel: a stream through rendezvous", [] { a_stream_through(0); });
  every("channel: sender and receiver meet", &sender_and_receiver_meet);
  random("channel: one of two receivers meets the sender", &one_of_two_receivers_meets_the_sender);
  every("channel: a send that timed out gave nothing", &a_send_that_timed_out_gave_nothing);
  every("channel: a receive that was stopped took nothing",
        &a_receive_that_was_stopped_took_nothing);
  every("channel: close ends a rendezvous", &close_ends_a_rendezvous);
  random("channel: close wakes every receiver", &close_wakes_every_receiver);
  every("channel: the receiver may destroy it", &the_receiver_may_destroy_it);
  every("channel: a coroutine meets a thread", &coroutines_meet_threads);
  every("channel: close wakes a coroutine that receives", &close_wakes_a_coroutine_that_receives);
  every("channel: close wakes a coroutine that sends", &close_wakes_a_coroutine_that_sends);
  every("select: a try takes a buffered item", [] { a_try_select_takes_an_available_item(1); });
  every("select: a try concurrent with a try_send",
        [] { a_try_select_takes_an_available_item(0); });
  every("select: a try gives to a waiting receiver", &a_try_select_gives_to_a_waiting_receiver);
  every("select: takes from either buffer", [] { a_select_takes_from_either(1); });
  every("select: takes from either rendezvous", [] { a_select_takes_from_either(0); });
  every("select: a timed-out select did nothing", &a_select_that_timed_out_did_nothing);
  every("select: a stopped select did nothing", &a_select_that_was_stopped_did_nothing);
  every("select: a case that was not chosen gave nothing",
        &a_case_that_was_not_chosen_gave_nothing);
  every("select: two selects meet", &two_selects_meet);
  every("select: close ends it", &close_ends_a_select);
  random("select: two selects share two items", &two_selects_share_two_items);
  every("select: a coroutine selects", &a_coroutine_selects);
  every("select: a coroutine that was stopped selected nothing",
        &a_coroutine_that_was_stopped_selected_nothing);
  every("select: the last selected party may destroy both",
        &the_last_selected_party_may_destroy_both);
  return true;
}();

}  // namespace
}  // namespace sluice::sim
