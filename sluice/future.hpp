#pragma once

// Futures and promises, tasks and scopes, combinators, and timers.

#include "sluice/future/async.hpp"
#include "sluice/future/from_callback.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/scope.hpp"
#include "sluice/future/settled.hpp"
#include "sluice/future/shared_future.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/start_on.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/task_combinators.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/future/when_all.hpp"
#include "sluice/future/when_any.hpp"
