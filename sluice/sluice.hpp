#pragma once

// The whole library. Programs that care about compile time include the headers that they use.

#include "sluice/actor.hpp"
#include "sluice/base.hpp"
#include "sluice/channel.hpp"
#include "sluice/executor.hpp"
#include "sluice/flow.hpp"
#include "sluice/future.hpp"
#include "sluice/inspect.hpp"
#include "sluice/queue.hpp"
#include "sluice/sync.hpp"
