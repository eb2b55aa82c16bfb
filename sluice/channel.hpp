#pragma once

// Channels, their two ends, and select.

#include "sluice/channel/channel.hpp"
#include "sluice/channel/receive_only.hpp"
#include "sluice/channel/select.hpp"
#include "sluice/channel/select_case.hpp"
#include "sluice/channel/send_only.hpp"
