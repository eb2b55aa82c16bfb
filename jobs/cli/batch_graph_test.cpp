// Drawings of workflows.
#include "jobs/cli/batch_graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace sluice::jobs::cli::batch_graph_test {
namespace {

job step(job_id id, std::string name, job_state state, std::vector<dependency> after = {}) {
  job j;
  j.id = id;
  j.state = state;
  j.spec.kind = "k";
  j.spec.step = std::move(name);
  j.spec.after = std::move(after);
  return j;
}

TEST(BatchGraph, DrawsEachJobBelowItsLastDependency) {
  const std::vector<job> jobs = {step(8, "flight", job_state::done),
                                 step(9, "hotel", job_state::running),
                                 step(10, "mail", job_state::held, {{.on = 8}, {.on = 9}}),
                                 step(11, "bill", job_state::held, {{.on = 10}})};
  EXPECT_EQ(batch_graph(jobs, {}),
            "8 flight         done\n"
            "9 hotel          running\n"
            "  `- 10 mail     held       after flight, hotel\n"
            "     `- 11 bill  held       after mail\n");
}

TEST(BatchGraph, ShowsTheConditionAndMissingJobs) {
  const std::vector<job> jobs = {
      step(8, "", job_state::dead),
      step(9, "tidy", job_state::ready, {{.on = 8, .when = after_when::end}, {.on = 3}})};
  EXPECT_EQ(batch_graph(jobs, {}),
            "8 k          dead\n"
            "  `- 9 tidy  ready      after k:end, 3\n");
}

TEST(BatchGraph, HasALineForEveryJob) {
  std::vector<job> jobs;
  for (job_id id = 1; id <= 200; ++id) {
    std::vector<dependency> after;
    for (job_id on = id / 2; on < id; on += 7) {
      if (on > 0) after.push_back({.on = on});
    }
    jobs.push_back(step(id, "s" + std::to_string(id), job_state::held, after));
  }
  // No server accepts a cycle, but it must not break the drawing.
  jobs.push_back(step(300, "a", job_state::held, {{.on = 301}}));
  jobs.push_back(step(301, "b", job_state::held, {{.on = 300}}));
  const std::string text = batch_graph(jobs, {});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 202);
}

}  // namespace
}  // namespace sluice::jobs::cli::batch_graph_test
