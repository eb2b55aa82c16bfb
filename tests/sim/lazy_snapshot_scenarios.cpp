// lazy and snapshot: one value with many readers.

#include <chrono>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include "sluice/base/race_checked.hpp"
#include "sluice/sim/testing/scenario.hpp"
#include "sluice/sync/lazy.hpp"
#include "sluice/sync/snapshot.hpp"
#include "sluice/sync/testing/coroutine.hpp"

namespace sluice::sim {
namespace {

using namespace std::chrono_literals;
using testing::detached;

// ---- lazy

void it_is_built_once() {
  race_checked<int> built{0};
  lazy<int> value([&] {
    built.write(built.read() + 1);
    return 7;
  });
  std::jthread other([&] { check(value.get() == 7, "the whole value"); });
  check(value.get() == 7, "the whole value");
  other.join();
  check(built.read() == 1, "to be built once");
}

void try_get_builds_nothing() {
  lazy<int> value([] { return 7; });
  std::jthread other([&] { check(value.get() == 7, "the whole value"); });
  if (auto built = value.try_get()) check(*built == 7, "the whole value");
}

void the_next_waiter_builds_after_a_failure() {
  race_checked<int> tries{0};
  int failed = 0;
  lazy<int> value([&] {
    tries.write(tries.read() + 1);
    if (tries.read() == 1) throw std::runtime_error("not now");
    return 7;
  });
  const auto ask = [&](int& failures) {
    try {
      check(value.get() == 7, "the whole value");
    } catch (const std::runtime_error&) {
      ++failures;
    }
  };
  int failed_there = 0;
  std::jthread other([&] { ask(failed_there); });
  ask(failed);
  other.join();
  check(failed + failed_there == 1, "the exception to reach only the failed builder");
  check(tries.read() == 2 && value.is_built(), "the other thread to have built it");
}

void one_waiter_at_a_time_builds_after_a_failure() {
  race_checked<int> tries{0};
  lazy<int> value([&] {
    tries.write(tries.read() + 1);
    if (tries.read() == 1) throw std::runtime_error("not now");
    return 7;
  });
  const auto ask = [&] {
    try {
      check(value.get() == 7, "the whole value");
    } catch (const std::runtime_error&) {
    }
  };
  {
    std::jthread a(ask);
    std::jthread b(ask);
    ask();
  }
  check(tries.read() == 2 && value.is_built(), "another thread to have built it");
}

void a_wait_for_the_builder_ends_in_time() {
  int built = 0;
  lazy<int> value([&] { return ++built; });
  std::jthread other([&] {
    if (auto found = value.get(1ms)) check(*found == 1, "the whole value");
  });
  check(value.get() == 1, "the whole value");
  other.join();
  check(built == 1 && value.waiting() == 0, "one build and no waiters");
}

void a_wait_for_the_builder_ends_by_a_stop() {
  std::stop_source stop;
  lazy<int> value([&] {
    stop.request_stop();
    return 7;
  });
  std::jthread other([&] {
    if (auto built = value.get(stop.get_token())) check(*built == 7, "the whole value");
  });
  check(value.get() == 7, "the whole value");
}

void the_last_reader_may_destroy_the_lazy() {
  auto value = std::make_unique<lazy<int>>([] { return 7; });
  atomic<int> users{2};
  const auto use = [&] {
    check(value->get() == 7, "the whole value");
    // acq_rel: the accesses of both happen before the destruction.
    if (users.fetch_sub(1, acq_rel) == 1) value.reset();
  };
  std::jthread other(use);
  use();
}

void a_coroutine_waits_for_the_builder() {
  lazy<int> value([] { return 7; });
  bool finished = false;
  const auto coroutine = [&]() -> detached {
    auto built = co_await value.async_get();
    check(built.has_value() && *built == 7, "the whole value");
    finished = true;
  };
  std::jthread other([&] { coroutine(); });
  check(value.get() == 7, "the whole value");
  other.join();
  check(finished, "the coroutine to have the value");
}

void three_readers_of_one_value() {
  race_checked<int> built{0};
  lazy<int> value([&] {
    built.write(built.read() + 1);
    return 7;
  });
  const auto ask = [&] { check(value.get() == 7, "the whole value"); };
  {
    std::jthread a(ask);
    std::jthread b(ask);
    ask();
  }
  check(built.read() == 1, "to be built once");
}

// ---- snapshot

struct pair_of {
  int one = 0;
  int two = 0;
};

void a_reader_sees_a_whole_version() {
  snapshot<pair_of> value(pair_of{1, 1});
  std::jthread writer([&] { value.publish({2, 2}); });
  const auto now = value.load();
  check(now->one == now->two, "one version");
}

void versions_do_not_go_backwards() {
  snapshot<int> value(1);
  std::jthread writer([&] { value.publish(2); });
  auto view = value.load();
  const int first = *view;
  const auto number = value.version();
  value.refresh(view);
  check(*view >= first && view.version() >= number, "no older version");
}

void no_update_is_lost() {
  snapshot<int> value(0);
  std::jthread other([&] { value.update([](int& n) { ++n; }); });
  value.update([](int& n) { ++n; });
  other.join();
  const auto last = value.load();
  check(*last == 2 && last.version() == 3, "both updates");
}

void a_view_outlives_its_snapshot() {
  auto value = std::make_unique<snapshot<pair_of>>(pair_of{1, 1});
  snapshot<pair_of>::view kept;
  std::jthread reader([&] { kept = value->load(); });
  value->publish({2, 2});
  reader.join();
  value.reset();
  check(kept->one == kept->two, "one version");
}

void the_last_view_frees_the_version() {
  snapshot<std::unique_ptr<int>> value(std::make_unique<int>(1));
  std::jthread reader([&] {
    const auto view = value.load();
    const auto copy = view;
    check(**copy > 0, "a live version");
  });
  value.publish(std::make_unique<int>(2));
  const auto now = value.load();
  check(**now == 2, "the newest");
}

void two_readers_and_two_versions() {
  snapshot<pair_of> value(pair_of{1, 1});
  const auto look = [&] {
    auto view = value.load();
    check(view->one == view->two, "one version");
    const int first = view->one;
    value.refresh(view);
    check(view->one == view->two && view->one >= first, "one version, not an older one");
  };
  std::jthread a(look);
  std::jthread b(look);
  value.publish({2, 2});
  value.update([](pair_of& next) {
    ++next.one;
    ++next.two;
  });
}

// The count leaves the word after few loads, so that the schedule is short.
void counts_move_out_of_a_full_word() {
  using sluice::detail::version_base;
  version_base first(1);
  version_base second(2);
  sluice::detail::version_word<2> word(&first);
  std::int64_t left = 0;
  std::int64_t held_first[2] = {0, 0};
  const auto hold = [&](std::int64_t& held) {
    for (int i = 0; i < 2; ++i) held += word.hold() == &first ? 1 : 0;
  };
  std::jthread other([&] { hold(held_first[1]); });
  hold(held_first[0]);
  left = word.replace(&second);
  other.join();
  const auto counted = first.holders.load() - version_base::not_retired + left;
  check(counted == held_first[0] + held_first[1], "every load to be counted once");
}

[[maybe_unused]] const bool added = [] {
  const auto random = [](const std::string& name, void (*body)(),
                         std::uint64_t schedules = 10'000) {
    add({.name = name, .options = {.schedules = schedules}, .body = body});
  };
  const auto every = [&](const std::string& name, void (*body)()) {
    random(name, body, 4'000);
    add({.name = name + ", every schedule", .options = exhaustively(), .body = body});
  };
  every("lazy: it is built once", &it_is_built_once);
  every("lazy: try_get builds nothing", &try_get_builds_nothing);
  every("lazy: the next waiter builds after a failure", &the_next_waiter_builds_after_a_failure);
  every("lazy: a wait for the builder ends in time", &a_wait_for_the_builder_ends_in_time);
  every("lazy: a wait for the builder ends by a stop", &a_wait_for_the_builder_ends_by_a_stop);
  every("lazy: the last reader may destroy it", &the_last_reader_may_destroy_the_lazy);
  every("lazy: a coroutine waits for the builder", &a_coroutine_waits_for_the_builder);
  random("lazy: three readers of one value", &three_readers_of_one_value);
  random("lazy: one waiter at a time builds after a failure",
         &one_waiter_at_a_time_builds_after_a_failure);
  every("snapshot: a reader sees a whole version", &a_reader_sees_a_whole_version);
  every("snapshot: versions do not go backwards", &versions_do_not_go_backwards);
  every("snapshot: no update is lost", &no_update_is_lost);
  every("snapshot: a view outlives it", &a_view_outlives_its_snapshot);
  every("snapshot: the last view frees the version", &the_last_view_frees_the_version);
  every("snapshot: counts move out of a full word", &counts_move_out_of_a_full_word);
  random("snapshot: two readers and two versions", &two_readers_and_two_versions);
  return true;
}();

}  // namespace
}  // namespace sluice::sim
