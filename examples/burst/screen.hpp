#pragma once

// The live view: a few lines under the table that are redrawn while a burst runs.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "examples/burst/burst.hpp"
#include "examples/burst/terminal.hpp"

namespace burst {

class screen {
 public:
  screen(const terminal& t, const settings& s) : terminal_(t), settings_(s) {}
  screen(const screen&) = delete;
  screen& operator=(const screen&) = delete;
  ~screen() { clear(); }

  // Starts burst `number` and forgets the previous one.
  void begin(sluice::overflow policy, std::size_t number);
  void show(const moment& now);
  // Erases the lines, so that other text can be printed there.
  void clear();

 private:
  struct rates {
    double arriving = 0;
    double done = 0;
    double cores = 0;
  };

  rates rates_until(const moment& now) const;
  std::vector<std::string> draw(const moment& now) const;
  std::string title() const;
  std::string progress(std::uint64_t count, terminal::colour c, std::size_t columns) const;
  std::string depth(const moment& now, std::size_t columns) const;
  std::string history(std::size_t columns) const;
  std::string cpu(const moment& now, const rates& r) const;
  std::string label(std::string_view text) const;

  const terminal& terminal_;
  const settings& settings_;

  sluice::overflow policy_{};
  std::size_t number_ = 0;
  std::size_t looks_ = 0;
  std::deque<moment> seen_;     // the last few, for rates
  std::vector<double> depths_;  // of this burst, as shares of the capacity
  std::size_t lines_drawn_ = 0;
};

}  // namespace burst
