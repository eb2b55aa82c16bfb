#pragma once

// Inserts any number of rows with few statements: a statement costs as much as the row it writes.
// Prepared for 16, 8, 4, 2 and 1 rows.

#include <array>
#include <cstddef>
#include <string>

#include "jobs/store/sqlite/detail/connection.hpp"
#include "jobs/store/sqlite/detail/job_row.hpp"

namespace sluice::jobs::detail {

class row_inserts {
 public:
  static constexpr std::size_t at_once = 16;

  // `into` is the statement up to its rows; each row has `columns` parameters.
  [[nodiscard]] bool prepare(connection& on, const std::string& into, std::size_t columns) {
    columns_ = columns;
    for (std::size_t n = 0; n < of_size_.size(); ++n) {
      std::string text = into;
      for (std::size_t row = 0; row < at_once >> n; ++row) {
        text += (row > 0 ? ", (" : "(") + parameter_list(columns, row * columns) + ")";
      }
      if (!of_size_[n].prepare(on, text)) return false;
    }
    return true;
  }

  // Calls bind(statement, row, after) for each of `rows`: the first parameter is `after` + 1.
  template <class Bind>
  [[nodiscard]] bool run(std::size_t rows, const Bind& bind) {
    std::size_t row = 0;
    for (std::size_t n = 0; n < of_size_.size(); ++n) {
      const std::size_t size = at_once >> n;
      while (rows - row >= size) {
        for (std::size_t i = 0; i < size; ++i) {
          bind(of_size_[n], row++, static_cast<int>(i * columns_));
        }
        if (!of_size_[n].run()) return false;
      }
    }
    return true;
  }

 private:
  std::array<statement, 5> of_size_;  // for 16, 8, 4, 2 and 1 rows
  std::size_t columns_ = 0;
};

}  // namespace sluice::jobs::detail
