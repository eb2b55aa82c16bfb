#include "jobs/deliver/delivery_metrics.hpp"

#include <cstdint>
#include <string_view>

namespace sluice::jobs {
namespace {

template <class Value>
void append_family(std::string& out, std::string_view name, std::string_view type,
                   std::string_view help, const std::vector<delivery_stats>& all, Value value) {
  out.append("# HELP ").append(name).append(" ").append(help);
  out.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
  for (const delivery_stats& s : all) {
    // Names of queues contain no character that a label must escape.
    out.append(name).append("{queue=\"").append(s.queue).append("\"} ");
    out.append(std::to_string(value(s))).append("\n");
  }
}

}  // namespace

void append_metrics(std::string& out, const std::vector<delivery_stats>& all) {
  using stats = const delivery_stats&;
  append_family(out, "sluice_deliveries_total", "counter", "Requests answered with 2xx.", all,
                [](stats s) { return s.delivered; });
  append_family(out, "sluice_delivery_failures_total", "counter",
                "Requests that failed and may be retried.", all, [](stats s) { return s.failed; });
  append_family(out, "sluice_delivery_rejections_total", "counter",
                "Requests that failed for good.", all, [](stats s) { return s.rejected; });
  append_family(out, "sluice_delivery_given_back_total", "counter",
                "Jobs released without an attempt.", all, [](stats s) { return s.given_back; });
  append_family(out, "sluice_delivery_lost_total", "counter",
                "Outcomes that could not be stored: those jobs are posted again.", all,
                [](stats s) { return s.lost; });
  append_family(out, "sluice_deliveries_in_flight", "gauge", "Requests in progress.", all,
                [](stats s) { return s.in_flight; });
  append_family(out, "sluice_delivery_paused", "gauge",
                "1 while no request is made: the receiver keeps failing, or is not allowed.", all,
                [](stats s) { return std::uint64_t{s.is_paused ? 1U : 0U}; });
}

}  // namespace sluice::jobs
