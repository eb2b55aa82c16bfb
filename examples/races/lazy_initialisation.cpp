// Unsafe lazy initialisation
//
// An expensive object is built on first use. Two threads that use it at the same time both find it
// missing and both build it: one of the two objects is leaked, or one thread keeps using it while
// all other threads use the other.

#include <memory>
#include <thread>

#include "examples/races/race.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/sync/lazy.hpp"

namespace {

struct connection {
  explicit connection(sluice::atomic<int>& opened) { opened.fetch_add(1, sluice::relaxed); }
};

void naive() {
  sluice::atomic<int> opened{0};
  sluice::atomic<connection*> only{nullptr};
  const auto use = [&] {
    if (only.load() == nullptr) only.store(new connection(opened));
  };
  {
    std::jthread one(use);
    std::jthread two(use);
  }
  sluice::sim::check(opened.load() == 1, "one connection to be opened");
  delete only.load();
}

void ruled_out() {
  sluice::atomic<int> opened{0};
  sluice::lazy<std::unique_ptr<connection>> only(
      [&] { return std::make_unique<connection>(opened); });
  const auto use = [&] { (void)only.get(); };
  {
    std::jthread one(use);
    std::jthread two(use);
  }
  sluice::sim::check(opened.load() == 1, "one connection to be opened");
}

[[maybe_unused]] const bool added = add({.order = 5,
                                         .file = "lazy_initialisation.cpp",
                                         .naive = &naive,
                                         .shows_as = sluice::sim::failure_kind::check,
                                         .within = 1'000,
                                         .ruled_out = &ruled_out,
                                         .by = "lazy"});

}  // namespace
