#pragma once

// Options of one actor: its mailbox, its executor, and the supervision of its children.
//
//     auto log = system.spawn_with<logger>({.name = "log", .mailbox = {.capacity = 64,
//                                           .overflow = overflow::drop_oldest}}, "app.log");

#include <cstddef>
#include <cstdint>
#include <string>

#include "sluice/actor/supervision.hpp"
#include "sluice/base/overflow.hpp"
#include "sluice/executor/executor.hpp"

namespace sluice {

struct mailbox_options {
  std::uint32_t capacity = 1024;                        // accepted messages that are not begun
  sluice::overflow overflow = sluice::overflow::block;  // caller_runs is a broken contract
  std::uint32_t stash_capacity = 1024;
};

struct actor_options {
  std::string name{};  // empty: its type and number
  mailbox_options mailbox{};
  supervision children{};                   // decides about children that fail
  executor* on = nullptr;                   // null: the system's
  bool own_thread = false;                  // runs on a dedicated thread until it ends
  std::uint32_t per_turn = 64;              // messages handled before the actor yields its executor
  child_kind kind = child_kind::transient;  // when it is restarted: supervision.hpp
};

// The number of an actor, unique in its system.
using actor_id = std::uint64_t;

// Why an actor ended.
enum class end_reason : std::uint8_t {
  stopped,  // it or an actor above it was stopped or closed, by any party or by itself
  failed,   // it threw, and its supervisor decided to end it
};

}  // namespace sluice
