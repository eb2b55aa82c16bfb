#pragma once

// Several observers of one system of actors: each gets all calls, in the order of the list, and its
// own notes.
//
// Guarantees: those of actor_observer. The list is constant; its observers must outlive it.
// Limits: the observers share the 64 bits of a message's note. More than 64 `note_bits` in total
// are a broken contract. actor_trace uses 24, actor_counters 40, stall_detector none.
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
  void spawned(actor_id id, actor_id parent, std::string_view name,
               std::string_view type) noexcept override;
  void ended(actor_id id, end_reason why) noexcept override;
  std::uint64_t sent(actor_id from, actor_id receiver, std::string_view message) noexcept override;
  void begun(actor_id id, std::string_view message, std::uint64_t note) noexcept override;
  void handled(actor_id id, std::string_view message, std::uint64_t note) noexcept override;
  void resumed(actor_id id, std::string_view message, std::uint64_t note) noexcept override;
  void failed(actor_id id, const std::exception_ptr& error) noexcept override;
  void restarted(actor_id id) noexcept override;
  void lost(actor_id receiver, std::string_view message, std::uint64_t note,
            loss why) noexcept override;
  void wait_begun(actor_id id, actor_id target, actor_wait reason,
                  std::uint64_t wait) noexcept override;
  void wait_ended(actor_id id, actor_id target, actor_wait reason,
                  std::uint64_t wait) noexcept override;

 private:
  struct member {
    actor_observer* observer;
    unsigned shift;  // the lowest bit of its part of a note
    std::uint64_t mask;
    std::uint64_t own(std::uint64_t note) const noexcept { return note >> shift & mask; }
  };

  // Constant after construction.
  std::vector<member> members_;
  unsigned bits_ = 0;
};

}  // namespace sluice
