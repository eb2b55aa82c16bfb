#include "jobs/cli/commands.hpp"

namespace sluice::jobs::cli {

int run(const version_arguments& args, const console& io) {
  io.line(args.json ? "{\"version\":\"" SLUICE_VERSION "\"}" : "sluice " SLUICE_VERSION);
  return static_cast<int>(exit_code::ok);
}

}  // namespace sluice::jobs::cli
