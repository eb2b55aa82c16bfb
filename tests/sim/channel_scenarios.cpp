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
  check(last == 2, "every item to come out");
}

void sender_and_receiver_meet() {
  channel<parcel> meeting;
  atomic<bool> receiving{false};
  std::jthread sender([&] {
    check(meeting.send(parcel(1)) == status::ok, "to be received");
    check(receiving.load(relaxed), "the receiver to have come");
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
  check(sum.load(relaxed) == 3, "each to have one");
}

void a_send_that_timed_out_gave_nothing() {
  channel<parcel> meeting;
  parcel item(1);
  bool received = false;
  std::jthread receiver([&] { received = meeting.try_receive_for(1ms).has_value(); });
  const auto sent = meeting.send_within(item, deadline::after(1ms));
  receiver.join();
  check(received == static_cast<bool>(sent), "both to say the same");
  check(item.number() == (sent ? 0 : 1), "given away only when it was received");
}

void a_receive_that_was_stopped_took_nothing() {
  channel<parcel> meeting;
  std::stop_source stop;
  bool received = false;
  std::jthread receiver([&] { received = meeting.receive(stop.get_token()).has_value(); });
  const auto sent = meeting.try_send(parcel(1));
  stop.request_stop();
  receiver.join();
  check(received == static_cast<bool>(sent), "both to say the same");
}

void close_ends_a_rendezvous() {
  channel<parcel> meeting;
  std::jthread closer([&] { meeting.close(); });
  check(meeting.send(parcel(1)) == status::closed, "to hear that it is closed");
}

void close_wakes_every_receiver() {
  channel<parcel> meeting;
  const auto hear = [&] { check(meeting.receive().status() == status::closed, "to hear of it"); };
  std::jthread a(hear);
  std::jthread b(hear);
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
  check(got == 1, "the coroutine to have it");
}

void close_wakes_a_coroutine_that_receives() {
  channel<parcel> meeting;
  bool heard = false;
  const auto coroutine = [&]() -> detached {
    const auto item = co_await meeting.async_receive();
    heard = item.status() == status::closed;
  };
  std::jthread receiver([&] { coroutine(); });
  meeting.close();
  receiver.join();
  check(heard, "the coroutine to hear that it is closed");
}

void close_wakes_a_coroutine_that_sends() {
  channel<parcel> meeting;
  bool heard = false;
  const auto coroutine = [&]() -> detached {
    const auto sent = co_await meeting.async_send(parcel(1));
    heard = sent == status::closed;
  };
  std::jthread sender([&] { coroutine(); });
  meeting.close();
  sender.join();
  check(heard, "the coroutine to hear that it is closed");
}

// ---- select

// Beside a send that comes at the same time; the other way round the receiver waits already or not.
void a_try_select_takes_what_is_there(std::size_t capacity) {
  channel<parcel> a(capacity);
  channel<parcel> b(capacity);
  bool sent = false;
  std::jthread sender([&] { sent = static_cast<bool>(b.try_send(parcel(1))); });
  int got = 0;
  const auto add = [&](outcome<parcel> item) { got += item->number(); };
  const auto chosen = try_select(on_receive(a, add), on_receive(b, add));
  sender.join();
  check(chosen ? chosen.index == 1 : chosen.status == status::empty, "the one that was sent to");
  check(got == (chosen ? 1 : 0), "a result exactly when a case was chosen");
  check(sent == (capacity > 0), "a buffer to have room, and nobody to wait for a hand");
  check(b.size() == (sent && !chosen ? 1U : 0U), "taken, or still inside");
}

void a_try_select_gives_to_one_who_waits() {
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
  check(chosen ? chosen.index == 1 : chosen.status == status::empty, "the one with a receiver");
  check(got == (chosen ? 2 : 0), "received exactly when it was sent");
  check(for_a.number() == 1 && for_b.number() == (chosen ? 0 : 2), "only what was sent given away");
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
    check(static_cast<bool>(select(on_receive(a, add), on_receive(b, add))), "one of them");
  }
  check(sum == 3, "both items, each once");
}

void a_select_that_timed_out_did_nothing() {
  channel<parcel> a(1);
  channel<parcel> b(1);
  std::jthread sender([&] { check(b.try_send(parcel(1)) == status::ok, "room for one"); });
  int got = 0;
  const auto add = [&](outcome<parcel> item) { got += item->number(); };
  const auto chosen = try_select_for(1ms, on_receive(a, add), on_receive(b, add));
  sender.join();
  check(got == (chosen ? 1 : 0), "a result exactly when a case was chosen");
  check(b.size() == (chosen ? 0U : 1U), "taken, or still inside");
}

void a_select_that_was_stopped_did_nothing() {
  channel<parcel> a;
  channel<parcel> b(1);
  std::stop_source stop;
  std::jthread sender([&] {
    stop.request_stop();
    check(b.try_send(parcel(1)) == status::ok, "room for one");
  });
  int got = 0;
  const auto add = [&](outcome<parcel> item) { got += item->number(); };
  const auto chosen = select(stop.get_token(), on_receive(a, add), on_receive(b, add));
  sender.join();
  check(got == (chosen ? 1 : 0) && b.size() == (chosen ? 0U : 1U), "taken, or still inside");
}

void a_case_that_was_not_chosen_gave_nothing() {
  channel<parcel> a;
  channel<parcel> b;
  std::jthread receiver([&] { check(a.receive()->number() == 1, "the item for a"); });
  parcel for_a(1);
  parcel for_b(2);
  const auto chosen = select(on_send(a, for_a), on_send(b, for_b));
  check(chosen.index == 0, "the one with a receiver");
  check(for_a.number() == 0 && for_b.number() == 2, "only what was sent to be given away");
}

void two_selects_meet() {
  channel<parcel> a;
  channel<parcel> b;
  int got = 0;
  std::jthread other([&] {
    const auto take = [&](outcome<parcel> item) { got = item->number(); };
    check(static_cast<bool>(select(on_receive(b, take), on_receive(a, take))), "one of them");
  });
  parcel for_a(1);
  parcel for_b(2);
  const auto chosen = select(on_send(a, for_a), on_send(b, for_b));
  other.join();
  check(got == (chosen.index == 0 ? 1 : 2), "the item of the case that was chosen");
}

void close_ends_a_select() {
  channel<parcel> a;
  channel<parcel> b(1);
  bool heard = false;
  std::jthread closer([&] { b.close(); });
  const auto hear = [&](outcome<parcel> item) { heard = item.status() == status::closed; };
  const auto chosen = select(on_receive(a, [](outcome<parcel>) {}), on_receive(b, hear));
  check(chosen.index == 1 && heard, "the case of the closed one");
}

void two_selects_share_two_items() {
  channel<parcel> a(1);
  channel<parcel> b(1);
  atomic<int> sum{0};
  const auto take = [&] {
    const auto add = [&](outcome<parcel> item) { sum.fetch_add(item->number(), relaxed); };
    check(static_cast<bool>(select(on_receive(a, add), on_receive(b, add))), "one of them");
  };
  {
    std::jthread one(take);
    std::jthread two(take);
    check(a.send(parcel(1)) == status::ok && b.send(parcel(2)) == status::ok, "room for both");
  }
  check(sum.load(relaxed) == 3, "each to have one");
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
      check(static_cast<bool>(chosen), "one of them");
    }
  };
  std::jthread other([&] { coroutine(); });
  check(b.send(parcel(2)) == status::ok, "room for one");
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
    check(static_cast<bool>(chosen) == (taken != 0), "a result exactly when a case was chosen");
    got = taken;
  };
  std::jthread other([&] { coroutine(); });
  check(b.try_send(parcel(1)) == status::ok, "room for one");
  stop.request_stop();
  other.join();
  check(got + static_cast<int>(b.size()) == 1, "taken, or still inside");
}

void who_was_selected_last_may_destroy_both() {
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
    add({.name = name, .how = {.schedules = schedules}, .body = std::move(body)});
  };
  const auto every = [&](const std::string& name, const std::function<void()>& body) {
    random(name, body, 4'000);
    add({.name = name + ", every schedule", .how = exhaustively(), .body = body});
  };
  every("channel: a stream through a buffer", [] { a_stream_through(1); });
  every("channel: a stream from hand to hand", [] { a_stream_through(0); });
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
  every("select: a try takes what is in a buffer", [] { a_try_select_takes_what_is_there(1); });
  every("select: a try beside a try to hand over", [] { a_try_select_takes_what_is_there(0); });
  every("select: a try gives to one who waits", &a_try_select_gives_to_one_who_waits);
  every("select: takes from either buffer", [] { a_select_takes_from_either(1); });
  every("select: takes from either hand", [] { a_select_takes_from_either(0); });
  every("select: one that timed out did nothing", &a_select_that_timed_out_did_nothing);
  every("select: one that was stopped did nothing", &a_select_that_was_stopped_did_nothing);
  every("select: a case that was not chosen gave nothing",
        &a_case_that_was_not_chosen_gave_nothing);
  every("select: two selects meet", &two_selects_meet);
  every("select: close ends it", &close_ends_a_select);
  random("select: two selects share two items", &two_selects_share_two_items);
  every("select: a coroutine selects", &a_coroutine_selects);
  every("select: a coroutine that was stopped selected nothing",
        &a_coroutine_that_was_stopped_selected_nothing);
  every("select: who was selected last may destroy both", &who_was_selected_last_may_destroy_both);
  return true;
}();

}  // namespace
}  // namespace sluice::sim
