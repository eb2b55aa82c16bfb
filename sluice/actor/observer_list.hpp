#pragma once

// Several observers of one system of actors at once: each hears everything, in the order of the
// list, and gets back its own notes.
//
// Guarantees: those of actor_observer. The list is constant; its observers must outlive it.
// Limits: a message has one note of 64 bits, that the observers share: the `note_bits` of all of
// them together must not be more, which is a broken contract. actor_trace uses 24, actor_counters
// 40, actor_watch none.
//
//     actor_trace trace;
//     actor_counters counters;
//     observer_list seen({&trace, &counters});
//     actor_system system(pool, {.observer = &seen});

#include <cstdint>
#include <vector>

#include "sluice/actor/actor_observer.hpp"

namespace sluice {

class observer_list final : public actor_observer {
 public:
  explicit observer_list(std::vector<actor_observer*> all);

  unsigned note_bits() const noexcept override { return bits_; }
  void spawned(actor_id who, actor_id parent, std::string_view name,
               std::string_view type) noexcept override;
  void ended(actor_id who, end_reason why) noexcept override;
  std::uint64_t sent(actor_id from, actor_id to, std::string_view message) noexcept override;
  void begun(actor_id who, std::string_view message, std::uint64_t note) noexcept override;
  void handled(actor_id who, std::string_view message, std::uint64_t note) noexcept override;
  void resumed(actor_id who, std::string_view message, std::uint64_t note) noexcept override;
  void failed(actor_id who, const std::exception_ptr& error) noexcept override;
  void restarted(actor_id who) noexcept override;
  void lost(actor_id to, std::string_view message, std::uint64_t note, loss why) noexcept override;
  void waits(actor_id who, actor_id for_whom, actor_wait what,
             std::uint64_t wait) noexcept override;
  void waits_no_more(actor_id who, actor_id for_whom, actor_wait what,
                     std::uint64_t wait) noexcept override;

 private:
  struct member {
    actor_observer* observer;
    unsigned shift;  // where its part of a note begins
    std::uint64_t mask;
    std::uint64_t own(std::uint64_t note) const noexcept { return note >> shift & mask; }
  };

  // Constant after construction.
  std::vector<member> members_;
  unsigned bits_ = 0;
};

}  // namespace sluice
