#pragma once

// Clocks, deadlines, outcomes, contract checks and overflow policies, which all modules share.

#include "sluice/base/atomic.hpp"
#include "sluice/base/call_site.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/base/deadline.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/base/overflow.hpp"
#include "sluice/base/race_checked.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/this_thread.hpp"
#include "sluice/base/unique_function.hpp"
#include "sluice/base/work.hpp"
