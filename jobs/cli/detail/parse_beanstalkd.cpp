// beanstalkd: a server for scripts that start beanstalkd, with its flags.
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
  std::string listen;  // empty: loopback only
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

void set_place(const beanstalkd_flags& parsed, config_sources& into) {
  if (parsed.listen.starts_with(unix_prefix)) {
    into.flags.emplace_back("beanstalk.listen", "");
    into.flags.emplace_back("beanstalk.socket", parsed.listen.substr(unix_prefix.size()));
    return;
  }
  const auto address =
      parse_listen_address(parsed.listen, {.host = "127.0.0.1", .port = parsed.port});
  if (!address) refuse("-l", address.error().message);
  const listen_address at{address->host, parsed.port};
  into.flags.emplace_back("beanstalk.listen", to_string(at));
  // The user has chosen this address; the log warns about it.
  if (!is_loopback(at)) into.flags.emplace_back("beanstalk.open", "true");
}

void set_store(const beanstalkd_flags& parsed, config_sources& into) {
  into.flags.emplace_back("memory", parsed.folder.empty() ? "true" : "false");
  if (parsed.folder.empty()) return;
  into.flags.emplace_back("data", parsed.folder);
  const bool is_full = parsed.fsync_ms == 0;
  into.flags.emplace_back("sync", parsed.never_fsync ? "off" : is_full ? "full" : "interval");
  const std::uint64_t every_ms = std::min(parsed.fsync_ms, fsync_ms_most);
  if (!is_full) into.flags.emplace_back("sync_interval", std::to_string(every_ms) + "ms");
}

// Returns a warning for each flag whose effect differs from beanstalkd's.
std::vector<std::string> warnings_for(const beanstalkd_flags& parsed) {
  std::vector<std::string> all;
  if (parsed.listen.empty()) {
    all.emplace_back("listening on loopback only; use -l 0.0.0.0 for other machines");
  }
  if (parsed.job_bytes_max > job_bytes_most) {
    all.push_back("-z " + std::to_string(parsed.job_bytes_max) +
                  " is larger than the largest possible job, " + std::to_string(job_bytes_most) +
                  " bytes; using that");
  }
  if (!parsed.folder.empty() && !parsed.never_fsync && parsed.fsync_ms > fsync_ms_most) {
    all.push_back("-f " + std::to_string(parsed.fsync_ms) +
                  " is longer than the longest sync interval, an hour; using an hour");
  }
  return all;
}

// Returns whether `one` was given after `other`, for flags that exclude each other.
bool is_last(const CLI::App& of, const CLI::Option* one, const CLI::Option* other) {
  for (const CLI::Option* each : of.parse_order() | std::views::reverse) {
    if (each == one || each == other) return each == one;
  }
  return false;
}

arguments finish(const beanstalkd_flags& parsed) {
  if (parsed.version) return version_arguments{};
  serve_arguments serve;
  set_place(parsed, serve.from);
  set_store(parsed, serve.from);
  auto& flags = serve.from.flags;
  flags.emplace_back("beanstalk.job_max",
                     std::to_string(std::min(parsed.job_bytes_max, job_bytes_most)));
  // As beanstalkd: logs only problems and ends at once.
  flags.emplace_back("log.level", parsed.verbose == 0   ? "warn"
                                  : parsed.verbose == 1 ? "info"
                                                        : "debug");
  flags.emplace_back("shutdown_grace", "0s");
  if (!parsed.http.empty()) flags.emplace_back("listen", parsed.http);
  auto known = load_configuration(serve.from);
  if (!known) throw CLI::ValidationError(known.error().message);
  serve.server = std::move(known->options);
  serve.server.serves_http = !parsed.http.empty();
  serve.server.beanstalk.binlog_max = parsed.binlog_max;
  serve.server.warnings = warnings_for(parsed);
  serve.refuses_binlog = true;
  serve.quiet = true;
  serve.port_file = parsed.port_file;
  serve.user = parsed.user;
  return serve;
}

}  // namespace

void add_beanstalkd_command(command_set& commands) {
  auto& parsed = commands.keep<beanstalkd_flags>();
  CLI::App& c = commands.add(
      "beanstalkd", "Start a server for clients of beanstalkd, with the flags of beanstalkd.",
      "  sluice beanstalkd -b /var/lib/beanstalkd -f 0\n"
      "  sluice beanstalkd -l unix:/run/beanstalkd.sock -z 131072\n"
      "The program does the same if it is started by the name beanstalkd. SIGUSR1 drains: "
      "puts\nare rejected from then on. docs/guides/moving-from-beanstalkd.md lists the "
      "differences.",
      [&parsed] { return finish(parsed); });
  c.add_option("-l", parsed.listen, "listen on this address, or unix:PATH (127.0.0.1)")
      ->type_name("ADDRESS")
      ->take_last();
  c.add_option("-p", parsed.port, "listen on this port (11300); 0: any free port")
      ->type_name("PORT")
      ->take_last();
  c.add_option("-b", parsed.folder, "store the jobs in this folder; without it: in memory")
      ->type_name("FOLDER")
      ->take_last();
  const CLI::Option* const fsync =
      number_option(c, "-f", parsed.fsync_ms,
                    "with -b: sync at most once in this many milliseconds (50); 0: before every "
                    "reply; more than an hour is reduced to an hour",
                    std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max())
          ->type_name("MS")
          ->take_last();
  const CLI::Option* const no_fsync = c.add_flag(
      "-F", parsed.never_fsync, "with -b: never sync; of -f and -F the last one applies");
  c.parse_complete_callback(
      [&c, &parsed, fsync, no_fsync] { parsed.never_fsync = is_last(c, no_fsync, fsync); });
  number_option(
      c, "-z", parsed.job_bytes_max,
      "the largest job, in bytes (65535); more than 4 MiB is reduced to 4 MiB; 0: empty jobs only",
      std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max())
      ->type_name("BYTES")
      ->take_last();
  c.add_option("-s", parsed.binlog_max, "shown in stats as binlog-max-size; no other effect")
      ->type_name("BYTES")
      ->take_last();
  c.add_flag("-c", parsed.ignored, "no effect: space is always reused");
  c.add_flag("-n", parsed.ignored, "no effect: space is always reused");
  c.add_option("-u", parsed.user, "switch to this user after binding; it owns all files")
      ->type_name("USER")
      ->take_last();
  c.add_flag("-V", parsed.verbose, "log more; twice: all messages");
  c.add_flag("-v", parsed.version, "print the version");
  c.add_option("--http", parsed.http, "serve HTTP too, on HOST:PORT (off)")->type_name("HOST:PORT");
  c.add_option("--port-file", parsed.port_file, "write the ports to this file once it listens")
      ->type_name("FILE");
}

}  // namespace sluice::jobs::cli::detail
