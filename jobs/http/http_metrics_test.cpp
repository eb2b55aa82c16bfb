// /metrics, parsed as Prometheus does.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "jobs/http/testing/http_fixture.hpp"

namespace sluice::jobs::http_metrics_test {
namespace {

using testing::reply;
using labels = std::map<std::string, std::string>;

// Parses the text format strictly: every sample belongs to the last family, which has HELP and TYPE
// once; no sample is repeated.
class exposition {
 public:
  explicit exposition(std::string_view text) {
    EXPECT_TRUE(text.ends_with('\n'));
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      read_line(std::string(text.substr(0, end)));
      text.remove_prefix(end + 1);
    }
  }

  double value(const std::string& name, const labels& with = {}) const {
    const auto found = samples_.find({name, with});
    if (found == samples_.end()) {
      ADD_FAILURE() << "there is no sample " << name;
      return std::nan("");
    }
    return found->second;
  }
  bool has(const std::string& name, const labels& with) const {
    return samples_.contains({name, with});
  }
  std::string type(const std::string& name) const {
    const auto found = types_.find(name);
    return found == types_.end() ? "" : found->second;
  }
  std::size_t size() const { return samples_.size(); }

 private:
  void read_line(const std::string& line) {
    if (line.starts_with("# HELP ")) {
      family_ = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(helped_.insert(family_).second) << family_ << " is announced twice";
      EXPECT_GT(line.size(), 8 + family_.size()) << family_ << " has no help";
    } else if (line.starts_with("# TYPE ")) {
      const std::size_t space = line.find(' ', 7);
      EXPECT_EQ(line.substr(7, space - 7), family_);
      const std::string type = line.substr(space + 1);
      EXPECT_TRUE(type == "counter" || type == "gauge") << line;
      EXPECT_EQ(type == "counter", family_.ends_with("_total")) << family_;
      types_[family_] = type;
    } else {
      read_sample(line);
    }
  }
  void read_sample(const std::string& line) {
    std::size_t at = line.find_first_of("{ ");
    const std::string name = line.substr(0, at);
    EXPECT_EQ(name, family_) << line;
    labels with;
    if (line[at] == '{') {
      for (++at; line[at] != '}';) {
        const std::size_t equal = line.find("=\"", at);
        std::string value;
        std::size_t i = equal + 2;
        for (; line[i] != '"'; ++i) {
          if (line[i] != '\\') {
            value += line[i];
          } else {
            ++i;
            EXPECT_NE(std::string_view("\\\"n").find(line[i]), std::string_view::npos) << line;
            value += line[i] == 'n' ? '\n' : line[i];
          }
        }
        with[line.substr(at, equal - at)] = value;
        at = line[i + 1] == ',' ? i + 2 : i + 1;
      }
      ++at;
    }
    EXPECT_EQ(line[at], ' ') << line;
    char* end = nullptr;
    const double value = std::strtod(line.c_str() + at + 1, &end);
    EXPECT_EQ(*end, '\0') << line;
    EXPECT_TRUE(samples_.emplace(std::pair(name, with), value).second) << line << " is repeated";
  }

  std::string family_;
  std::set<std::string> helped_;
  std::map<std::string, std::string> types_;
  std::map<std::pair<std::string, labels>, double> samples_;
};

class HttpMetrics : public testing::HttpTest {};

TEST_F(HttpMetrics, CountWhatHappened) {
  start({.threads = 2, .version = "1.0 \"beta\"\\\n"});
  push();
  push(R"({"kind":"k","queue":"a:b/c"})");
  ask("PATCH", "/v1/queues/a:b%2Fc",
      R"({"capacity_jobs":7,"capacity_bytes":999999,"paused":true})");
  lease();
  ask("GET", "/v1/jobs/99");
  ask("GET", "/nothing");
  const reply r = ask("GET", "/metrics");
  EXPECT_EQ(r.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  const exposition m(r.body);

  EXPECT_EQ(m.value("sluice_build_info", {{"version", "1.0 \"beta\"\\\n"}}), 1);
  EXPECT_EQ(m.value("sluice_queue_jobs", {{"queue", "default"}, {"state", "running"}}), 1);
  EXPECT_EQ(m.value("sluice_queue_jobs", {{"queue", "a:b/c"}, {"state", "ready"}}), 1);
  EXPECT_EQ(m.value("sluice_queue_jobs", {{"queue", "a:b/c"}, {"state", "dead"}}), 0);
  EXPECT_GT(m.value("sluice_queue_bytes", {{"queue", "a:b/c"}}), 0);
  EXPECT_EQ(m.value("sluice_queue_capacity_jobs", {{"queue", "a:b/c"}}), 7);
  EXPECT_EQ(m.value("sluice_queue_capacity_bytes", {{"queue", "a:b/c"}}), 999999);
  EXPECT_EQ(m.value("sluice_queue_paused", {{"queue", "a:b/c"}}), 1);
  EXPECT_EQ(m.value("sluice_queue_paused", {{"queue", "default"}}), 0);
  EXPECT_EQ(m.value("sluice_jobs_pushed_total"), 2);
  EXPECT_EQ(m.value("sluice_jobs_leased_total"), 1);
  EXPECT_EQ(m.value("sluice_jobs_running"), 1);
  EXPECT_GT(m.value("sluice_commits_total"), 0);
  EXPECT_GE(m.value("sluice_commit_seconds", {{"quantile", "0.99"}}), 0);
  EXPECT_EQ(m.value("sluice_ready"), 1);

  const auto requests = [&](const char* method, const char* route, const char* status) {
    return m.value("sluice_http_requests_total",
                   {{"method", method}, {"route", route}, {"status", status}});
  };
  EXPECT_EQ(requests("POST", "/v1/jobs", "2xx"), 2);
  EXPECT_EQ(requests("GET", "/v1/jobs/{id}", "4xx"), 1);
  EXPECT_EQ(requests("other", "none", "4xx"), 1);
  EXPECT_EQ(m.value("sluice_http_connections_total"), 7);
  EXPECT_GE(m.value("sluice_http_connections"), 1);
  EXPECT_GT(m.value("sluice_http_received_bytes_total"), 500);
  EXPECT_GT(m.value("sluice_http_sent_bytes_total"), 500);
  EXPECT_GT(m.value("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(m.value("process_cpu_seconds_total"), 0);
  EXPECT_EQ(m.type("sluice_http_requests_total"), "counter");
  EXPECT_EQ(m.type("sluice_queue_jobs"), "gauge");
}

TEST_F(HttpMetrics, HaveEveryNumberOfTheEngine) {
  start();
  const exposition m(ask("GET", "/metrics").body);
  for (const char* name : {"sluice_jobs_pushed_total",     "sluice_jobs_duplicate_total",
                           "sluice_jobs_dropped_total",    "sluice_jobs_refused_total",
                           "sluice_jobs_leased_total",     "sluice_jobs_acked_total",
                           "sluice_jobs_failed_total",     "sluice_jobs_expired_total",
                           "sluice_jobs_given_back_total", "sluice_jobs_retried_total",
                           "sluice_jobs_died_total",       "sluice_jobs_cancelled_total",
                           "sluice_commits_total",         "sluice_committed_changes_total",
                           "sluice_commit_errors_total",   "sluice_waiting_leases",
                           "sluice_waiting_pushes",        "sluice_jobs_running",
                           "sluice_window_jobs",           "sluice_window_bytes",
                           "sluice_jobs_held_total",       "sluice_jobs_released_total",
                           "sluice_jobs_skipped_total",    "sluice_cron_runs_total",
                           "sluice_webhooks_total",        "sluice_events_total"}) {
    EXPECT_EQ(m.value(name), 0) << name;
  }
}

TEST_F(HttpMetrics, ShowWaitersAndLimits) {
  start();
  ask("PATCH", "/v1/queues/default", R"({"rate":2.5,"concurrency":7,"weight":3})");
  push(R"({"kind":"a"})");
  push(R"({"kind":"b","after":[1]})");
  ask("PUT", "/v1/crons/c", R"({"schedule":"@yearly","job":{"kind":"k","queue":"other"}})");
  ask("POST", "/v1/crons/c/run");
  const exposition m(ask("GET", "/metrics").body);
  EXPECT_EQ(m.value("sluice_queue_jobs", {{"queue", "default"}, {"state", "held"}}), 1);
  EXPECT_EQ(m.value("sluice_queue_rate_limit", {{"queue", "default"}}), 2.5);
  EXPECT_EQ(m.value("sluice_queue_concurrency_limit", {{"queue", "default"}}), 7);
  EXPECT_EQ(m.value("sluice_queue_weight", {{"queue", "default"}}), 3);
  EXPECT_EQ(m.value("sluice_jobs_held_total"), 1);
  EXPECT_GE(m.value("sluice_events_total"), 2);
}

}  // namespace
}  // namespace sluice::jobs::http_metrics_test
