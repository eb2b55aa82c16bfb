#include "examples/pipeline_memory/figure.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace pipeline_memory::figure_test {
namespace {

measured straight(std::string name, std::int64_t items_a_sample) {
  measured run;
  run.name = std::move(name);
  for (int i = 0; i <= 10; ++i) {
    run.samples.push_back({i / 10.0, i * items_a_sample, static_cast<double>(i)});
  }
  run.in_flight_most = 10 * items_a_sample;
  return run;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(pipeline_memory_figure_test, AxesEndAtNumbersThatAreEasyToRead) {
  EXPECT_EQ(round_up(0), 1);
  EXPECT_EQ(round_up(1.5), 2);
  EXPECT_EQ(round_up(20), 20);
  EXPECT_EQ(round_up(21), 50);
  EXPECT_EQ(round_up(19'999), 20'000);
  EXPECT_EQ(round_up(50'001), 100'000);
}

TEST(pipeline_memory_figure_test, HasALineForEachRunInEachDiagram) {
  settings s;
  s.duration = std::chrono::milliseconds(1'000);
  const auto svg = to_svg(s, straight("few", 1), straight("many", 1'000));
  EXPECT_EQ(count(svg, "<polyline"), 4U);
  EXPECT_EQ(count(svg, "<svg"), count(svg, "</svg>"));
  EXPECT_EQ(count(svg, "<text"), count(svg, "</text>"));
  EXPECT_EQ(count(svg, "\"") % 2, 0U);
  EXPECT_EQ(count(svg, "10,000 items a second"), 2U) << "in words, and for the eye";
  EXPECT_NE(svg.find("70.0,250.0"), std::string::npos) << "both begin at the origin";
  EXPECT_NE(svg.find("370.0,76.0"), std::string::npos) << "the larger ends at the top";
}

}  // namespace
}  // namespace pipeline_memory::figure_test
