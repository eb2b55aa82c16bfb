#include "jobs/cli/commands.hpp"

namespace sluice::jobs::cli {

int run(const version_arguments& what, const console& to) {
  to.line(what.json ? "{\"version\":\"" SLUICE_VERSION "\"}" : "sluice " SLUICE_VERSION);
  return static_cast<int>(exit_code::ok);
}

}  // namespace sluice::jobs::cli
