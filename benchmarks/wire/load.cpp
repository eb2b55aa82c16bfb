#include "benchmarks/wire/load.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "benchmarks/wire/crowd.hpp"

namespace sluice::bench {
namespace {

using clock = crowd::clock;
using connection = crowd::connection;

constexpr std::size_t number_digits = 12;

// Consumes the lines of `in` that an opening waits for. Returns their bytes.
std::size_t take_lines(std::string_view in, std::size_t& left) {
  std::size_t used = 0;
  while (left > 0) {
    const std::size_t end = in.find('\n', used);
    if (end == std::string_view::npos) break;
    if (in[used] == '-') fail("unexpected reply: " + std::string(in.substr(used, end - used)));
    used = end + 1;
    --left;
  }
  return used;
}

// Checks that each job reaches a worker only once.
class arrivals {
 public:
  explicit arrivals(std::uint64_t jobs) : seen_(jobs, 0) {}

  std::uint64_t add(std::string_view body) {
    const std::uint64_t number = number_of_body(body);
    if (number >= seen_.size() || seen_[number]++ != 0) {
      fail("a worker got a job that was never put, or a job twice: " + std::string(body));
    }
    return number;
  }

 private:
  std::vector<unsigned char> seen_;
};

class load {
 public:
  load(std::uint16_t port, const dialect& protocol, const load_plan& plan)
      : protocol_(protocol), plan_(plan), crowd_(port), arrived_(plan.jobs) {
    if (plan.jobs % protocol.jobs_a_put() != 0) fail("the last put would be incomplete");
    log_.unclaimed = plan.workers > 0 ? plan.jobs : 0;
    log_.started = [this](std::string_view body) {
      const std::uint64_t number = arrived_.add(body);
      if (!sent_.empty()) found_.to_start_us.push_back(us_since(sent_[number]));
    };
    open();
  }

  tally run() {
    start_workers();
    const auto began = clock::now();
    for (producing& p : producers_) {
      for (std::size_t i = 0; i < plan_.depth; ++i) put_next(p);
      crowd_.flush(*p.on);
    }
    crowd_.run([this] { return is_done(); });
    return {plan_.jobs, clock::now() - began};
  }

  latencies run_paced(double jobs_per_second) {
    const auto gap = std::chrono::duration_cast<clock::duration>(seconds(1 / jobs_per_second));
    sent_.resize(plan_.jobs);
    start_workers();
    auto due = clock::now() + std::chrono::milliseconds(50);  // until all workers wait
    crowd_.wake_at(due);
    crowd_.run([&] {
      while (next_ < plan_.jobs && clock::now() >= due) {
        producing& p = producers_[next_ % producers_.size()];
        put_next(p);
        crowd_.flush(*p.on);
        due += gap;
      }
      crowd_.wake_at(next_ < plan_.jobs ? due : clock::time_point::max());
      return is_done();
    });
    std::ranges::sort(found_.to_answer_us);
    std::ranges::sort(found_.to_start_us);
    return std::move(found_);
  }

 private:
  struct producing {
    std::unique_ptr<job_producer> protocol;
    connection* on = nullptr;
    std::deque<std::uint64_t> unanswered = {};  // the first job of each put, for paced runs
  };

  static double us_since(clock::time_point then) {
    return std::chrono::duration<double, std::micro>(clock::now() - then).count();
  }

  // Connects, sends the opening, and waits for its reply.
  connection& open(const opening& first, crowd::on_bytes then) {
    auto lines = std::make_shared<std::size_t>(first.lines);
    connection& on =
        crowd_.connect([lines, then = std::move(then)](connection& from, std::string_view in) {
          const std::size_t used = *lines > 0 ? take_lines(in, *lines) : 0;
          return *lines > 0 || used == in.size() ? used : used + then(from, in.substr(used));
        });
    on.out() = first.text;
    crowd_.flush(on);
    crowd_.run([&] { return *lines == 0; });
    return on;
  }

  void open() {
    if (const opening once = protocol_.once(); !once.text.empty()) {
      open(once, [](connection&, std::string_view in) { return in.size(); });
    }
    for (std::size_t i = 0; i < plan_.producers; ++i) {
      producing& p = producers_.emplace_back(producing{protocol_.producer()});
      p.on = &open(protocol_.producer_opening(),
                   [this, &p](connection&, std::string_view in) { return consume(p, in); });
    }
    for (std::size_t i = 0; i < plan_.workers; ++i) {
      job_worker& w = *workers_.emplace_back(protocol_.worker(plan_.depth));
      worker_connections_.push_back(
          &open(protocol_.worker_opening(), [this, &w](connection& on, std::string_view in) {
            return w.consume(in, on.out(), log_);
          }));
    }
  }

  void start_workers() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      workers_[i]->start(worker_connections_[i]->out(), log_);
      crowd_.flush(*worker_connections_[i]);
    }
  }

  void put_next(producing& p) {
    if (next_ == plan_.jobs) return;
    p.protocol->put(p.on->out(), next_);
    if (!sent_.empty()) {
      p.unanswered.push_back(next_);
      const auto now = clock::now();
      std::fill_n(sent_.begin() + static_cast<std::ptrdiff_t>(next_), protocol_.jobs_a_put(), now);
    }
    next_ += protocol_.jobs_a_put();
  }

  std::size_t consume(producing& p, std::string_view in) {
    std::uint64_t answered = 0;
    const std::size_t used = p.protocol->consume(in, answered);
    stored_ += answered * protocol_.jobs_a_put();
    for (; answered > 0; --answered) {
      if (sent_.empty()) {
        put_next(p);
      } else {
        found_.to_answer_us.push_back(us_since(sent_[p.unanswered.front()]));
        p.unanswered.pop_front();
      }
    }
    return used;
  }

  bool is_done() const {
    return (plan_.producers == 0 || stored_ == plan_.jobs) &&
           (plan_.workers == 0 || log_.finished == plan_.jobs);
  }

  const dialect& protocol_;
  load_plan plan_;
  crowd crowd_;
  arrivals arrived_;
  work_log log_;
  std::deque<producing> producers_;  // a deque: handlers refer to its elements
  std::vector<std::unique_ptr<job_worker>> workers_;
  std::vector<connection*> worker_connections_;
  std::uint64_t next_ = 0;               // the first job that was not put yet
  std::uint64_t stored_ = 0;             // acknowledged puts, in jobs
  std::vector<clock::time_point> sent_;  // of each job; empty unless the run is paced
  latencies found_;
};

}  // namespace

void append_body(std::string& out, std::uint64_t number) {
  static const std::string blank =
      std::string(number_digits, '0') + std::string(body_bytes - number_digits, 'x');
  const std::size_t at = out.size();
  out.append(blank);
  for (char* digit = out.data() + at + number_digits; number > 0; number /= 10) {
    *--digit = static_cast<char>('0' + number % 10);
  }
}

std::uint64_t number_of_body(std::string_view body) {
  if (body.size() != body_bytes) fail("a body came back changed: " + std::string(body));
  std::uint64_t number = 0;
  for (const char digit : body.substr(0, number_digits)) {
    if (digit < '0' || digit > '9') fail("a body came back changed: " + std::string(body));
    number = 10 * number + static_cast<std::uint64_t>(digit - '0');
  }
  return number;
}

tally run_load(std::uint16_t port, const dialect& protocol, const load_plan& plan) {
  return load(port, protocol, plan).run();
}

std::uint64_t run_size::jobs(const settings& s, const dialect& protocol) const {
  constexpr double in_seconds = 1.5;
  constexpr double at_first = 4000;
  const double wanted = jobs_per_second_ == 0 ? at_first : jobs_per_second_ * in_seconds;
  const auto jobs = static_cast<std::uint64_t>(std::clamp(wanted, 1000.0, 1e6));
  const std::uint64_t full = protocol.jobs_a_put();
  return ((s.quick ? 400 : jobs) + full - 1) / full * full;
}

void run_size::learn(const tally& done) {
  jobs_per_second_ = static_cast<double>(done.operations) / done.took.count();
}

latencies run_paced(std::uint16_t port, const dialect& protocol, const load_plan& plan,
                    double jobs_per_second) {
  return load(port, protocol, plan).run_paced(jobs_per_second);
}

}  // namespace sluice::bench
