#pragma once

// Changes a window, and keeps the sums over all windows up to date.

#include "jobs/engine/detail/core.hpp"

namespace sluice::jobs::detail {

template <class Change>
void core::change_window(queue_state& q, Change&& edit) {
  window_bytes_ -= q.ready.bytes();
  window_jobs_ -= q.ready.size();
  edit(q.ready);
  window_bytes_ += q.ready.bytes();
  window_jobs_ += q.ready.size();
}

}  // namespace sluice::jobs::detail
