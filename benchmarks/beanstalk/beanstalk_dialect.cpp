#include "benchmarks/beanstalk/beanstalk_dialect.hpp"

#include "benchmarks/harness.hpp"

namespace sluice::bench {
namespace {

// The TTR of a minute is longer than a run, so no job expires.
const std::string put_line = "put 1000 0 60 " + std::to_string(body_bytes) + "\r\n";

[[noreturn]] void fail_at(std::string_view line) {
  fail("unexpected reply: " + std::string(line.substr(0, 80)));
}

class beanstalk_producer final : public job_producer {
 public:
  void put(std::string& out, std::uint64_t first) override {
    out.append(put_line);
    append_body(out, first);
    out.append(crlf);
  }

  std::size_t consume(std::string_view in, std::uint64_t& answered) override {
    std::size_t used = 0;
    for (;;) {
      const std::size_t end = in.find('\n', used);
      if (end == std::string_view::npos) return used;
      if (!in.substr(used).starts_with("INSERTED ")) fail_at(in.substr(used, end - used));
      used = end + 1;
      ++answered;
    }
  }
};

class beanstalk_worker final : public job_worker {
 public:
  explicit beanstalk_worker(std::size_t depth) : depth_(depth) {}

  void start(std::string& out, work_log& log) override {
    for (std::size_t i = 0; i < depth_; ++i) reserve(out, log);
  }

  std::size_t consume(std::string_view in, std::string& out, work_log& log) override {
    std::size_t used = 0;
    for (;;) {
      const std::string_view rest = in.substr(used);
      const std::size_t end = rest.find('\n');
      if (end == std::string_view::npos) return used;
      if (rest.starts_with("DELETED")) {
        ++log.finished;
        reserve(out, log);
        used += end + 1;
      } else {
        const std::size_t whole = end + 1 + body_bytes + crlf.size();
        if (!rest.starts_with("RESERVED ")) fail_at(rest.substr(0, end));
        if (rest.size() < whole) return used;
        log.started(rest.substr(end + 1, body_bytes));
        const std::string_view numbers = rest.substr(9, end - 9);
        out.append("delete ").append(numbers.substr(0, numbers.find(' '))).append(crlf);
        used += whole;
      }
    }
  }

 private:
  static void reserve(std::string& out, work_log& log) {
    if (log.unclaimed == 0) return;
    --log.unclaimed;
    out.append("reserve\r\n");
  }

  std::size_t depth_;
};

}  // namespace

std::unique_ptr<job_producer> beanstalk_dialect::producer() const {
  return std::make_unique<beanstalk_producer>();
}

std::unique_ptr<job_worker> beanstalk_dialect::worker(std::size_t depth) const {
  return std::make_unique<beanstalk_worker>(depth);
}

}  // namespace sluice::bench
