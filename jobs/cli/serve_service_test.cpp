// The installed files for systemd: units and a sample configuration.
#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>
#include <string>

#include "jobs/cli/testing/program.hpp"

namespace sluice::jobs::cli::serve_service_test {
namespace {

using testing::ended;
using testing::make_file;
using testing::run_sluice;
using testing::temporary_folder;
using testing::text_of;

const std::string packaging = SLUICE_SOURCE_DIR "/packaging/";

// Runs a shell command and returns its output and errors.
std::string output_of(const std::string& command, int& code) {
  std::FILE* const out = ::popen((command + " 2>&1").c_str(), "r");
  EXPECT_NE(out, nullptr);
  std::string text;
  for (int c = std::fgetc(out); c != EOF; c = std::fgetc(out)) text += static_cast<char>(c);
  code = ::pclose(out);
  return text;
}

TEST(ServeService, HasUnitsThatSystemdAccepts) {
  int code = 0;
  output_of("systemd-analyze --version", code);
  if (code != 0) GTEST_SKIP() << "systemd-analyze is not installed";
  const temporary_folder folder;
  std::string unit = text_of(packaging + "sluice.service");
  const std::string installed = "/usr/bin/sluice";
  ASSERT_NE(unit.find(installed), std::string::npos);
  unit.replace(unit.find(installed), installed.size(), SLUICE_PROGRAM);
  std::string files = make_file(folder, "sluice.service", unit);
  for (const std::string name :
       {"sluice.socket", "sluice-beanstalk.socket", "sluice-faktory.socket"}) {
    files += " " + make_file(folder, name, text_of(packaging + name));
  }
  const std::string output = output_of("systemd-analyze verify --man=no " + files, code);
  EXPECT_EQ(code, 0) << output;
  // Unknown settings are warnings only.
  EXPECT_EQ(output.find("sluice"), std::string::npos) << output;
}

TEST(ServeService, HasAValidConfigurationAlsoWithItsCommentedSettings) {
  const ended as_it_is =
      run_sluice({"serve", "--check-config", "--config", packaging + "sluice.toml"});
  EXPECT_EQ(as_it_is.code, 0) << as_it_is.err;
  EXPECT_NE(as_it_is.out.find("sluice.toml:"), std::string::npos) << as_it_is.out;

  // Uncomments every table, without its text; the secret files do not exist here.
  const temporary_folder folder;
  std::istringstream lines(text_of(packaging + "sluice.toml"));
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    const bool is_suggested = line.starts_with("# ") &&
                              (line.starts_with("# [") || line.find(" = ") != std::string::npos);
    all += (is_suggested ? line.substr(2) : line) + "\n";
  }
  for (const std::string secret : {"secret_file = \"/etc/sluice/delivery.secret\"",
                                   "password_file = \"/etc/sluice/faktory.password\""}) {
    ASSERT_NE(all.find(secret), std::string::npos) << secret;
    all.erase(all.find(secret), secret.size());
  }
  const std::string file = make_file(folder, "all.toml", all);
  const ended with_all = run_sluice({"serve", "--check-config", "--config", file});
  EXPECT_EQ(with_all.code, 0) << with_all.err;
  for (const char* set : {"cron nightly-report", "127.0.0.1:11300", "127.0.0.1:7419"}) {
    EXPECT_NE(with_all.out.find(set), std::string::npos) << with_all.out;
  }
}

}  // namespace
}  // namespace sluice::jobs::cli::serve_service_test
