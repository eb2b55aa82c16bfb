#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "jobs/cli/beanstalkd_binlog.hpp"
#include "jobs/cli/commands.hpp"
#include "jobs/cli/user_change.hpp"
#include "jobs/net/listening_sockets.hpp"
#include "jobs/server/config.hpp"
#include "jobs/server/server.hpp"
#include "jobs/server/signal_watch.hpp"
#include "jobs/store/sqlite/sqlite_store.hpp"

namespace sluice::jobs::cli {
namespace {

// Writes to a temporary name and renames: a reader never sees an incomplete file.
void_result write_ports(const std::string& file, const server& s, bool has_http) {
  std::string text = has_http ? std::to_string(s.port()) + "\n" : "";
  const auto add = [&](const char* name, std::uint16_t port) {
    if (port != 0) text += std::string(name) + " " + std::to_string(port) + "\n";
  };
  add("beanstalk", s.beanstalk_port());
  add("faktory", s.faktory_port());
  const std::string unfinished = file + ".new";
  std::FILE* out = std::fopen(unfinished.c_str(), "we");
  const bool written = out != nullptr && std::fputs(text.c_str(), out) >= 0;
  const bool closed = out != nullptr && std::fclose(out) == 0;
  if (written && closed && std::rename(unfinished.c_str(), file.c_str()) == 0) return done{};
  return error{error_code::io_error,
               "cannot write the ports to " + file + ": " + std::strerror(errno)};
}

exit_code code_for_store(const error& why) {
  return why.code == error_code::invalid ? exit_code::bad_usage : exit_code::bad_store;
}

exit_code code_for_address(const error& why) {
  return why.code == error_code::invalid ? exit_code::bad_usage : exit_code::address_in_use;
}

result<std::unique_ptr<server>> open(const serve_arguments& args) {
  if (args.refuses_binlog && !args.server.memory) {
    if (auto none = check_no_binlog(args.server.data); !none) return none.error();
  }
  leave_sqlite_memory_uncounted();
  return server::open(args.server);
}

// Binds as root where necessary; the caller's thread is root meanwhile.
void_result listen(server& s, const serve_arguments& args, const user_change& user,
                   net::listening_sockets& sockets) {
  const auto as_root = user.root_in_this_thread();
  if (auto listens = s.listen(&sockets); !listens) return listens;
  const std::string& socket = args.server.beanstalk.socket;
  return socket.empty() ? done{} : user.give(socket);
}

// Replaces this process by the program as now installed, with the same name and arguments. The
// process id does not change, so supervisors such as systemd do not notice. Returns only on
// failure.
error replace_program(const serve_arguments& args, net::listening_sockets& sockets) {
  sockets.pass_on();
  std::vector<std::string> words = args.words;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv.front(), argv.data());
  ::execv("/proc/self/exe", argv.data());  // fallback: the running version
  return {error_code::io_error, "cannot restart " + words.front() + ": " + std::strerror(errno)};
}

}  // namespace

int run(const serve_arguments& args, const console& io) {
  if (args.check_config) {
    io.print(args.effective);
    return static_cast<int>(exit_code::ok);
  }
  std::signal(SIGPIPE, SIG_IGN);  // a closed log pipe must not end the server
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit fails that write only
  const auto user = user_change::begin(args.user);
  if (!user) return static_cast<int>(io.complain(user.error()));
  auto sockets = net::listening_sockets::inherit("http");
  if (!sockets) return static_cast<int>(io.complain(exit_code::bad_usage, sockets.error().message));
  signal_watch signals({SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2});
  auto server = open(args);
  if (!server) {
    return static_cast<int>(io.complain(code_for_store(server.error()), server.error().message));
  }
  if (auto listens = listen(**server, args, *user, *sockets); !listens) {
    const exit_code code = code_for_address(listens.error());
    return static_cast<int>(io.complain(code, listens.error().message));
  }
  if (auto changed = user->finish(); !changed) {
    return static_cast<int>(io.complain(changed.error()));
  }
  if (!args.quiet) {
    io.print((*server)->banner(args.program));
    // A closed standard output is ignored.
    [[maybe_unused]] const auto shown = io.flush();
  }
  if (!args.port_file.empty()) {
    if (auto written = write_ports(args.port_file, **server, args.server.serves_http); !written) {
      return static_cast<int>(io.complain(written.error()));
    }
  }
  (*server)->on_reload([&args]() -> result<server_options> {
    auto now = load_configuration(args.from);
    if (!now) return now.error();
    return std::move(now->options);
  });
  const auto end = (*server)->serve(signals);
  // Exits at once: a destructor could wait for a worker or a disk.
  if (end.at_once) std::_Exit(128 + end.signal);
  if (end.restarts) {
    server->reset();
    return static_cast<int>(io.complain(replace_program(args, *sockets)));
  }
  return static_cast<int>(end.has_damaged_store ? exit_code::bad_store : exit_code::ok);
}

}  // namespace sluice::jobs::cli
