// Export and import of jobs.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "jobs/cli/testing/expect_has.hpp"
#include "jobs/cli/testing/program.hpp"

namespace sluice::jobs::cli::transfer_test {
namespace {

using testing::ended;
using testing::make_file;
using testing::server_program;
using testing::temporary_folder;
using testing::text_of;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

class Transfer : public ::testing::Test {
 protected:
  void push(std::vector<std::string> words) {
    words.insert(words.begin(), "push");
    const ended pushed = server_.run(words);
    EXPECT_EQ(pushed.code, 0) << pushed.err;
  }
  std::string exported(std::vector<std::string> words = {}) {
    words.insert(words.begin(), "export");
    const ended out = server_.run(words);
    EXPECT_EQ(out.code, 0) << out.err;
    return out.out;
  }

  temporary_folder folder_;
  temporary_folder other_folder_;
  server_program server_{folder_};
  server_program other_{other_folder_};
};

TEST_F(Transfer, ProducesTheSameSpecsOnTheOtherServer) {
  push({"plain"});
  push({"args", R"({"exact": 1.10, "large": 12345678901234567890})"});
  push({"bytes", "not json", "--bytes", "--queue", "mail"});
  push({"all",
        "[1]",
        "--queue",
        "mail",
        "--priority",
        "-3",
        "--unique",
        "u",
        "--unique-until",
        "elapsed",
        "--unique-for",
        "1h",
        "--attempts",
        "7",
        "--retry-first",
        "2s",
        "--retry-factor",
        "1.5",
        "--retry-longest",
        "1h",
        "--retry-jitter",
        "0.25",
        "--lease-for",
        "5s",
        "--time-limit",
        "1m",
        "--keep-for",
        "3d",
        "--metadata",
        R"({"a":"b"})"});
  push({"later", "--at", "2100-01-31T12:00:00Z"});
  const std::string first = exported();
  EXPECT_EQ(lines_in(first), 5U);
  const ended in = other_.run({"import", "-"}, {.input = first});
  EXPECT_EQ(in.code, 0) << in.err;
  EXPECT_EQ(in.out, "5 jobs pushed\n");
  const ended again = other_.run({"export"});
  EXPECT_EQ(again.out, first);
}

TEST_F(Transfer, ExportsTheSelectedJobsInOrder) {
  for (int i = 0; i < 300; ++i) push({"a", std::to_string(i), "--queue", i % 2 == 0 ? "x" : "y"});
  push({"a", "--queue", "x", "--delay", "1h"});
  const std::string only_x = exported({"--queue", "x", "--state", "ready"});
  EXPECT_EQ(lines_in(only_x), 150U);
  EXPECT_LT(only_x.find(R"("args":100)"), only_x.find(R"("args":200)"));
  EXPECT_EQ(lines_in(exported({"--state", "ready,scheduled"})), 301U);
  EXPECT_EQ(lines_in(exported({"--state", "dead"})), 0U);
  const std::string file = folder_.file("jobs.ndjson");
  const ended written = server_.run({"export", "--to", file, "--json"});
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(written.out, "{\"exported\":301,\"detached\":0,\"left_out\":0}\n");
  EXPECT_EQ(lines_in(text_of(file)), 301U);
  EXPECT_EQ(text_of(file + ".partial"), "");
}

TEST_F(Transfer, OmitsJobsThatWaitForOthersUnlessDetached) {
  push({"first", "--key", "k"});
  push({"second", "--key", "k"});  // held as well, but only by its key
  push({"third", "--after", "1"});
  const ended out = server_.run({"export"});
  EXPECT_EQ(lines_in(out.out), 2U) << out.out;
  EXPECT_HAS(out.err, "1 job waits for others and is omitted");
  const std::string detached = exported({"--detach"});
  EXPECT_EQ(lines_in(detached), 3U);
  EXPECT_HAS(detached, "third");
  EXPECT_FALSE(has(detached, "after"));
}

TEST_F(Transfer, StopsAtTheFirstRefusedLineAndContinuesFromThere) {
  std::string lines;
  for (int i = 1; i <= 2500; ++i) {
    lines += i == 1500 ? R"({"kind":""})" : R"({"kind":"k","args":)" + std::to_string(i) + "}";
    lines += "\n";
  }
  const std::string file = make_file(folder_, "jobs.ndjson", lines);
  const ended stopped = server_.run({"import", file});
  EXPECT_EQ(stopped.code, 2);
  EXPECT_EQ(stopped.out, "1,499 jobs pushed\n");
  EXPECT_HAS(stopped.err, "line 1500: ");
  EXPECT_HAS(stopped.err, "stopped at line 1500: continue with --from-line 1500");
  const ended on = server_.run({"import", file, "--from-line", "1501", "--json"});
  EXPECT_EQ(on.code, 0) << on.err;
  EXPECT_EQ(on.out,
            "{\"pushed\":1000,\"duplicates\":0,\"dropped\":0,\"refused\":0,\"lines\":2500}\n");
  EXPECT_EQ(lines_in(exported()), 2499U);
}

TEST_F(Transfer, StopsExactlyWhereAQueueIsFull) {
  EXPECT_EQ(server_.run({"queues", "set", "small", "--capacity", "3"}).code, 0);
  std::string lines;
  for (int i = 1; i <= 10; ++i)
    lines += R"({"kind":"k","queue":"small"})"
             "\n";
  const ended stopped = server_.run({"import", "-"}, {.input = lines});
  EXPECT_EQ(stopped.code, 4) << stopped.err;
  EXPECT_EQ(stopped.out, "3 jobs pushed\n");
  EXPECT_HAS(stopped.err, "continue with --from-line 4");
}

TEST_F(Transfer, SkipsRefusedLinesAndReportsThem) {
  const std::string lines =
      "{\"kind\":\"a\"}\n"
      "no json\n"
      "{\"kind\":\"b\",\"unique\":{\"key\":\"u\"}}\n"
      "{\"kind\":\"b\",\"unique\":{\"key\":\"u\"}}\n"
      "{\"kind\":\"c\"}\n";
  const std::string report = folder_.file("refused.ndjson");
  const ended in = server_.run({"import", "-", "--on-refused", "continue", "--report", report},
                               {.input = lines});
  EXPECT_EQ(in.code, 2);
  EXPECT_EQ(in.out, "3 jobs pushed, 1 duplicate, 1 refused\n");
  const std::string refused_lines = text_of(report);
  EXPECT_EQ(lines_in(refused_lines), 1U);
  EXPECT_HAS(refused_lines, R"("line":2)");
  EXPECT_HAS(refused_lines, R"("code":"invalid")");
  EXPECT_HAS(refused_lines, R"("text":"no json")");
}

TEST_F(Transfer, MovesJobsToAnotherQueue) {
  const ended in = server_.run({"import", "-", "--queue", "elsewhere"},
                               {.input = "{\"kind\":\"a\",\"queue\":\"here\"}\n"});
  EXPECT_EQ(in.code, 0) << in.err;
  EXPECT_HAS(exported({"--queue", "elsewhere"}), R"("kind":"a")");
  EXPECT_EQ(exported({"--queue", "here"}), "");
}

TEST_F(Transfer, ReportsMissingAndInvalidInput) {
  EXPECT_EQ(server_.run({"import", folder_.file("none")}).code, 3);
  EXPECT_EQ(server_.run({"export", "--to", folder_.file("no/such/folder")}).code, 3);
  const ended wrong = server_.run({"import", "-", "--on-refused", "shrug"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_HAS(wrong.err, "stop|continue");
  EXPECT_EQ(server_.run({"export", "--url", "http://127.0.0.1:1"}).code, 5);
}

}  // namespace
}  // namespace sluice::jobs::cli::transfer_test
