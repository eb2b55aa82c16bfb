#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "jobs/cli/commands.hpp"
#include "jobs/server/config.hpp"
#include "jobs/server/server.hpp"
#include "jobs/server/signal_watch.hpp"

namespace sluice::jobs::cli {
namespace {

// Under another name first: whoever waits for the file finds it whole.
void_result write_port(const std::string& file, std::uint16_t port) {
  const std::string unfinished = file + ".new";
  std::FILE* out = std::fopen(unfinished.c_str(), "we");
  const bool written = out != nullptr && std::fprintf(out, "%d\n", int{port}) > 0;
  const bool closed = out != nullptr && std::fclose(out) == 0;
  if (written && closed && std::rename(unfinished.c_str(), file.c_str()) == 0) return done{};
  return error{error_code::io_error,
               "cannot write the port to " + file + ": " + std::strerror(errno)};
}

exit_code code_for_store(const error& why) {
  return why.code == error_code::invalid ? exit_code::bad_usage : exit_code::bad_store;
}

}  // namespace

int run(const serve_arguments& what, const console& to) {
  if (what.check_config) {
    to.print(what.effective);
    return static_cast<int>(exit_code::ok);
  }
  std::signal(SIGPIPE, SIG_IGN);  // a log that nobody reads any more is no reason to end
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of that write
  signal_watch signals({SIGTERM, SIGINT, SIGHUP});
  auto server = server::open(what.server);
  if (!server) {
    return static_cast<int>(to.complain(code_for_store(server.error()), server.error().message));
  }
  if (auto listens = (*server)->listen(); !listens) {
    const bool is_wrong = listens.error().code == error_code::invalid;
    return static_cast<int>(to.complain(is_wrong ? exit_code::bad_usage : exit_code::address_in_use,
                                        listens.error().message));
  }
  if (!what.quiet) {
    to.print((*server)->banner(what.program));
    // To a standard output that is gone there is nobody to tell.
    [[maybe_unused]] const auto shown = to.flush();
  }
  if (!what.port_file.empty()) {
    if (auto written = write_port(what.port_file, (*server)->port()); !written) {
      return static_cast<int>(to.complain(written.error()));
    }
  }
  (*server)->on_reload([&what]() -> result<server_options> {
    auto now = load_configuration(what.from);
    if (!now) return now.error();
    return std::move(now->options);
  });
  const auto end = (*server)->serve(signals);
  // At once: no destructor may wait for a worker or a disk now.
  if (end.at_once) std::_Exit(128 + end.signal);
  return static_cast<int>(exit_code::ok);
}

}  // namespace sluice::jobs::cli
