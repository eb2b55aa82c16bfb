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

// Under another name first: whoever waits for the file finds it whole.
void_result write_ports(const std::string& file, const server& of, bool has_http) {
  std::string text = has_http ? std::to_string(of.port()) + "\n" : "";
  const auto add = [&](const char* name, std::uint16_t port) {
    if (port != 0) text += std::string(name) + " " + std::to_string(port) + "\n";
  };
  add("beanstalk", of.beanstalk_port());
  add("faktory", of.faktory_port());
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

result<std::unique_ptr<server>> open(const serve_arguments& what) {
  if (what.refuses_binlog && !what.server.memory) {
    if (auto none = check_no_binlog(what.server.data); !none) return none.error();
  }
  leave_sqlite_memory_uncounted();
  return server::open(what.server);
}

// As whoever started it, where only they may.
void_result listen(server& it, const serve_arguments& what, const user_change& user,
                   net::listening_sockets& sockets) {
  const auto as_root = user.root_in_this_thread();
  if (auto listens = it.listen(&sockets); !listens) return listens;
  const std::string& socket = what.server.beanstalk.socket;
  return socket.empty() ? done{} : user.give(socket);
}

// The program as it is installed by now, under the name and with the words that this one was
// started with: same process, so systemd and other supervisors notice nothing. Returns only if that
// fails.
error replace_program(const serve_arguments& what, net::listening_sockets& sockets) {
  sockets.pass_on();
  std::vector<std::string> words = what.words;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv.front(), argv.data());
  ::execv("/proc/self/exe", argv.data());  // rather an old one than none
  return {error_code::io_error,
          "cannot start " + words.front() + " again: " + std::strerror(errno)};
}

}  // namespace

int run(const serve_arguments& what, const console& to) {
  if (what.check_config) {
    to.print(what.effective);
    return static_cast<int>(exit_code::ok);
  }
  std::signal(SIGPIPE, SIG_IGN);  // a log that nobody reads any more is no reason to end
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of that write
  const auto user = user_change::begin(what.user);
  if (!user) return static_cast<int>(to.complain(user.error()));
  auto sockets = net::listening_sockets::inherit("http");
  if (!sockets) return static_cast<int>(to.complain(exit_code::bad_usage, sockets.error().message));
  signal_watch signals({SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2});
  auto server = open(what);
  if (!server) {
    return static_cast<int>(to.complain(code_for_store(server.error()), server.error().message));
  }
  if (auto listens = listen(**server, what, *user, *sockets); !listens) {
    const exit_code code = code_for_address(listens.error());
    return static_cast<int>(to.complain(code, listens.error().message));
  }
  if (auto changed = user->finish(); !changed) {
    return static_cast<int>(to.complain(changed.error()));
  }
  if (!what.quiet) {
    to.print((*server)->banner(what.program));
    // To a standard output that is gone there is nobody to tell.
    [[maybe_unused]] const auto shown = to.flush();
  }
  if (!what.port_file.empty()) {
    if (auto written = write_ports(what.port_file, **server, what.server.serves_http); !written) {
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
  if (end.restarts) {
    server->reset();
    return static_cast<int>(to.complain(replace_program(what, *sockets)));
  }
  return static_cast<int>(end.has_damaged_store ? exit_code::bad_store : exit_code::ok);
}

}  // namespace sluice::jobs::cli
