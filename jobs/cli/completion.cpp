#include "jobs/cli/completion.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "jobs/cli/commands.hpp"

namespace sluice::jobs::cli {
namespace {

enum class value_kind : std::uint8_t { none, words, file, folder, text };

value_kind kind_of(const flag_description& f) {
  if (f.value.empty()) return value_kind::none;
  if (!f.choices().empty()) return value_kind::words;
  const bool is_file =
      f.value == "FILE" || f.value == "PATH" || (f.is_positional && f.names.front() == "FILE");
  if (is_file) return value_kind::file;
  return f.value == "FOLDER" ? value_kind::folder : value_kind::text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : " ") + w;
  return text;
}

// Receives a command, its path, and all flags it accepts: its own and those of its parent commands.
using visitor = std::function<void(const std::string& path, const command_description& c,
                                   const std::vector<flag_description>& flags)>;

void visit(const command_description& c, const std::string& path,
           std::vector<flag_description> inherited, const visitor& visit_one) {
  std::vector<flag_description> flags = c.flags;
  flags.insert(flags.end(), inherited.begin(), inherited.end());
  visit_one(path, c, flags);
  // Positional arguments, --help and --version are not inherited.
  std::erase_if(flags, [](const flag_description& f) {
    return f.is_positional || f.names.front() == "--help" || f.names.front() == "--version";
  });
  if (path.empty()) flags.clear();
  for (const command_description& sub : c.commands) {
    visit(sub, path.empty() ? sub.name : path + " " + sub.name, flags, visit_one);
  }
}

std::vector<std::string> names_of(const std::vector<flag_description>& flags) {
  std::vector<std::string> names;
  for (const flag_description& f : flags) {
    if (!f.is_positional) names.insert(names.end(), f.names.begin(), f.names.end());
  }
  return names;
}

std::vector<std::string> commands_of(const command_description& c) {
  std::vector<std::string> names;
  for (const command_description& sub : c.commands) names.push_back(sub.name);
  return names;
}

std::string pattern_of(const flag_description& f) {
  std::string text;
  for (const std::string& n : f.names) text += (text.empty() ? "" : "|") + n;
  return text;
}

// ---- bash

std::string bash_values(const std::vector<flag_description>& flags) {
  std::string text;
  for (const flag_description& f : flags) {
    if (f.is_positional) continue;
    const std::string begin = "        " + pattern_of(f) + ") ";
    switch (kind_of(f)) {
      case value_kind::none:
        break;
      case value_kind::words:
        text += begin + "COMPREPLY=($(compgen -W '" + joined(f.choices()) + "' -- \"$cur\")) ;;\n";
        break;
      case value_kind::file:
        text += begin + "COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n";
        break;
      case value_kind::folder:
        text += begin + "COMPREPLY=($(compgen -d -- \"$cur\")) ;;\n";
        break;
      case value_kind::text:
        text += begin + "COMPREPLY=() ;;\n";
        break;
    }
  }
  return text;
}

// Returns the compgen arguments for a word that is not a flag.
std::string bash_others(const command_description& c) {
  if (!c.commands.empty()) return "-W '" + joined(commands_of(c)) + "'";
  for (const flag_description& f : c.flags) {
    if (!f.is_positional) continue;
    if (kind_of(f) == value_kind::words) return "-W '" + joined(f.choices()) + "'";
    if (kind_of(f) == value_kind::file) return "-f";
  }
  return "-W ''";
}

std::string for_bash(const command_description& program) {
  std::string cases;
  std::string known;
  visit(program, "", {}, [&](const std::string& path, const command_description& c, const auto& f) {
    if (!path.empty()) known += (known.empty() ? "'" : "|'") + path + "'";
    cases += "    '" + path + "')\n      case \"$prev\" in\n" + bash_values(f) +
             "        *)\n"
             "          if [[ $cur == -* ]]; then\n"
             "            COMPREPLY=($(compgen -W '" +
             joined(names_of(f)) +
             "' -- \"$cur\"))\n"
             "          else\n"
             "            COMPREPLY=($(compgen " +
             bash_others(c) +
             " -- \"$cur\"))\n"
             "          fi ;;\n"
             "      esac ;;\n";
  });
  return "# Completion of sluice for bash: sluice completion bash\n"
         "_sluice() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path= word i\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    word=\"${path:+$path }${COMP_WORDS[i]}\"\n"
         "    case \"$word\" in\n"
         "      " +
         known +
         ") path=$word ;;\n"
         "    esac\n"
         "  done\n"
         "  COMPREPLY=()\n"
         "  case \"$path\" in\n" +
         cases +
         "  esac\n"
         "}\n"
         "complete -o filenames -F _sluice sluice\n";
}

// ---- zsh

// Escapes brackets and colons, which have a meaning in _arguments, and quotes.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += ' ';
    } else if (c == '\'') {
      out += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

std::string zsh_action(const flag_description& f) {
  switch (kind_of(f)) {
    case value_kind::none:
      return "";
    case value_kind::words:
      return ":value:(" + joined(f.choices()) + ")";
    case value_kind::file:
      return ":file:_files";
    case value_kind::folder:
      return ":folder:_files -/";
    case value_kind::text:
      return ":" + zsh_text(f.value) + ": ";
  }
  return "";
}

std::string zsh_arguments(const command_description& c, const std::vector<flag_description>& flags,
                          const std::string& indent) {
  std::string text;
  for (const flag_description& f : flags) {
    if (f.is_positional) continue;
    for (const std::string& name : f.names) {
      text += indent + "'" + (f.is_list ? "*" : "") + name + "[" + zsh_text(f.summary) + "]" +
              zsh_action(f) + "' \\\n";
    }
  }
  if (!c.commands.empty()) return text;
  for (const flag_description& f : c.flags) {
    if (!f.is_positional) continue;
    const std::string action = kind_of(f) == value_kind::words
                                   ? "(" + joined(f.choices()) + ")"
                                   : (kind_of(f) == value_kind::file ? "_files" : " ");
    text += indent + "'" + (f.is_list ? "*:" : "::") + zsh_text(f.names.front()) + ":" + action +
            "' \\\n";
  }
  return text;
}

std::string function_of(const std::string& path) {
  std::string name = "_sluice";
  if (!path.empty()) name += "_" + path;
  std::ranges::replace(name, ' ', '_');
  return name;
}

std::string for_zsh(const command_description& program) {
  std::string text =
      "#compdef sluice\n"
      "# Completion of sluice for zsh: sluice completion zsh\n\n";
  visit(program, "", {}, [&](const std::string& path, const command_description& c, const auto& f) {
    text += function_of(path) + "() {\n";
    if (c.commands.empty()) {
      text += "  _arguments -s \\\n" + zsh_arguments(c, f, "    ") + "    && return 0\n}\n\n";
      return;
    }
    text += "  local line state\n  _arguments -s -C \\\n" + zsh_arguments(c, f, "    ") +
            "    '1: :->command' \\\n    '*:: :->rest' && return 0\n"
            "  case $state in\n"
            "    command)\n"
            "      local -a commands=(\n";
    for (const command_description& sub : c.commands) {
      text += "        '" + sub.name + ":" + zsh_text(sub.summary) + "'\n";
    }
    text +=
        "      )\n"
        "      _describe command commands ;;\n"
        "    rest)\n"
        "      case $line[1] in\n";
    for (const command_description& sub : c.commands) {
      const std::string sub_path = path.empty() ? sub.name : path + " " + sub.name;
      text += "        " + sub.name + ") " + function_of(sub_path) + " ;;\n";
    }
    text +=
        "      esac ;;\n"
        "  esac\n"
        "}\n\n";
  });
  return text + "compdef _sluice sluice\n";
}

// ---- fish

std::string fish_text(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

// Returns a condition that is true if the words are those of this command and no subcommand.
std::string fish_condition(const std::string& path, const command_description& c) {
  if (path.empty()) return "__fish_use_subcommand";
  std::string text;
  std::size_t at = 0;
  for (std::size_t end = 0; end != std::string::npos; at = end + 1) {
    end = path.find(' ', at);
    text += (text.empty() ? "" : "; and ") + std::string("__fish_seen_subcommand_from ") +
            path.substr(at, end - at);
    if (end == std::string::npos) break;
  }
  if (!c.commands.empty()) {
    text += "; and not __fish_seen_subcommand_from " + joined(commands_of(c));
  }
  return text;
}

std::string for_fish(const command_description& program) {
  std::string text =
      "# Completion of sluice for fish: sluice completion fish\n"
      "complete -c sluice -f\n";
  visit(program, "", {}, [&](const std::string& path, const command_description& c, const auto& f) {
    const std::string begin = "complete -c sluice -n '" + fish_condition(path, c) + "'";
    for (const command_description& sub : c.commands) {
      text += begin + " -a " + sub.name + " -d " + fish_text(sub.summary) + "\n";
    }
    for (const flag_description& flag : f) {
      const value_kind kind = kind_of(flag);
      if (flag.is_positional) {
        if (!c.commands.empty()) continue;
        if (kind == value_kind::file) text += begin + " -F\n";
        if (kind == value_kind::words) {
          text += begin + " -a " + fish_text(joined(flag.choices())) + "\n";
        }
        continue;
      }
      text += begin;
      for (const std::string& name : flag.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (kind == value_kind::words) text += " -x -a " + fish_text(joined(flag.choices()));
      if (kind == value_kind::file) text += " -r -F";
      if (kind == value_kind::folder) text += " -x -a '(__fish_complete_directories)'";
      if (kind == value_kind::text) text += " -x";
      text += " -d " + fish_text(flag.summary) + "\n";
    }
  });
  return text;
}

}  // namespace

std::string completion_for(completion_arguments::shell shell, const command_description& program) {
  switch (shell) {
    case completion_arguments::shell::bash:
      return for_bash(program);
    case completion_arguments::shell::zsh:
      return for_zsh(program);
    case completion_arguments::shell::fish:
      break;
  }
  return for_fish(program);
}

int run(const completion_arguments& args, const console& io) {
  io.print(completion_for(args.of, describe_program()));
  return static_cast<int>(exit_code::ok);
}

}  // namespace sluice::jobs::cli
