#pragma once

// The type-erased table behind actor_registry; each entry has a type mark.

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/actor/detail/cell.hpp"
#include "sluice/actor/detail/type_mark.hpp"
#include "sluice/sync/mutex.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice::detail {

class named_cells : public std::enable_shared_from_this<named_cells> {
 public:
  named_cells() = default;
  named_cells(const named_cells&) = delete;
  named_cells& operator=(const named_cells&) = delete;
  ~named_cells() { wait_report::destroyed(this); }

  // Returns false if the name is taken.
  bool add(std::string name, const cell_ptr& target, type_mark type);
  bool remove(std::string_view name, const cell& target);
  cell_ptr find(std::string_view name, type_mark type) const;
  std::vector<std::string> names() const;
  std::size_t size() const noexcept;
  std::size_t waiting() const noexcept;

 private:
  friend class name_wait;
  struct entry {
    cell_ptr target;
    type_mark type = nullptr;
  };
  using name_key = std::pair<std::string, type_mark>;

  cell_ptr find_locked(std::string_view name, type_mark type) const;
  void forget(const cell* ended);

  mutable mutex guard_;
  // Protected by guard_.
  std::map<std::string, entry, std::less<>> entries_;
  // The names of each watched actor. An actor whose names were all removed stays here, so that it
  // is watched only once.
  std::unordered_map<const cell*, std::vector<std::string>> names_of_;
  std::map<name_key, wait_list> waits_;
};

// The wait for a name: an operation for wait.hpp, without its result.
class name_wait {
 public:
  name_wait(named_cells& table, std::string name, type_mark type)
      : table_(table), key_(std::move(name), type) {}

  bool ready() const noexcept { return false; }
  bool attempt();
  enlisted enlist(waiter& waiting);
  bool woken() const noexcept { return true; }
  void retract();
  spin_budget& spin() noexcept { return spin_; }
  wait_report::subject wait_subject() const noexcept {
    return {&table_, "sluice::actor_registry", "find a name in"};
  }

 protected:
  cell_ptr take_found() noexcept { return std::move(place_.found); }

 private:
  friend class named_cells;
  class node final : public wait_node {
   public:
    cell_ptr found;
  };

  named_cells& table_;
  const named_cells::name_key key_;
  node place_;
  spin_budget spin_;
};

}  // namespace sluice::detail
