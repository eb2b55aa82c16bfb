#pragma once

// Adds and drops of jobs that stand alone, several with one statement: to begin and end a statement
// costs as much as the row it writes.
//
// Such an add has no key and no group, and nothing but the first columns of a row; such a drop has
// no key to free and nobody to tell. They may be held back until `flush`, which must come before
// anything else that could be about the same jobs. The order between the two kinds is kept where it
// matters: a drop of a job that was added just before.

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

  // Forgets what is held back: the beginning of a batch.
  void clear() noexcept;
  // False: it failed. `own_error` says why, or else the connection does.
  [[nodiscard]] bool add(const change& c);
  [[nodiscard]] bool drop(const change& c);
  [[nodiscard]] bool flush();
  std::optional<error> own_error() { return std::exchange(own_error_, std::nullopt); }

 private:
  static constexpr std::size_t at_once = row_inserts::at_once;

  // What waits for one statement.
  class held {
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
  bool drop_range(held::range those);
  bool drop_all();
  bool dropped(held::range those);

  connection* on_ = nullptr;
  row_inserts add_plain_, add_lone_;
  statement drop_range_, drop_many_, is_there_;
  held adds_, drops_;
  std::optional<error> own_error_;
};

}  // namespace sluice::jobs::detail
