#pragma once

// Detects locks that are acquired in two different orders: a deadlock that has not happened yet.
//
// Use it in tests and debug builds: `lock_order` is on by default there, and recorded while inspect
// is on. Whenever a thread acquires a lock while it holds others, the order is recorded. An order
// that closes a cycle with the recorded ones, also over several locks, is reported once, with the
// places of all steps.
//
// Guarantees: a lock acquired by `try_lock`, `lock_all` or a coroutine is not a step: the first two
// do not wait while holding a lock, and a coroutine holds its locks across threads. A known order
// costs a lookup; only a new order allocates and starts a search for cycles.
// Limits: only the first 16 locks held by a thread count. Destroying a lock removes its records.
// Two locks that are only ever acquired under a common third lock cannot deadlock, and are reported
// all the same when their order is reversed.
//
//     inspect::enabled on(
//         {.lock_order = true, .on_inversion = [](const auto& i) { log(i.text()); }});

#include <string>
#include <vector>

#include "sluice/base/call_site.hpp"

namespace sluice::inspect {

struct lock_inversion {
  // A thread acquired `second` while it held `first`.
  struct step {
    std::string first{};  // "mutex accounts"
    std::string second{};
    call_site first_at{};
    call_site second_at{};
    std::string by{};  // "thread 3 (teller)"
  };
  // The new step, then the recorded steps that lead from its end back to its beginning.
  std::vector<step> steps{};

  std::string text() const;
};

}  // namespace sluice::inspect
