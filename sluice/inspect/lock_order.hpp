#pragma once

// Tells of two locks that are taken in one order here and in the other there: a deadlock that has
// not happened yet.
//
// It is recorded while inspect is on with `lock_order` (the default in debug builds): whenever a
// thread takes a lock while it holds others, that order is noted. An order that closes a circle
// with those noted before, also around several locks, is reported, once, with the places of all
// steps.
//
// Guarantees: a lock taken by `try_lock`, by `lock_all` or by a coroutine is no step, because such
// a one does not wait while it holds, or holds across threads. Taking a lock twice in the same
// order costs a look at what is known; only a new order allocates and is searched for circles.
// Limits: of the locks that a thread holds the first 16 count. What was noted of a lock goes with
// it. Two locks that are only ever taken while a third one is held cannot deadlock, and are
// reported all the same when they are taken both ways round.
//
//     inspect::enabled on(
//         {.lock_order = true, .on_inversion = [](const auto& i) { log(i.text()); }});

#include <string>
#include <vector>

#include "sluice/base/call_site.hpp"

namespace sluice::inspect {

struct lock_inversion {
  // One thread took `second` while it held `first`.
  struct step {
    std::string first{};  // "mutex accounts"
    std::string second{};
    call_site first_at{};
    call_site second_at{};
    std::string by{};  // "thread 3 (teller)"
  };
  // The one just made, then those that were known and lead back from its end to its beginning.
  std::vector<step> steps{};

  std::string text() const;
};

}  // namespace sluice::inspect
