// All commands and flags of the program are in its manual, its reference and its completion
// scripts.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "jobs/cli/command_description.hpp"
#include "jobs/cli/completion.hpp"
#include "jobs/cli/man_page.hpp"
#include "jobs/cli/testing/program.hpp"

namespace sluice::jobs::cli::described_test {
namespace {

using shell = completion_arguments::shell;

void for_each_command(
    const command_description& c, const std::string& path,
    const std::function<void(const std::string&, const command_description&)>& f) {
  f(path, c);
  for (const command_description& sub : c.commands) {
    for_each_command(sub, path.empty() ? sub.name : path + " " + sub.name, f);
  }
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool is_installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

// Runs a command on a file with this text; returns its exit code.
int run_on(const std::string& command, const std::string& text) {
  const testing::temporary_folder folder;
  const std::string file = testing::make_file(folder, "text", text);
  return std::system((command + " " + file + " >/dev/null 2>" + folder.file("err")).c_str());
}

TEST(Description, HasEveryCommandWithItsFlags) {
  const command_description program = describe_program();
  std::set<std::string> names;
  for (const command_description& c : program.commands) names.insert(c.name);
  for (const char* name :
       {"serve",  "beanstalkd", "push",   "get",   "jobs",       "logs", "work",   "workers",
        "queues", "plan",       "batch",  "cron",  "stats",      "top",  "events", "export",
        "import", "check",      "backup", "token", "completion", "man",  "version"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  std::size_t commands = 0;
  std::size_t flags = 0;
  for_each_command(program, "", [&](const std::string& path, const command_description& c) {
    ++commands;
    EXPECT_FALSE(c.summary.empty()) << path;
    for (const flag_description& f : c.flags) {
      ++flags;
      EXPECT_FALSE(f.summary.empty()) << path << " " << f.names.front();
    }
  });
  std::printf("%zu commands, %zu flags\n", commands, flags);
  EXPECT_GT(flags, 150U);
}

TEST(Description, HasTheWordsOfAFlag) {
  EXPECT_EQ((flag_description{.names = {"--a"}, .value = "x|y|z"}.choices()),
            (std::vector<std::string>{"x", "y", "z"}));
  EXPECT_TRUE((flag_description{.names = {"--a"}, .value = "FILE"}.choices().empty()));
}

TEST(ManPage, NamesEveryCommandAndFlag) {
  std::string page = man_page(describe_program(), "1.2.3");
  // As printed: minus signs.
  for (auto at = page.find("\\-"); at != std::string::npos; at = page.find("\\-", at)) {
    page.erase(at, 1);
  }
  for_each_command(describe_program(), "sluice",
                   [&](const std::string& path, const command_description& c) {
                     if (path != "sluice") {
                       EXPECT_TRUE(has(page, ".SS " + path + "\n")) << path;
                     }
                     for (const flag_description& f : c.flags) {
                       for (const std::string& n : f.names) {
                         EXPECT_TRUE(has(page, "\\fB" + n + "\\fR") || has(page, "\\fI" + n))
                             << path << " " << n;
                       }
                     }
                   });
  EXPECT_TRUE(has(page, "sluice 1.2.3"));
}

TEST(ManPage, IsValidRoff) {
  const std::string page = man_page(describe_program(), "1.2.3");
  if (is_installed("groff")) {
    const testing::temporary_folder folder;
    const std::string file = testing::make_file(folder, "sluice.1", page);
    const std::string err = folder.file("err");
    EXPECT_EQ(std::system(("groff -man -Tutf8 -ww " + file + " >/dev/null 2>" + err).c_str()), 0);
    EXPECT_EQ(testing::text_of(err), "");
  }
  if (is_installed("mandoc")) {
    EXPECT_EQ(run_on("mandoc -T lint -W error", page), 0);
  }
  // No line may be an accidental roff request.
  std::size_t at = 0;
  while ((at = page.find("\n.", at)) != std::string::npos) {
    const std::string request = page.substr(at + 2, 2);
    EXPECT_TRUE(request == "TH" || request == "ad" || request == "SH" || request == "SS" ||
                request == "TP" || request == "PP" || request == "nf" || request == "fi")
        << page.substr(at + 1, 60);
    ++at;
  }
}

TEST(Completion, NamesEveryCommandAndFlagInEveryShell) {
  const command_description program = describe_program();
  for (const shell s : {shell::bash, shell::zsh, shell::fish}) {
    const std::string text = completion_for(s, program);
    for_each_command(program, "", [&](const std::string& path, const command_description& c) {
      EXPECT_TRUE(has(text, c.name)) << path;
      for (const flag_description& f : c.flags) {
        for (const std::string& n : f.names) {
          if (f.is_positional) continue;
          const std::string as_fish =
              n.starts_with("--") ? " -l " + n.substr(2) : " -s " + n.substr(1);
          EXPECT_TRUE(has(text, s == shell::fish ? as_fish : n)) << path << " " << n;
        }
      }
    });
  }
}

TEST(Completion, IsValidInEveryShell) {
  const command_description program = describe_program();
  if (is_installed("bash")) {
    EXPECT_EQ(run_on("bash -n", completion_for(shell::bash, program)), 0);
  }
  if (is_installed("zsh")) {
    EXPECT_EQ(run_on("zsh -n", completion_for(shell::zsh, program)), 0);
  }
  if (is_installed("fish")) {
    EXPECT_EQ(run_on("fish -n", completion_for(shell::fish, program)), 0);
  }
}

// Returns bash's completions of a line.
std::string offered(const std::vector<std::string>& words) {
  const testing::temporary_folder folder;
  std::string script = completion_for(shell::bash, describe_program()) + "COMP_WORDS=(";
  for (const std::string& w : words) script += "'" + w + "' ";
  script +=
      ")\nCOMP_CWORD=" + std::to_string(words.size() - 1) + "\n_sluice\necho \"${COMPREPLY[*]}\"\n";
  const std::string file = testing::make_file(folder, "script", script);
  const std::string out = folder.file("out");
  EXPECT_EQ(std::system(("bash " + file + " >" + out + " 2>&1").c_str()), 0);
  return testing::text_of(out);
}

TEST(Completion, OffersCommandsFlagsAndWordsInBash) {
  if (!is_installed("bash")) GTEST_SKIP() << "bash is not installed";
  EXPECT_EQ(offered({"sluice", "pu"}), "push\n");
  EXPECT_EQ(offered({"sluice", "queues", "pa"}), "pause\n");
  EXPECT_EQ(offered({"sluice", "queues", "set", "mail", "--when-full", "dr"}),
            "drop_newest drop_oldest\n");
  EXPECT_EQ(offered({"sluice", "completion", ""}), "bash zsh fish\n");
  EXPECT_EQ(offered({"sluice", "push", "mail", "--retry-f"}), "--retry-first --retry-factor\n");
  EXPECT_TRUE(has(offered({"sluice", "queues", "set", "mail", "--"}), "--url"))
      << "flags of the command above it";
}

TEST(Reference, NamesEveryCommandAndFlag) {
  const std::string page = testing::text_of(SLUICE_SOURCE_DIR "/docs/reference/cli.md");
  const std::string settings =
      testing::text_of(SLUICE_SOURCE_DIR "/docs/reference/configuration.md");
  ASSERT_FALSE(page.empty());
  const command_description program = describe_program();
  for (const command_description& c : program.commands) {
    // The section of the command.
    const auto begin = page.find("\n## " + c.name + "\n");
    if (begin == std::string::npos) {
      ADD_FAILURE() << c.name << " has no part in docs/reference/cli.md";
      continue;
    }
    std::string part = page.substr(begin, page.find("\n## ", begin + 1) - begin);
    if (c.name == "serve") part += settings;
    for_each_command(c, c.name, [&](const std::string& path, const command_description& sub) {
      if (path != c.name) {
        EXPECT_TRUE(has(part, sub.name)) << path;
      }
      for (const flag_description& f : sub.flags) {
        const std::string& name = f.names.front();
        // Flags of every command are described once, at the top.
        const bool is_common = name == "--help" || name == "--json" || name == "--url" ||
                               name == "--token-file" || name == "--ca-file";
        const std::string& where = is_common ? page : part;
        EXPECT_TRUE(f.is_positional || has(where, name)) << path << " " << name;
      }
    });
  }
}

}  // namespace
}  // namespace sluice::jobs::cli::described_test
