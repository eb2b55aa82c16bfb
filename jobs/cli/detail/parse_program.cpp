// completion, man, version: commands about the program itself.
#include "jobs/cli/detail/command_set.hpp"
#include "jobs/cli/detail/flags.hpp"

namespace sluice::jobs::cli::detail {
namespace {

std::optional<completion_arguments::shell> shell_from(std::string_view word) {
  using shell = completion_arguments::shell;
  if (word == "bash") return shell::bash;
  if (word == "zsh") return shell::zsh;
  if (word == "fish") return shell::fish;
  return std::nullopt;
}

void add_completion(command_set& commands) {
  auto& completion = commands.keep<completion_arguments>();
  CLI::App& c =
      commands.add("completion", "Print the completion script of a shell.",
                   "  sluice completion bash > ~/.local/share/bash-completion/completions/"
                   "sluice\n"
                   "  sluice completion zsh > \"${fpath[1]}/_sluice\"\n"
                   "  sluice completion fish > ~/.config/fish/completions/sluice.fish",
                   [&completion]() -> arguments { return completion; });
  word_option(c, "SHELL", completion.of, "which shell", "bash|zsh|fish", shell_from)->required();
}

void add_man(command_set& commands) {
  commands.add("man", "Print the manual page.",
               "  sluice man | man -l -\n"
               "  sluice man > /usr/local/share/man/man1/sluice.1",
               []() -> arguments { return man_arguments{}; });
}

void add_version(command_set& commands) {
  auto& version = commands.keep<version_arguments>();
  CLI::App& c = commands.add("version", "Print the version.", "  sluice version",
                             [&version]() -> arguments { return version; });
  c.add_flag("--json", version.json, "print JSON, for programs");
  commands.app().set_version_flag("--version", std::string("sluice ") + SLUICE_VERSION);
}

}  // namespace

void add_program_commands(command_set& commands) {
  add_completion(commands);
  add_man(commands);
  add_version(commands);
}

}  // namespace sluice::jobs::cli::detail
