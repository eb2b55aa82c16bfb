#pragma once

// How one actor is made: its mailbox, where it runs, and how it looks after its children.
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
  std::uint32_t capacity = 1024;  // messages that have been accepted and not begun
  sluice::overflow overflow = sluice::overflow::block;  // caller_runs is a broken contract
  std::uint32_t stash_capacity = 1024;
};

struct actor_options {
  std::string name{};  // empty: its type and number
  mailbox_options mailbox{};
  supervision children{};       // what becomes of a child that fails
  executor* on = nullptr;       // null: the system's
  bool own_thread = false;      // it runs on a thread of its own, for as long as it lives
  std::uint32_t per_turn = 64;  // messages it handles before others come on
  child_kind kind = child_kind::transient;  // how it is made anew: supervision.hpp
};

// Of an actor, for programs; unique in its system.
using actor_id = std::uint64_t;

// Why an actor is no more.
enum class end_reason : std::uint8_t {
  stopped,  // somebody stopped or closed it, or its parent, or it did so itself
  failed,   // it threw, and its supervisor did not let it go on
};

}  // namespace sluice
