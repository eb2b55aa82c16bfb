#include "benchmarks/faktory/faktory_dialect.hpp"

#include <charconv>

#include "benchmarks/harness.hpp"

namespace sluice::bench {
namespace {

// Returns the text between `before` and the next quotation mark.
std::string_view quoted_after(std::string_view text, std::string_view before) {
  const std::size_t at = text.find(before);
  if (at == std::string_view::npos) fail("the server sent a job without " + std::string(before));
  const std::string_view rest = text.substr(at + before.size());
  return rest.substr(0, rest.find('"'));
}

// One reply: a line, or a bulk with its line.
struct answer {
  std::size_t whole = 0;  // bytes; 0: the reply is incomplete
  bool is_bulk = false;
  std::string_view text;  // of the line, without its sign; of the bulk, empty for the null bulk
};

answer first_answer(std::string_view in) {
  const std::size_t end = in.find('\n');
  if (end == std::string_view::npos) return {};
  const std::string_view line = in.substr(0, end - 1);
  if (line.starts_with('+')) return {end + 1, false, line.substr(1)};
  int size = 0;
  const auto [last, error] = std::from_chars(line.data() + 1, line.data() + line.size(), size);
  if (!line.starts_with('$') || error != std::errc{}) {
    fail("unexpected reply: " + std::string(line));
  }
  if (size < 0) return {end + 1, true, {}};
  const std::size_t whole = end + 1 + static_cast<std::size_t>(size) + crlf.size();
  if (in.size() < whole) return {};
  return {whole, true, in.substr(end + 1, static_cast<std::size_t>(size))};
}

class faktory_producer final : public job_producer {
 public:
  explicit faktory_producer(std::size_t jobs_a_put) : jobs_a_put_(jobs_a_put) {}

  void put(std::string& out, std::uint64_t first) override {
    if (jobs_a_put_ == 1) {
      out.append("PUSH ");
      append_job(out, first);
    } else {
      out.append("PUSHB ");
      for (std::size_t i = 0; i < jobs_a_put_; ++i) {
        out.append(i == 0 ? "[" : ",");
        append_job(out, first + i);
      }
      out.append("]");
    }
    out.append(crlf);
  }

  std::size_t consume(std::string_view in, std::uint64_t& answered) override {
    const std::string_view success = jobs_a_put_ == 1 ? "OK" : "{}";
    std::size_t used = 0;
    for (;;) {
      const answer a = first_answer(in.substr(used));
      if (a.whole == 0) return used;
      if (a.text != success) fail("a push was answered " + std::string(a.text.substr(0, 200)));
      used += a.whole;
      ++answered;
    }
  }

 private:
  static void append_job(std::string& out, std::uint64_t number) {
    out.append(R"({"jid":"bench-)").append(std::to_string(number + 1'000'000'000));
    out.append(R"(","jobtype":"bench","queue":"default","args":[")");
    append_body(out, number);
    out.append(R"("]})");
  }

  std::size_t jobs_a_put_;
};

class faktory_worker final : public job_worker {
 public:
  explicit faktory_worker(std::size_t depth) : depth_(depth) {}

  void start(std::string& out, work_log& log) override {
    for (std::size_t i = 0; i < depth_; ++i) fetch_next(out, log);
  }

  std::size_t consume(std::string_view in, std::string& out, work_log& log) override {
    std::size_t used = 0;
    for (;;) {
      const answer a = first_answer(in.substr(used));
      if (a.whole == 0) return used;
      used += a.whole;
      if (!a.is_bulk) {
        if (a.text != "OK") fail("an ACK was answered " + std::string(a.text));
        ++log.finished;
        fetch_next(out, log);
      } else if (a.text.empty()) {
        out.append(fetch);  // no job for two seconds
      } else {
        log.started(quoted_after(a.text, R"("args":[")"));
        out.append(R"(ACK {"jid":")").append(quoted_after(a.text, R"("jid":")")).append("\"}\r\n");
      }
    }
  }

 private:
  static constexpr std::string_view fetch = "FETCH default\r\n";

  static void fetch_next(std::string& out, work_log& log) {
    if (log.unclaimed == 0) return;
    --log.unclaimed;
    out.append(fetch);
  }

  std::size_t depth_;
};

}  // namespace

opening faktory_dialect::producer_opening() const {
  return {"HELLO {\"v\":2}\r\n", 2};  // replies: HI and OK
}

opening faktory_dialect::worker_opening() const {
  static int made = 0;
  return {R"(HELLO {"v":2,"hostname":"bench","pid":1,"labels":["bench"],"wid":"bench-worker-)" +
              std::to_string(++made) + "\"}\r\n",
          2};
}

std::unique_ptr<job_producer> faktory_dialect::producer() const {
  return std::make_unique<faktory_producer>(jobs_a_put_);
}

std::unique_ptr<job_worker> faktory_dialect::worker(std::size_t depth) const {
  return std::make_unique<faktory_worker>(depth);
}

}  // namespace sluice::bench
