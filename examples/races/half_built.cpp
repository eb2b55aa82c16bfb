// Half-built publication
//
// A thread builds an object and then stores its address for other threads. A relaxed store does not
// order the writes to the object before the store of the address: a reader may see the address and
// then read the object's old contents.

#include <memory>
#include <thread>

#include "examples/races/race.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/base/race_checked.hpp"
#include "sluice/sync/snapshot.hpp"

namespace {

struct settings {
  sluice::race_checked<int> timeout_ms{0};
};

void naive() {
  const auto made = std::make_unique<settings>();
  sluice::atomic<settings*> current{nullptr};
  std::jthread reader([&] {
    if (const auto* found = current.load(sluice::acquire)) {
      sluice::sim::check(found->timeout_ms.read() == 250, "settings that are complete");
    }
  });
  made->timeout_ms.write(250);
  current.store(made.get(), sluice::relaxed);  // release is missing
}

void ruled_out() {
  sluice::snapshot<int> timeout_ms(100);
  std::jthread reader([&] {
    const int seen = *timeout_ms.load();
    sluice::sim::check(seen == 100 || seen == 250, "the old or the new, whole");
  });
  timeout_ms.publish(250);
}

[[maybe_unused]] const bool added = add({.order = 3,
                                         .file = "half_built.cpp",
                                         .naive = &naive,
                                         .shows_as = sluice::sim::failure_kind::race,
                                         .within = 1'000,
                                         .ruled_out = &ruled_out,
                                         .by = "snapshot"});

}  // namespace
