// beanstalkd: the server for scripts that start beanstalkd, with its flags.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/cli/detail/command_set.hpp"
#include "jobs/cli/detail/flags.hpp"
#include "jobs/model/job.hpp"

namespace sluice::jobs::cli::detail {
namespace {

constexpr std::uint64_t usual_fsync_ms = 50;
constexpr std::uint64_t fsync_ms_most = 3'600'000;
constexpr std::uint64_t job_bytes_most = limits::args_bytes_max;
constexpr std::string_view unix_prefix = "unix:";

struct beanstalkd_flags {
  std::string listen;  // empty: this machine alone
  std::uint16_t port = 11300;
  std::string folder;
  std::uint64_t fsync_ms = usual_fsync_ms;
  bool never_fsync = false;
  std::uint64_t job_bytes_max = beanstalk_settings{}.job_bytes_max;
  std::uint64_t binlog_max = beanstalk_settings{}.binlog_max;
  std::string user;
  int verbose = 0;
  bool version = false;
  bool ignored = false;
  std::string http;
  std::string port_file;
};

void set_place(const beanstalkd_flags& asked, config_sources& into) {
  if (asked.listen.starts_with(unix_prefix)) {
    into.flags.emplace_back("beanstalk.listen", "");
    into.flags.emplace_back("beanstalk.socket", asked.listen.substr(unix_prefix.size()));
    return;
  }
  const auto address =
      parse_listen_address(asked.listen, {.host = "127.0.0.1", .port = asked.port});
  if (!address) refuse("-l", address.error().message);
  const listen_address at{address->host, asked.port};
  into.flags.emplace_back("beanstalk.listen", to_string(at));
  // Whoever starts beanstalkd on such an address has decided that; the log warns.
  if (!is_loopback(at)) into.flags.emplace_back("beanstalk.open", "true");
}

void set_store(const beanstalkd_flags& asked, config_sources& into) {
  into.flags.emplace_back("memory", asked.folder.empty() ? "true" : "false");
  if (asked.folder.empty()) return;
  into.flags.emplace_back("data", asked.folder);
  const bool is_full = asked.fsync_ms == 0;
  into.flags.emplace_back("sync", asked.never_fsync ? "off" : is_full ? "full" : "interval");
  const std::uint64_t every_ms = std::min(asked.fsync_ms, fsync_ms_most);
  if (!is_full) into.flags.emplace_back("sync_interval", std::to_string(every_ms) + "ms");
}

// What a script gets that is not what beanstalkd would do.
std::vector<std::string> warnings_for(const beanstalkd_flags& asked) {
  std::vector<std::string> all;
  if (asked.listen.empty()) {
    all.emplace_back("listening on this machine alone; -l 0.0.0.0 for others");
  }
  if (asked.job_bytes_max > job_bytes_most) {
    all.push_back("-z " + std::to_string(asked.job_bytes_max) +
                  " is more than a job can have: the largest is " + std::to_string(job_bytes_most) +
                  " bytes");
  }
  if (!asked.folder.empty() && !asked.never_fsync && asked.fsync_ms > fsync_ms_most) {
    all.push_back("-f " + std::to_string(asked.fsync_ms) +
                  " is longer than there can be between syncs: they are an hour apart");
  }
  return all;
}

// Which of two flags that contradict each other was given last.
bool is_last(const CLI::App& of, const CLI::Option* one, const CLI::Option* other) {
  for (const CLI::Option* each : of.parse_order() | std::views::reverse) {
    if (each == one || each == other) return each == one;
  }
  return false;
}

arguments finish(const beanstalkd_flags& asked) {
  if (asked.version) return version_arguments{};
  serve_arguments serve;
  set_place(asked, serve.from);
  set_store(asked, serve.from);
  auto& flags = serve.from.flags;
  flags.emplace_back("beanstalk.job_max",
                     std::to_string(std::min(asked.job_bytes_max, job_bytes_most)));
  // It says nothing unless something is wrong, and ends when it is told to.
  flags.emplace_back("log.level", asked.verbose == 0   ? "warn"
                                  : asked.verbose == 1 ? "info"
                                                       : "debug");
  flags.emplace_back("shutdown_grace", "0s");
  if (!asked.http.empty()) flags.emplace_back("listen", asked.http);
  auto known = load_configuration(serve.from);
  if (!known) throw CLI::ValidationError(known.error().message);
  serve.server = std::move(known->options);
  serve.server.serves_http = !asked.http.empty();
  serve.server.beanstalk.binlog_max = asked.binlog_max;
  serve.server.warnings = warnings_for(asked);
  serve.refuses_binlog = true;
  serve.quiet = true;
  serve.port_file = asked.port_file;
  serve.user = asked.user;
  return serve;
}

}  // namespace

void add_beanstalkd_command(command_set& to) {
  auto& asked = to.keep<beanstalkd_flags>();
  CLI::App& c = to.add(
      "beanstalkd", "Start a server for clients of beanstalkd, with the flags of beanstalkd.",
      "  sluice beanstalkd -b /var/lib/beanstalkd -f 0\n"
      "  sluice beanstalkd -l unix:/run/beanstalkd.sock -z 131072\n"
      "The program does the same when it is called by the name beanstalkd. SIGUSR1 drains: "
      "puts\nare refused from then on. docs/guides/moving-from-beanstalkd.md has what "
      "differs.",
      [&asked] { return finish(asked); });
  c.add_option("-l", asked.listen, "listen on this address, or unix:PATH (127.0.0.1)")
      ->type_name("ADDRESS")
      ->take_last();
  c.add_option("-p", asked.port, "listen on this port (11300); 0: any that is free")
      ->type_name("PORT")
      ->take_last();
  c.add_option("-b", asked.folder, "keep the jobs in this folder; without it: in memory")
      ->type_name("FOLDER")
      ->take_last();
  const CLI::Option* const fsync =
      number_option(c, "-f", asked.fsync_ms,
                    "with -b: sync to the disk at most once in so many milliseconds (50); 0: "
                    "before every answer; more than an hour is taken for an hour",
                    std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max())
          ->type_name("MS")
          ->take_last();
  const CLI::Option* const no_fsync =
      c.add_flag("-F", asked.never_fsync,
                 "with -b: never sync, which is left to the system; of -f and -F the last counts");
  c.parse_complete_callback(
      [&c, &asked, fsync, no_fsync] { asked.never_fsync = is_last(c, no_fsync, fsync); });
  number_option(
      c, "-z", asked.job_bytes_max,
      "the largest job, in bytes (65535); more than 4 MiB are taken for 4 MiB; 0: empty ones",
      std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max())
      ->type_name("BYTES")
      ->take_last();
  c.add_option("-s", asked.binlog_max, "is shown in stats as binlog-max-size, and nothing else")
      ->type_name("BYTES")
      ->take_last();
  c.add_flag("-c", asked.ignored, "nothing: space is always used again");
  c.add_flag("-n", asked.ignored, "nothing: space is always used again");
  c.add_option("-u", asked.user, "become this user when it listens; all files are this user's")
      ->type_name("USER")
      ->take_last();
  c.add_flag("-V", asked.verbose, "log more; twice: still more");
  c.add_flag("-v", asked.version, "show which version this is");
  c.add_option("--http", asked.http, "serve HTTP too, on HOST:PORT; without it: not")
      ->type_name("HOST:PORT");
  c.add_option("--port-file", asked.port_file, "write the ports there, once it listens")
      ->type_name("FILE");
}

}  // namespace sluice::jobs::cli::detail
