#include "benchmarks/server/workloads.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <utility>

#include "benchmarks/server/http_crowd.hpp"

namespace sluice::bench {
namespace {

using clock = http_crowd::clock;
using connection = http_crowd::connection;

void expect_success(const http_answer& answer, std::string_view request) {
  if (answer.status / 100 == 2 && answer.body.find("\"error\"") == std::string_view::npos) return;
  fail(std::string(request) + " was answered " + std::to_string(answer.status) + " " +
       std::string(answer.body.substr(0, 500)));
}

void expect_waiting(const server_process& server, std::uint64_t jobs) {
  const auto ready = numbers_after(ask(server.port(), "/v1/queues", {}), "ready");
  expect_equal(ready.empty() ? 0 : ready[0], jobs, "ready jobs after the pushes");
}

std::string lease_body(std::size_t max) {
  return R"({"queues":["default"],"wait":"30s","worker":"bench","max":)" + std::to_string(max) +
         "}";
}

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(clock::now().time_since_epoch().count());
}

// A worker on one connection: repeatedly leases, calls `took` with the reply, and acks.
class worker_loop {
 public:
  using took_jobs = std::function<void(std::string_view body)>;
  using acked_jobs = std::function<void(std::size_t count)>;

  worker_loop(http_crowd& crowd, std::size_t bulk, took_jobs took, acked_jobs acked)
      : crowd_(crowd),
        bulk_(bulk),
        request_(lease_body(bulk)),
        took_(std::move(took)),
        acked_(std::move(acked)),
        on_(crowd.connect([this](connection&, const http_answer& answer) { answered(answer); })) {
    crowd_.post(on_, "/v1/leases", request_);
  }
  worker_loop(const worker_loop&) = delete;
  worker_loop& operator=(const worker_loop&) = delete;

 private:
  void answered(const http_answer& answer) {
    expect_success(answer, leased_ == 0 ? "a lease" : "an ack");
    if (leased_ > 0) {
      acked_(std::exchange(leased_, 0));
      crowd_.post(on_, "/v1/leases", request_);
    } else if (answer.status == 204) {
      crowd_.post(on_, "/v1/leases", request_);
    } else {
      ack(answer.body);
    }
  }

  void ack(std::string_view body) {
    took_(body);
    const auto ids = numbers_after(body, "id");
    const auto leases = numbers_after(body, "lease");
    expect_equal(leases.size(), ids.size(), "leases of as many jobs");
    leased_ = ids.size();
    if (bulk_ == 1) {
      crowd_.post(on_, "/v1/jobs/" + std::to_string(ids[0]) + "/ack",
                  R"({"lease":)" + std::to_string(leases[0]) + "}");
      return;
    }
    std::string acks = R"({"acks":[)";
    for (std::size_t i = 0; i < ids.size(); ++i) {
      acks += (i == 0 ? R"({"id":)" : R"(,{"id":)") + std::to_string(ids[i]) + R"(,"lease":)" +
              std::to_string(leases[i]) + "}";
    }
    crowd_.post(on_, "/v1/acks", acks + "]}");
  }

  http_crowd& crowd_;
  std::size_t bulk_;
  std::string request_;
  took_jobs took_;
  acked_jobs acked_;
  std::size_t leased_ = 0;
  connection& on_;
};

}  // namespace

std::string job_json(std::uint64_t mark) {
  std::string args = R"({"mark":)" + std::to_string(mark) + R"(,"pad":")";
  args.append(args_bytes - args.size() - 2, 'x');
  return R"({"kind":"bench","args":)" + args + R"("}})";
}

std::string push_body(std::size_t count) {
  if (count == 1) return job_json(0);
  std::string body = "[";
  for (std::size_t i = 0; i < count; ++i) body += (i == 0 ? "" : ",") + job_json(i);
  return body + "]";
}

served push_for(server_process& server, seconds duration, std::size_t bulk) {
  http_crowd crowd(server.port());
  const std::string body = push_body(bulk);
  std::uint64_t pushed = 0;
  int unanswered = 0;
  const double cpu_before = server.cpu_us();
  const auto began = clock::now();
  const auto ends = began + std::chrono::duration_cast<clock::duration>(duration);
  for (int i = 0; i < pushers; ++i) {
    auto& c = crowd.connect([&](connection& on, const http_answer& answer) {
      expect_success(answer, "a push");
      pushed += bulk;
      --unanswered;
      if (clock::now() >= ends) return;
      ++unanswered;
      crowd.post(on, "/v1/jobs", body);
    });
    ++unanswered;
    crowd.post(c, "/v1/jobs", body);
  }
  crowd.run([&] { return unanswered == 0; });
  const served result{pushed, clock::now() - began, server.cpu_us() - cpu_before};
  expect_waiting(server, pushed);
  return result;
}

void push_backlog(server_process& server, std::uint64_t count) {
  constexpr std::size_t bulk = 1000;
  http_crowd crowd(server.port());
  const std::string body = push_body(bulk);
  std::uint64_t asked = 0;
  int unanswered = 0;
  const auto push_next = [&](connection& on) {
    if (asked >= count) return;
    asked += bulk;
    ++unanswered;
    crowd.post(on, "/v1/jobs", body);
  };
  for (int i = 0; i < pushers; ++i) {
    push_next(crowd.connect([&](connection& on, const http_answer& answer) {
      expect_success(answer, "a push");
      --unanswered;
      push_next(on);
    }));
  }
  crowd.run([&] { return unanswered == 0; });
  expect_waiting(server, asked);
}

served work_for(server_process& server, seconds duration, std::size_t bulk) {
  const std::uint64_t ahead_max = 200 * bulk;
  http_crowd crowd(server.port());
  const std::string body = push_body(bulk);
  std::uint64_t asked = 0;
  std::uint64_t acked = 0;
  int unanswered = 0;
  std::deque<connection*> waiting_pushers;
  const double cpu_before = server.cpu_us();
  const auto began = clock::now();
  const auto ends = began + std::chrono::duration_cast<clock::duration>(duration);
  const auto push_or_wait = [&](connection& on) {
    if (clock::now() >= ends) return;
    if (asked - acked >= ahead_max) {
      waiting_pushers.push_back(&on);
      return;
    }
    asked += bulk;
    ++unanswered;
    crowd.post(on, "/v1/jobs", body);
  };

  std::deque<worker_loop> crew;
  for (int i = 0; i < workers; ++i) {
    crew.emplace_back(
        crowd, bulk, [](std::string_view) {},
        [&](std::size_t count) {
          acked += count;
          if (waiting_pushers.empty()) return;
          connection& on = *waiting_pushers.front();
          waiting_pushers.pop_front();
          push_or_wait(on);
        });
  }
  for (int i = 0; i < pushers; ++i) {
    push_or_wait(crowd.connect([&](connection& on, const http_answer& answer) {
      expect_success(answer, "a push");
      --unanswered;
      push_or_wait(on);
    }));
  }
  crowd.wake_at(ends);
  crowd.run([&] {
    if (clock::now() < ends) return false;
    crowd.wake_at(clock::time_point::max());
    return unanswered == 0 && acked >= asked;
  });
  expect_equal(acked, asked, "jobs that were acked");
  return {acked, clock::now() - began, server.cpu_us() - cpu_before};
}

void work_off(server_process& server, std::uint64_t count) {
  http_crowd crowd(server.port());
  std::uint64_t acked = 0;
  std::deque<worker_loop> crew;
  for (int i = 0; i < workers; ++i) {
    crew.emplace_back(
        crowd, 100, [](std::string_view) {}, [&](std::size_t ended) { acked += ended; });
  }
  crowd.run([&] { return acked >= count; });
}

std::vector<double> latencies_at(server_process& server, double rate, seconds duration) {
  const auto total = static_cast<std::uint64_t>(rate * duration.count());
  const auto gap = std::chrono::duration_cast<clock::duration>(seconds(1 / rate));
  http_crowd crowd(server.port());
  std::vector<double> found;
  found.reserve(total);
  std::uint64_t acked = 0;

  std::deque<worker_loop> crew;
  for (int i = 0; i < workers; ++i) {
    crew.emplace_back(
        crowd, 1,
        [&](std::string_view body) {
          const std::uint64_t now = now_ns();
          for (const std::uint64_t due : numbers_after(body, "mark")) {
            found.push_back(static_cast<double>(now - due) / 1e3);
          }
        },
        [&](std::size_t count) { acked += count; });
  }
  // More connections than in other workloads: a push that waits for its commit must not delay the
  // next one, as the requests of a web application do not delay each other.
  std::deque<connection*> free;
  for (int i = 0; i < 64; ++i) {
    free.push_back(&crowd.connect([&](connection& on, const http_answer& answer) {
      expect_success(answer, "a push");
      free.push_back(&on);
    }));
  }
  std::uint64_t asked = 0;
  auto due = clock::now() + std::chrono::milliseconds(50);  // until all workers wait
  crowd.wake_at(due);
  crowd.run([&] {
    while (asked < total && clock::now() >= due && !free.empty()) {
      connection& on = *free.front();
      free.pop_front();
      const auto mark = static_cast<std::uint64_t>(due.time_since_epoch().count());
      crowd.post(on, "/v1/jobs", job_json(mark));
      ++asked;
      due += gap;
    }
    crowd.wake_at(asked < total && !free.empty() ? due : clock::time_point::max());
    return acked == total;
  });
  expect_equal(found.size(), total, "jobs that reached a worker");
  std::ranges::sort(found);
  return found;
}

}  // namespace sluice::bench
