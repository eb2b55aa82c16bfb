#include "jobs/cli/man_page.hpp"

#include <string_view>

#include "jobs/cli/commands.hpp"

namespace sluice::jobs::cli {
namespace {

// Escapes text for roff: a dot or quote at the start of a line, backslashes, and hyphens, which are
// written as minus so that they can be copied.
std::string roff(std::string_view text) {
  std::string out;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    begins = c == '\n';
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string bold(std::string_view text) {
  return "\\fB" + roff(text) + "\\fR";
}

std::string italic(std::string_view text) {
  return "\\fI" + roff(text) + "\\fR";
}

std::string flag_title(const flag_description& f) {
  std::string text;
  for (const std::string& name : f.names) {
    text += (text.empty() ? "" : ", ") + (f.is_positional ? italic(name) : bold(name));
  }
  if (!f.value.empty() && !f.is_positional) text += " " + italic(f.value);
  return text;
}

std::string flag_paragraph(const flag_description& f) {
  std::string text = ".TP\n" + flag_title(f) + "\n" + roff(f.summary);
  if (f.is_positional && !f.choices().empty()) text += " (" + roff(f.value) + ")";
  if (!f.default_value.empty()) text += " (" + roff(f.default_value) + ")";
  if (f.is_required) text += "; required";
  if (f.is_list && !f.is_positional) text += "; may be repeated";
  if (!f.environment.empty()) text += "; also " + bold(f.environment) + " in the environment";
  return text + ".\n";
}

std::string synopsis(const std::string& path, const command_description& c) {
  std::string text = bold(path);
  if (!c.commands.empty()) text += " [" + italic("COMMAND") + "]";
  for (const flag_description& f : c.flags) {
    if (!f.is_positional) continue;
    const std::string name = italic(f.names.front()) + (f.is_list ? "..." : "");
    text += f.is_required ? " " + name : " [" + name + "]";
  }
  return text + " [" + italic("FLAGS") + "]";
}

void add_command(std::string& page, const std::string& path, const command_description& c) {
  page += ".SS " + roff(path) + "\n" + roff(c.summary) + "\n.PP\n" + synopsis(path, c) + "\n";
  for (const flag_description& f : c.flags) {
    if (f.names.front() != "--help") page += flag_paragraph(f);
  }
  if (!c.examples.empty()) page += ".PP\n.nf\n" + roff(c.examples) + "\n.fi\n";
  for (const command_description& sub : c.commands) add_command(page, path + " " + sub.name, sub);
}

constexpr const char* description_section =
    "sluice is a durable job server in one program, and the commands to use it. Programs in any\n"
    "language push jobs over HTTP, and workers lease them. An acknowledged job is not lost: it is\n"
    "on disk when its push returns, and another worker gets it if its worker dies.\n"
    ".PP\n"
    "Results go to standard output, all other output to standard error, so that a pipe gets\n"
    "results only. Every command has\n\\fB\\-\\-help\\fR, with examples.\n"
    ".PP\n"
    "Durations are 500ms, 30s, 5m, 1h30m, 7d, or a number of seconds. Sizes are bytes, or 64KB,\n"
    "64MB, 1GB (powers of 1024). Rates are 100/s, 30/m or 5/h. Times are RFC 3339, as in\n"
    "2026\\-01\\-31T12:00:00Z.\n";

constexpr const char* exit_status =
    ".TP\n0\nSuccess.\n"
    ".TP\n1\nRefused, or the awaited job is dead or cancelled.\n"
    ".TP\n2\nThe command line, or a value in it, is invalid: a retry cannot succeed.\n"
    ".TP\n3\nNo such job, queue, batch, entry, file or program.\n"
    ".TP\n4\nThe queue is full, or the server is overloaded, closing or out of disk space: retry\n"
    "later.\n"
    ".TP\n5\nNo server at the address, or an invalid response.\n"
    ".TP\n6\nThe given time has passed.\n"
    ".TP\n7\nThe data cannot be opened, or is damaged.\n"
    ".TP\n8\nAnother program listens on the address.\n"
    ".TP\n9\nThe token is missing, wrong, or lacks the permission.\n"
    ".TP\n130, 143\nA second SIGINT or SIGTERM ended serve or work at once.\n";

constexpr const char* environment =
    ".TP\n\\fBSLUICE_URL\\fR\nThe address of the server.\n"
    ".TP\n\\fBSLUICE_TOKEN\\fR\nThe token for the server.\n"
    ".TP\n\\fBNO_COLOR\\fR\nDisables colours if it is not empty.\n"
    ".PP\nFlags with a variable name it. Flags take precedence over the environment.\n";

constexpr const char* files =
    ".TP\n\\fIdata/jobs.db\\fR\nThe jobs, an SQLite database, with SQLite's files beside it.\n";

}  // namespace

std::string man_page(const command_description& program, const std::string& version) {
  std::string page = ".TH SLUICE 1 \"\" \"sluice " + version + "\" \"User Commands\"\n.ad l\n";
  page += ".SH NAME\nsluice \\- durable job server, and the commands to use it\n";
  page +=
      ".SH SYNOPSIS\n" + bold("sluice") + " " + italic("COMMAND") + " [" + italic("FLAGS") + "]\n";
  page += ".SH DESCRIPTION\n" + std::string(description_section);
  for (const flag_description& f : program.flags) page += flag_paragraph(f);
  page += ".SH COMMANDS\n";
  for (const command_description& c : program.commands) add_command(page, "sluice " + c.name, c);
  page += ".SH EXIT STATUS\n" + std::string(exit_status);
  page += ".SH ENVIRONMENT\n" + std::string(environment);
  page += ".SH FILES\n" + std::string(files);
  return page;
}

int run(const man_arguments&, const console& io) {
  io.print(man_page(describe_program(), SLUICE_VERSION));
  return static_cast<int>(exit_code::ok);
}

}  // namespace sluice::jobs::cli
