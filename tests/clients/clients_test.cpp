// Client libraries from npm against this server, each in a typical program of a user: the scripts
// in this folder. beanstalkd itself passes the scripts of its clients.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "jobs/cli/testing/program.hpp"
#include "jobs/client/client.hpp"
#include "sluice/base/testing/eventually.hpp"

namespace sluice::jobs::clients_test {
namespace {

using cli::testing::ended;
using cli::testing::make_file;
using cli::testing::program;
using cli::testing::server_program;
using cli::testing::temporary_folder;
using sluice::testing::eventually;

// Runs `node SCRIPT PORT MORE...` with the installed libraries.
class script : public program {
 public:
  script(const std::string& name, std::uint16_t port, const std::vector<std::string>& more = {})
      : program(words_for(name, port, more),
                {.called = SLUICE_NODE,
                 .environment = {"NODE_PATH=" SLUICE_NODE_MODULES, "NODE_NO_WARNINGS=1"}}) {}

  void wait_for(const std::string& line) {
    eventually([&] { return out().find(line + "\n") != std::string::npos || has_ended(); },
               line.c_str());
    EXPECT_NE(out().find(line + "\n"), std::string::npos) << out() << err();
  }

 private:
  static std::vector<std::string> words_for(const std::string& name, std::uint16_t port,
                                            const std::vector<std::string>& more) {
    std::vector<std::string> words = {SLUICE_CLIENT_SCRIPTS "/" + name, std::to_string(port)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

void expect_success(script& s) {
  const ended end = s.wait();
  EXPECT_EQ(end.code, 0) << end.out << end.err;
  std::printf("%s", end.out.c_str());
}

TEST(Clients, JackdPutsReservesAndEverythingElse) {
  const temporary_folder folder;
  server_program server(folder, {"--beanstalk", ":0"});
  script jackd("jackd.js", server.port_for("beanstalk"));
  expect_success(jackd);
  EXPECT_EQ(server.stop().code, 0);
}

TEST(Clients, FivebeansPutsReservesAndWorks) {
  const temporary_folder folder;
  server_program server(folder, {"--beanstalk", ":0"});
  script fivebeans("fivebeans.js", server.port_for("beanstalk"));
  expect_success(fivebeans);
  EXPECT_EQ(server.stop().code, 0);
}

TEST(Clients, FaktoryWorkersClientPushesFetchesAndMutates) {
  const temporary_folder folder;
  server_program server(folder, {"--faktory", ":0"});
  script client("faktory_client.js", server.port_for("faktory"));
  expect_success(client);
  EXPECT_EQ(server.stop().code, 0);
}

TEST(Clients, FaktoryWorkersClientKnowsAPassword) {
  const temporary_folder folder;
  const std::string password = make_file(folder, "password", "open sesame");
  ASSERT_EQ(::chmod(password.c_str(), 0600), 0);
  server_program server(folder, {"--faktory", ":0", "--faktory-password-file", password});
  script client("faktory_client.js", server.port_for("faktory"), {"open sesame"});
  expect_success(client);
  EXPECT_EQ(server.stop().code, 0);
}

TEST(Clients, FaktoryWorkerDoesJobs) {
  const temporary_folder folder;
  server_program server(folder, {"--faktory", ":0"});
  script worker("faktory_worker.js", server.port_for("faktory"), {"work"});
  expect_success(worker);
  EXPECT_EQ(server.stop().code, 0);
}

// The worker finishes its job, and the server waits for it.
TEST(Clients, FaktoryWorkerEndsWhenTheServerShutsDown) {
  const temporary_folder folder;
  server_program server(folder, {"--faktory", ":0"});
  script worker("faktory_worker.js", server.port_for("faktory"), {"terminate"});
  worker.wait_for("working");
  server.itself().signal(SIGTERM);
  worker.wait_for("terminate");
  expect_success(worker);
  const ended end = server.itself().wait();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(end.err.find("did not finish"), std::string::npos) << end.err;
}

TEST(Clients, FaktoryWorkerBecomesQuietAndEndsOnRequest) {
  const temporary_folder folder;
  server_program server(folder, {"--faktory", ":0"});
  client http = client::open({.url = server.url()}).value();
  script worker("faktory_worker.js", server.port_for("faktory"), {"quiet"});
  worker.wait_for("working");
  const auto before = http.faktory_workers();
  ASSERT_TRUE(before) << before.error().message;
  ASSERT_EQ(before->workers.size(), 1U);
  const std::string wid = before->workers[0].wid;
  EXPECT_EQ(before->workers[0].running, 1U);
  EXPECT_EQ(before->workers[0].pid, worker.pid());
  EXPECT_FALSE(before->workers[0].hostname.empty());

  const auto quiet = http.set_faktory_worker_state(wid, worker_state::quiet);
  ASSERT_TRUE(quiet) << quiet.error().message;
  worker.wait_for("quiet");
  worker.wait_for("fetches no more");
  const auto pushed = http.push({.kind = "quick", .args = {"[]"}});
  ASSERT_TRUE(pushed) << pushed.error().message;
  EXPECT_EQ(http.faktory_workers()->workers.at(0).running, 1U) << "the running job continues";

  ASSERT_TRUE(http.set_faktory_worker_state(wid, worker_state::terminate));
  worker.wait_for("terminate");
  const ended end = worker.wait();
  EXPECT_EQ(end.code, 0) << end.out << end.err;
  EXPECT_EQ(end.out.find("quick\n"), std::string::npos) << "a job was fetched after quiet";
  eventually([&] { return http.faktory_workers()->workers.empty(); }, "the worker to be gone");
  EXPECT_EQ(http.get(pushed->id)->state, job_state::ready);
  EXPECT_EQ(http.stats()->acked, 1U) << "the running job was acked";
  EXPECT_EQ(server.stop().code, 0);
}

}  // namespace
}  // namespace sluice::jobs::clients_test
