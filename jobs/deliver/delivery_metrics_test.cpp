#include "jobs/deliver/delivery_metrics.hpp"

#include <gtest/gtest.h>

namespace sluice::jobs::delivery_metrics_test {
namespace {

TEST(delivery_metrics_test, EveryFamilyHasASampleOfEveryQueue) {
  std::string out = "before 1\n";
  append_metrics(out, {{.queue = "a", .delivered = 3, .in_flight = 2},
                       {.queue = "sluice/webhooks", .failed = 4, .is_paused = true}});
  EXPECT_TRUE(out.starts_with("before 1\n# HELP sluice_deliveries_total "));
  for (const char* const line :
       {"# TYPE sluice_deliveries_total counter\n", "\nsluice_deliveries_total{queue=\"a\"} 3\n",
        "\nsluice_deliveries_total{queue=\"sluice/webhooks\"} 0\n",
        "\nsluice_delivery_failures_total{queue=\"sluice/webhooks\"} 4\n",
        "# TYPE sluice_deliveries_in_flight gauge\n",
        "\nsluice_deliveries_in_flight{queue=\"a\"} 2\n",
        "\nsluice_delivery_paused{queue=\"a\"} 0\n",
        "\nsluice_delivery_paused{queue=\"sluice/webhooks\"} 1\n"}) {
    EXPECT_NE(out.find(line), std::string::npos) << line << " in\n" << out;
  }
}

}  // namespace
}  // namespace sluice::jobs::delivery_metrics_test
