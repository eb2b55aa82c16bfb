#pragma once

// Bounded queues: first in first out, by priority, by time, and for one producer and one consumer.

#include "sluice/queue/batch_result.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/queue/default_priority.hpp"
#include "sluice/queue/delay_queue.hpp"
#include "sluice/queue/delayed.hpp"
#include "sluice/queue/priority_queue.hpp"
#include "sluice/queue/queue_options.hpp"
#include "sluice/queue/queue_stats.hpp"
#include "sluice/queue/spsc_ring.hpp"
