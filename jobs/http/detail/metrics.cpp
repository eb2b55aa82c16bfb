// /metrics: the server's metrics in the text format of Prometheus.
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>

#include "jobs/http/detail/server_state.hpp"

namespace sluice::jobs::http {
namespace {

// Escapes the three special characters of a label's value.
std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '"') {
      out += "\\\"";
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string label(std::string_view name, std::string_view value) {
  return std::string(name) + "=\"" + escaped(value) + "\"";
}

class page {
 public:
  explicit page(std::string& out) : out_(out) {}

  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    out_ += "# HELP ";
    out_ += name;
    out_ += ' ';
    out_ += help;
    out_ += "\n# TYPE ";
    out_ += name;
    out_ += ' ';
    out_ += type;
    out_ += '\n';
  }
  void sample(std::uint64_t value, std::string_view labels = {}) {
    line(labels, std::to_string(value));
  }
  void sample(double value, std::string_view labels = {}) {
    std::array<char, 32> text{};
    const int length = std::snprintf(text.data(), text.size(), "%.9g", value);
    line(labels, {text.data(), static_cast<std::size_t>(length)});
  }
  void sample_seconds(double value, std::string_view labels = {}) {
    std::array<char, 32> text{};
    const int length = std::snprintf(text.data(), text.size(), "%.6f", value);
    line(labels, {text.data(), static_cast<std::size_t>(length)});
  }
  void counter(std::string_view name, std::string_view help, std::uint64_t value) {
    family(name, "counter", help);
    sample(value);
  }
  void gauge(std::string_view name, std::string_view help, std::uint64_t value) {
    family(name, "gauge", help);
    sample(value);
  }

 private:
  void line(std::string_view labels, std::string_view value) {
    out_ += name_;
    if (!labels.empty()) {
      out_ += '{';
      out_ += labels;
      out_ += '}';
    }
    out_ += ' ';
    out_ += value;
    out_ += '\n';
  }

  std::string& out_;
  std::string_view name_;
};

constexpr std::array all_states = {job_state::scheduled, job_state::held,     job_state::ready,
                                   job_state::running,   job_state::retrying, job_state::done,
                                   job_state::dead,      job_state::cancelled};

void write_queues(page& p, const std::vector<queue_info>& queues) {
  p.family("sluice_queue_jobs", "gauge", "Jobs of a queue, by state.");
  for (const queue_info& q : queues) {
    for (const job_state s : all_states) {
      p.sample(q.counts.of(s), label("queue", q.name) + "," + label("state", to_string(s)));
    }
  }
  const auto each = [&](std::string_view name, std::string_view help, auto value) {
    p.family(name, "gauge", help);
    for (const queue_info& q : queues) p.sample(value(q), label("queue", q.name));
  };
  each("sluice_queue_bytes", "Bytes of a queue's jobs that have not ended.",
       [](const queue_info& q) { return q.counts.bytes; });
  each("sluice_queue_capacity_jobs", "Capacity of a queue in jobs.",
       [](const queue_info& q) { return q.options.capacity_jobs; });
  each("sluice_queue_capacity_bytes", "Capacity of a queue in bytes.",
       [](const queue_info& q) { return q.options.capacity_bytes; });
  each("sluice_queue_rate_limit", "Most jobs of a queue that start in a second; 0: no limit.",
       [](const queue_info& q) { return q.options.rate; });
  each("sluice_queue_concurrency_limit", "Most jobs of a queue that run at a time; 0: no limit.",
       [](const queue_info& q) { return std::uint64_t{q.options.concurrency}; });
  each("sluice_queue_weight", "Share of a queue in leases that name several queues.",
       [](const queue_info& q) { return std::uint64_t{q.options.weight}; });
  each("sluice_queue_paused", "1 while a queue is paused.",
       [](const queue_info& q) { return std::uint64_t{q.options.paused}; });
}

void write_engine(page& p, const engine_stats& s, const health& h) {
  p.counter("sluice_jobs_pushed_total", "Jobs accepted.", s.pushed);
  p.counter("sluice_jobs_duplicate_total", "Pushes whose unique key was taken.", s.duplicates);
  p.counter("sluice_jobs_dropped_total", "Jobs dropped by a full queue's policy.", s.dropped);
  p.counter("sluice_jobs_refused_total", "Pushes refused.", s.refused);
  p.counter("sluice_jobs_leased_total", "Leases given out.", s.leased);
  p.counter("sluice_jobs_acked_total", "Jobs that workers acked.", s.acked);
  p.counter("sluice_jobs_failed_total", "Attempts that workers failed.", s.failed);
  p.counter("sluice_jobs_expired_total", "Leases that expired.", s.expired);
  p.counter("sluice_jobs_given_back_total", "Leases released unused.", s.given_back);
  p.counter("sluice_jobs_retried_total", "Failed jobs that wait for another attempt.", s.retried);
  p.counter("sluice_jobs_died_total", "Jobs that failed for good.", s.died);
  p.counter("sluice_jobs_cancelled_total", "Jobs cancelled.", s.cancelled);
  p.counter("sluice_jobs_held_total", "Jobs that had to wait for others.", s.held);
  p.counter("sluice_jobs_released_total", "Held jobs that were released.", s.released);
  p.counter("sluice_jobs_skipped_total", "Held jobs whose conditions became impossible.",
            s.skipped);
  p.counter("sluice_cron_runs_total", "Jobs pushed by cron entries.", s.cron_runs);
  p.counter("sluice_webhooks_total", "Ended jobs with a webhook to post.", s.webhooks);
  p.counter("sluice_events_total", "Events published.", s.events);
  p.counter("sluice_commits_total", "Transactions of the store.", s.commits);
  p.counter("sluice_committed_changes_total", "Changes in those transactions.",
            s.committed_changes);
  p.counter("sluice_commit_errors_total", "Transactions that failed.", s.commit_errors);
  p.gauge("sluice_jobs_running", "Jobs leased now.", s.running);
  p.gauge("sluice_waiting_leases", "Workers that wait for a job.", s.waiting_leases);
  p.gauge("sluice_waiting_pushes", "Pushes that wait for capacity.", s.waiting_pushes);
  p.gauge("sluice_window_jobs", "Ready jobs in memory.", s.window_jobs);
  p.gauge("sluice_window_bytes", "Bytes of ready jobs in memory.", s.window_bytes);
  p.family("sluice_commit_seconds", "gauge", "Duration of commits, by quantile.");
  p.sample_seconds(static_cast<double>(s.commit_p50_us) / 1e6, label("quantile", "0.5"));
  p.sample_seconds(static_cast<double>(s.commit_p99_us) / 1e6, label("quantile", "0.99"));
  p.gauge("sluice_ready", "1 while pushes are accepted.", h.takes_pushes ? 1 : 0);
}

template <class Member>
std::uint64_t sum(const server_state& server, Member member) {
  std::uint64_t total = 0;
  for (const auto& counts : server.counts) total += member(*counts);
  return total;
}

void write_http(page& p, const server_state& server) {
  static constexpr std::array<std::string_view, traffic::classes> classes = {"1xx", "2xx", "3xx",
                                                                             "4xx", "5xx"};
  p.family("sluice_http_requests_total", "counter", "Requests, by route and class of status.");
  for (std::size_t r = 0; r <= routes().size(); ++r) {
    for (std::size_t k = 0; k < classes.size(); ++k) {
      const auto n = sum(server, [&](const traffic& t) { return t.requests[r][k].load(relaxed); });
      if (n == 0) continue;
      const bool is_route = r < routes().size();
      p.sample(n, label("method", is_route ? to_string(routes()[r].method) : "other") + "," +
                      label("route", is_route ? routes()[r].path : "none") + "," +
                      label("status", classes[k]));
    }
  }
  p.counter("sluice_http_connections_total", "Connections accepted.",
            sum(server, [](const traffic& t) { return t.accepted.load(relaxed); }));
  p.counter("sluice_http_connections_refused_total", "Connections beyond the limit.",
            sum(server, [](const traffic& t) { return t.refused.load(relaxed); }));
  p.gauge("sluice_http_connections", "Connections open now.", server.connections());
  p.counter("sluice_http_received_bytes_total", "Bytes received.",
            sum(server, [](const traffic& t) { return t.bytes_in.load(relaxed); }));
  p.counter("sluice_http_sent_bytes_total", "Bytes sent.",
            sum(server, [](const traffic& t) { return t.bytes_out.load(relaxed); }));
  p.counter("sluice_http_timeouts_total",
            "Requests that arrived too slowly, or replies that were read too slowly.",
            sum(server, [](const traffic& t) { return t.timeouts.load(relaxed); }));
}

void write_memory(page& p, const net::client_memory& memory) {
  p.gauge("sluice_client_memory_bytes", "Memory used for connections.", memory.bytes());
  p.gauge("sluice_client_memory_limit_bytes", "Budget for the memory of connections.",
          memory.bytes_max());
  p.counter("sluice_client_memory_closed_total",
            "Connections closed because the budget was exceeded.", memory.closed());
}

// Returns zero if /proc is not available.
std::uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  if (!(in >> all >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

double cpu_seconds() {
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) != 0) return 0;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace

server_state::server_state(http_server_options o)
    : options(std::move(o)), time(options.time != nullptr ? *options.time : real_time()) {
  for (std::size_t i = 0; i < options.threads; ++i) counts.push_back(std::make_unique<traffic>());
}

std::uint64_t server_state::connections() const noexcept {
  return sum(*this, [](const traffic& t) { return t.open.load(relaxed); });
}

void write_metrics(std::string& out, const server_state& server, const engine& jobs) {
  page p(out);
  p.family("sluice_build_info", "gauge", "1; the version is in the label.");
  p.sample(std::uint64_t{1}, label("version", server.options.version));
  write_queues(p, jobs.queues());
  write_engine(p, jobs.stats(), jobs.health());
  write_http(p, server);
  write_memory(p, *server.memory);
  p.gauge("process_resident_memory_bytes", "Resident memory of the process.", resident_bytes());
  p.family("process_cpu_seconds_total", "counter", "Processor time of the process.");
  p.sample_seconds(cpu_seconds());
}

}  // namespace sluice::jobs::http
