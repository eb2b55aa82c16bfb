#pragma once

// Wait reports, deadlock detection, and the watchdog.

#include "sluice/inspect/deadlock.hpp"
#include "sluice/inspect/format.hpp"
#include "sluice/inspect/inspect.hpp"
#include "sluice/inspect/lock_order.hpp"
#include "sluice/inspect/progress.hpp"
#include "sluice/inspect/watchdog.hpp"
