#pragma once

// Thread pools, strands, fork and join, parallel loops, and routers.

#include "sluice/executor/executor.hpp"
#include "sluice/executor/fork.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/parallel.hpp"
#include "sluice/executor/queued_executor.hpp"
#include "sluice/executor/router.hpp"
#include "sluice/executor/routing.hpp"
#include "sluice/executor/sizing.hpp"
#include "sluice/executor/strand.hpp"
#include "sluice/executor/submission.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
