#pragma once

// Percentiles of one measurement as several workloads: a run takes seconds and returns all of them.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "benchmarks/harness.hpp"

namespace sluice::bench {

inline double percentile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) fail("no latency was measured");
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

// The percentiles of one repetition are of one run, which the first call measures.
class percentile_runs {
 public:
  using sorted_run = std::function<std::vector<double>(const settings&)>;

  explicit percentile_runs(sorted_run run) : all_(std::make_shared<runs>(std::move(run))) {}

  measure at(double share) const {
    return [all = all_, share](const settings& s) {
      const std::size_t repetition = all->asked[share]++;
      if (repetition == all->found.size()) all->found.push_back(all->run(s));
      return percentile(all->found[repetition], share);
    };
  }

 private:
  struct runs {
    explicit runs(sorted_run measured) : run(std::move(measured)) {}

    sorted_run run;
    std::map<double, std::size_t> asked;
    std::vector<std::vector<double>> found;
  };

  std::shared_ptr<runs> all_;  // shared by the workloads of one contender
};

}  // namespace sluice::bench
