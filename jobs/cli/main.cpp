// The program `sluice`.
#include <exception>
#include <string>
#include <variant>

#include "jobs/cli/arguments.hpp"
#include "jobs/cli/commands.hpp"
#include "jobs/cli/console.hpp"

namespace {

using namespace sluice::jobs::cli;

int run_program(int argc, char** argv) {
  const console io;
  const auto parsed = parse_arguments(argc, argv);
  if (const auto* nothing = std::get_if<no_command>(&parsed)) {
    if (nothing->code == exit_code::ok) {
      io.print(nothing->text);
    } else {
      std::fputs(nothing->text.c_str(), stderr);
    }
    return static_cast<int>(nothing->code);
  }
  const int code =
      std::visit([&](const auto& args) { return run(args, io); }, std::get<arguments>(parsed));
  if (const auto out = io.flush(); !out && code == 0) {
    return static_cast<int>(io.complain(out.error()));
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (const std::exception& e) {  // out of memory or threads
    std::fprintf(stderr, "sluice: %s\n", e.what());
    return static_cast<int>(exit_code::failed);
  }
}
