#pragma once

// Rate limiters, batchers, bulkheads, circuit breakers, retries, and pipelines.

#include "sluice/flow/batcher.hpp"
#include "sluice/flow/bulkhead.hpp"
#include "sluice/flow/circuit_breaker.hpp"
#include "sluice/flow/fan_in.hpp"
#include "sluice/flow/fan_out.hpp"
#include "sluice/flow/flow_ended.hpp"
#include "sluice/flow/keyed_rate_limiter.hpp"
#include "sluice/flow/pipeline.hpp"
#include "sluice/flow/pipeline_types.hpp"
#include "sluice/flow/rate.hpp"
#include "sluice/flow/rate_limiter.hpp"
#include "sluice/flow/refused_error.hpp"
#include "sluice/flow/retry.hpp"
#include "sluice/flow/retry_budget.hpp"
