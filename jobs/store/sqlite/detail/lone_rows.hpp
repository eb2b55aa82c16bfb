#pragma once

// Adds and drops of jobs without relations to others, several per statement: a statement costs as
// much as the row it writes.
//
// Such an add has no key and no group, and only the first columns of a row; such a drop has no key
// to free and no waiting jobs. They may be buffered until `flush`, which must be called before any
// other access to the same jobs. The order of adds and drops is kept where it matters: for a drop
// of a job whose add is buffered.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/row_inserts.hpp"
#include "jobs/store/store.hpp"

namespace sluice::jobs::detail {

class lone_rows {
 public:
  static bool is_lone_add(const change& c) noexcept;
  static bool is_lone_drop(const change& c) noexcept;

  [[nodiscard]] bool prepare(connection& on);

  // Discards the buffers, at the start of a transaction.
  void clear() noexcept;
  // Return false on failure; `own_error` has the error, or else the connection.
  [[nodiscard]] bool add(const change& c);
  [[nodiscard]] bool drop(const change& c);
  [[nodiscard]] bool flush();
  std::optional<error> own_error() { return std::exchange(own_error_, std::nullopt); }

 private:
  static constexpr std::size_t at_once = row_inserts::at_once;

  // The changes for one statement.
  class buffer {
   public:
    using range = std::span<const change* const>;

    void push(const change& c) noexcept { changes_[count_++] = &c; }
    void clear() noexcept { count_ = 0; }
    std::size_t size() const noexcept { return count_; }
    bool empty() const noexcept { return count_ == 0; }
    bool is_full() const noexcept { return count_ == at_once; }
    const change* const* begin() const noexcept { return changes_.data(); }
    const change* const* end() const noexcept { return changes_.data() + count_; }
    void sort_by_id() noexcept;

   private:
    std::array<const change*, at_once> changes_{};
    std::size_t count_ = 0;
  };

  bool write_adds();
  bool write_drops();
  bool drop_range(buffer::range drops);
  bool drop_all();
  bool dropped(buffer::range drops);

  connection* on_ = nullptr;
  row_inserts add_plain_, add_lone_;
  statement drop_range_, drop_many_, is_there_;
  buffer adds_, drops_;
  std::optional<error> own_error_;
};

}  // namespace sluice::jobs::detail
