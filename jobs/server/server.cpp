#include "jobs/server/server.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "jobs/deliver/delivery_metrics.hpp"
#include "jobs/json/text.hpp"
#include "jobs/net/listener.hpp"
#include "jobs/server/descriptor_shares.hpp"
#include "jobs/server/detail/server_impl.hpp"
#include "jobs/server/shell_word.hpp"
#include "jobs/store/memory/memory_store.hpp"
#include "jobs/store/sqlite/sqlite_store.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::jobs {
namespace {

namespace fs = std::filesystem;

// Private: jobs contain data of producers.
constexpr mode_t private_folder = 0700;

// Time at the end for responses in progress; a client that does not read in time loses only the
// response.
constexpr milliseconds last_responses{5'000};

// Polling interval at the end for jobs held by connections of beanstalk and Faktory.
constexpr milliseconds held_jobs_poll{20};

// Polling interval for tokens created or revoked by a command.
constexpr milliseconds tokens_poll{1'000};

error cannot_use(const std::string& folder, int why, std::string_view advice) {
  const error_code code = why == ENOENT   ? error_code::not_found
                          : why == ENOSPC ? error_code::disk_full
                                          : error_code::io_error;
  return {code, "cannot use the data folder " + folder + ": " + std::strerror(why) + "; " +
                    std::string(advice)};
}

void_result prepare_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), private_folder) != 0 && errno != EEXIST) {
    return cannot_use(folder, errno, "create its parent folder, or use another folder with --data");
  }
  struct stat found {};
  if (::stat(folder.c_str(), &found) != 0) {
    return cannot_use(folder, errno, "use another folder with --data");
  }
  if (!S_ISDIR(found.st_mode)) {
    return cannot_use(folder, ENOTDIR, "--data must be a folder");
  }
  if (::access(folder.c_str(), R_OK | W_OK | X_OK) != 0) {
    return cannot_use(folder, errno,
                      "give user " + std::to_string(::geteuid()) +
                          " access to it, or use another folder with --data");
  }
  return done{};
}

result<std::unique_ptr<store>> open_store(const server_options& o, event_log& log) {
  if (o.memory) return make_memory_store();
  if (auto ready = prepare_folder(o.data); !ready) return ready.error();
  return open_sqlite({.path = (fs::path(o.data) / "jobs.db").string(),
                      .sync = o.sync,
                      .on_notice = [&log](const store_notice& n) {
                        n.is_damage ? log.error("store is damaged", {{"what", n.text}})
                                    : log.info("store", {{"what", n.text}});
                      }});
}

std::string_view name_of(int signal) {
  switch (signal) {
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGHUP:
      return "SIGHUP";
    case SIGUSR1:
      return "SIGUSR1";
    case SIGUSR2:
      return "SIGUSR2";
    default:
      return "a signal";
  }
}

queue_counts sum_of(const std::vector<queue_info>& queues) {
  queue_counts sum;
  for (const queue_info& q : queues) {
    sum.ready += q.counts.ready;
    sum.scheduled += q.counts.scheduled;
    sum.held += q.counts.held;
    sum.running += q.counts.running;
    sum.retrying += q.counts.retrying;
    sum.dead += q.counts.dead;
  }
  return sum;
}

std::string_view loss_of(const server_options& o) {
  if (o.memory) return "nothing is stored: all jobs are lost when the server ends";
  switch (o.sync) {
    case sync_mode::full:
      return "a job is on disk before it is acknowledged";
    case sync_mode::interval:
      return "a power cut may lose the jobs of the last sync interval";
    case sync_mode::off:
      break;
  }
  return "a power cut may lose jobs that the system has not written to disk";
}

}  // namespace

void_result server::impl::open() {
  const auto began = seam::now();
  raise_descriptor_limit();
  auto audit = audit_log::open(options_.audit_file, options_.log);
  if (!audit) return audit.error();
  audit_ = *std::move(audit);
  auto keep = open_store(options_, log_);
  if (!keep) return keep.error();
  if (options_.serves_http) {
    if (auto loaded = load_initial_tokens(); !loaded) return loaded;
  }
  engine_options e = options_.engine;
  if (!options_.memory && options_.sync == sync_mode::interval) {
    e.flush_every = options_.sync_interval;
  }
  e.on_health = [this](const health& now) { log_health(now); };
  auto rules = url_rules::parse(options_.delivery.allow);
  if (!rules) return error{rules.error().code, "delivery.allow: " + rules.error().message};
  rules_.with([&](url_rules& r) { r = *rules; });
  e.check_url = [this](std::string_view url) {
    return rules_.with([&](const url_rules& r) { return r.check(url); });
  };
  e.on_queue_change = [this] {
    posts_.with([](std::unique_ptr<deliverer>& posts) {
      if (posts != nullptr) posts->refresh();
    });
  };
  auto opened = engine::open(std::move(*keep), std::move(e));
  if (!opened) return opened.error();
  engine_ = std::move(*opened);

  if (options_.memory) {
    log_.warn("nothing is stored", {{"memory", "grows with the waiting jobs"},
                                    {"bound", "sluice queues set NAME --capacity-bytes SIZE"}});
  }
  const auto queues = engine_->queues();
  const queue_counts sum = sum_of(queues);
  log_.info("store open",
            {{"store", engine_->describe_store()},
             {"queues", queues.size()},
             {"ready", sum.ready},
             {"scheduled", sum.scheduled},
             {"held", sum.held},
             {"retrying", sum.retrying},
             {"leased", sum.running},
             {"dead", sum.dead},
             {"took", std::chrono::duration_cast<milliseconds>(seam::now() - began)}});
  if (auto opened_posts = open_delivery(); !opened_posts) return opened_posts;
  return configure(options_);
}

http_server_options server::impl::http_options() {
  http_server_options o = options_.http;
  o.address = options_.listen.host;
  o.port = options_.listen.port;
  o.sockets = sockets_;
  o.version = SLUICE_VERSION;
  o.memory = memory_;
  if (is_secure()) o.tls = options_.tls;
  o.on_audit = [this](const audit_entry& e) {
    audit_->write(
        {.who = e.who, .from = e.from, .act = e.act, .outcome = std::to_string(e.status)});
  };
  o.more_metrics = [this](std::string& out) {
    posts_.with([&](std::unique_ptr<deliverer>& posts) {
      if (posts != nullptr) append_metrics(out, posts->stats());
    });
    write_protocol_metrics(out);
  };
  if (faktory_ != nullptr) {
    jobs::faktory_port& port = o.faktory.emplace();
    port.list = [this](const std::string& after, std::size_t limit) {
      return faktory_->workers(after, limit);
    };
    port.set_state = [this](const std::string& wid, worker_state state) {
      return faktory_->set_state(wid, state);
    };
  }
  o.on_intrusion = [this](const intrusion_notice& n) {
    log_.warn("requests with unknown tokens", {{"times", n.times}, {"from", n.from}});
  };
  return o;
}

void_result server::impl::listen(net::listening_sockets* sockets) {
  sockets_ = sockets;
  if (auto made = create_protocols(); !made) return made;
  if (options_.serves_http) {
    if (auto listens = listen_http(); !listens) return listens;
  }
  if (auto listens = listen_protocols(); !listens) return listens;
  if (sockets_ != nullptr) {
    for (const std::string& name : sockets_->close_unused()) {
      log_.warn("no setting uses a passed socket", {{"socket", name}});
    }
  }
  for (const std::string& warning : options_.warnings) log_.warn(warning);
  audit_->write({.who = "local", .from = "start", .act = "start " + addresses()});
  return done{};
}

// Returns the address of the socket that systemd or the previous process passed under this name,
// else `set`. Fails if a unit of systemd has another address than the configuration: clients of one
// of the two would not find the server.
result<listen_address> server::impl::passed_or(std::string_view name, const listen_address& set) {
  const auto given = sockets_ != nullptr ? sockets_->tcp_address(name) : std::nullopt;
  if (!given) return set;
  const listen_address at{given->address().to_string(), given->port()};
  const auto host = net::parse_address(set.host);
  const bool is_as_set = host && *host == given->address() && set.port == given->port();
  if (!is_as_set && set.port != 0 && set != listen_address{} && !sockets_->is_own(name)) {
    return error{error_code::invalid,
                 "systemd passed the socket '" + std::string(name) + "' on " + to_string(at) +
                     ", but the configured address is " + to_string(set) +
                     ": set ListenStream=" + to_string(set) +
                     " in its .socket unit, or set the address of the unit in the configuration"};
  }
  if (!is_as_set && set.port != 0) {
    log_.warn("using the passed socket instead of the configured address",
              {{"socket", name}, {"address", to_string(at)}, {"set", to_string(set)}});
  }
  return at;
}

void_result server::impl::listen_http() {
  const auto given = passed_or("http", options_.listen);
  if (!given) return given.error();
  options_.listen = *given;
  http_ = std::make_unique<http_server>(http_options());
  const auto port = http_->start(*engine_);
  if (!port) {
    http_.reset();
    return port.error();
  }
  options_.listen.port = *port;
  log_.info("listening", {{"url", url()}, {"pid", ::getpid()}});
  if (const auto shown = http_->certificate()) log_certificate(*shown);
  if (!is_loopback(address()) && !is_secure()) {
    log_.warn("tokens and jobs are sent unencrypted",
              {{"http", "plain, because of http.insecure"}});
  }
  return done{};
}

// Every connection and every post needs a descriptor, and many systems have a soft limit of 1024.
void server::impl::raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const descriptor_shares requested{
      .http = options_.serves_http ? options_.http.connections_max : 0,
      .beanstalk = options_.beanstalk.is_on() ? options_.beanstalk.connections_max : 0,
      .faktory = options_.faktory.is_on() ? options_.faktory.connections_max : 0,
      .posts = options_.delivery.concurrency};
  const rlim_t wanted = descriptors_for(requested);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= wanted) return;
  const descriptor_shares shares = share_descriptors(limit.rlim_cur, requested);
  if (shares.http > 0) options_.http.connections_max = shares.http;
  if (shares.beanstalk > 0) options_.beanstalk.connections_max = shares.beanstalk;
  if (shares.faktory > 0) options_.faktory.connections_max = shares.faktory;
  options_.delivery.concurrency = shares.posts;
  log_.warn("fewer connections than configured", {{"connections", shares.connections()},
                                                  {"deliveries", shares.posts},
                                                  {"descriptors", limit.rlim_cur}});
}

void server::impl::log_health(const health& now) {
  if (now.takes_pushes) {
    log_.info("store works again", {{"pushes", "accepted"}});
  } else {
    log_.error("store fails",
               {{"pushes", "rejected"}, {"code", to_string(now.code)}, {"reason", now.reason}});
  }
}

// Returns the signal that ends the server. Handles the other signals and sends the watchdog
// message.
int server::impl::wait_for_end_signal(signal_watch& signals) {
  systemd_.ready("listening on " + addresses());
  for (;;) {
    const auto every = systemd_.watchdog();
    const milliseconds nap = every ? std::min(*every / 2, tokens_poll) : tokens_poll;
    const auto woken = signals.wait(deadline::after(nap));
    if (woken.cause == signal_watch::woken::by::deadline) {
      send_alive();
      if (http_ != nullptr && detail::file_stamp::of(token_file_of(options_)) != tokens_stamp_) {
        const auto outcome = reload_tokens();
        const std::string problem = outcome ? "" : outcome.error().message;
        if (outcome || problem != tokens_problem_) {  // logs each error once
          log_reload("tokens", token_file_of(options_), outcome);
        }
        tokens_problem_ = problem;
      }
    } else if (woken.number == SIGHUP) {
      reload();
    } else if (woken.number == SIGUSR1) {
      drain();
    } else if (woken.number != SIGUSR2 || may_restart()) {
      return woken.number;
    }
  }
}

// Calls the engine first: the call returns only if the engine is not stuck.
void server::impl::send_alive() {
  [[maybe_unused]] const auto stats = engine_->stats();
  if (systemd_.watchdog()) systemd_.alive();
}

// Returns when `shut_down` has ended, or on a second signal. Sends the watchdog message meanwhile:
// a stop may take longer than its period.
signal_watch::woken server::impl::wait_until_stopped(signal_watch& signals) {
  const auto every = systemd_.watchdog();
  for (;;) {
    const auto woken = signals.wait(every ? deadline::after(*every / 2) : deadline::never());
    if (woken.cause == signal_watch::woken::by::deadline) {
      send_alive();
    } else if (woken.number != SIGHUP && woken.number != SIGUSR1 && woken.number != SIGUSR2) {
      return woken;
    }
  }
}

// The next program reads the configuration. A wrong configuration must not end this server.
bool server::impl::may_restart() {
  std::string why;
  if (sockets_ == nullptr || !reloader_) {
    why = "this server has no program to restart with";
  } else if (const health now = engine_->health(); now.code == error_code::corrupt) {
    why = "stop the server and repair the store: " + now.reason;
  } else if (options_.memory) {
    why = "nothing is stored (--memory): all jobs would be lost";
  } else if (const auto fresh = reloader_(); !fresh) {
    why = fresh.error().message;
  }
  if (why.empty()) return true;
  log_.error("restart rejected", {{"signal", "SIGUSR2"}, {"reason", why}});
  return false;
}

server::ending server::impl::serve(signal_watch& signals) {
  const int first = wait_for_end_signal(signals);
  const bool restarts = first == SIGUSR2;
  restarts ? systemd_.reloading() : systemd_.stopping("stopping");
  if (sockets_ != nullptr) restarts ? sockets_->stay_open() : sockets_->close_own();
  audit_->write({.who = "local", .from = name_of(first), .act = restarts ? "restart" : "stop"});
  log_.info("shutting down", {{"signal", name_of(first)},
                              {"leased", engine_->stats().running},
                              {"grace", options_.shutdown_grace}});
  // On a separate thread, so that a second signal is handled even while this waits for a worker, a
  // client that does not read, or a disk that does not respond.
  stopping_ = seam::thread([this, &signals] {
    shut_down();
    signals.interrupt();
  });
  const auto woken = wait_until_stopped(signals);
  if (woken.cause == signal_watch::woken::by::signal) {
    log_.warn("ending at once",
              {{"signal", name_of(woken.number)}, {"leased", engine_->stats().running}});
    stop_now_.request_stop();
    return {.at_once = true, .signal = woken.number};
  }
  stopping_ = {};  // joins
  const bool is_damaged = engine_->health().code == error_code::corrupt;
  return {.restarts = restarts && !is_damaged, .has_damaged_store = is_damaged, .signal = first};
}

// Accepts pushes until their connections end.
void server::impl::shut_down() {
  const auto began = seam::now();
  const auto limits = wait_limits(deadline::after(options_.shutdown_grace), stop_now_.get_token());
  if (!await_unsaved_work(limits)) {
    log_.warn("jobs did not finish in time", {{"leased", engine_->stats().running}});
  }
  log_.info("closing connections",
            {{"within", last_responses}, {"leased", engine_->stats().running}});
  stop();
  log_.info("stopped", {{"took", std::chrono::duration_cast<milliseconds>(seam::now() - began)}});
}

// Waits for posts in progress and for jobs held by connections of beanstalk and Faktory, which
// would otherwise be repeated. (Leases of the HTTP API are saved instead.) Returns false if the
// limits ended the wait.
bool server::impl::await_unsaved_work(const wait_limits& limits) {
  deliverer* const posts = posts_.with([](std::unique_ptr<deliverer>& p) { return p.get(); });
  posts->close();
  const bool posted = posts->drained(limits) == status::ok;
  if (beanstalk_ == nullptr && faktory_ == nullptr) return posted;
  if (http_ != nullptr) http_->close_intake();
  close_protocol_intake();
  engine_->close();  // no new leases, so the count below only decreases
  event never;
  while (protocol_jobs() > 0) {
    if (limits.deadline.passed() || limits.stop.stop_requested()) return false;
    (void)never.wait(wait_limits(deadline::after(held_jobs_poll), limits.stop));
  }
  return posted;
}

void server::impl::stop() {
  // Stopped without the lock, which the committing thread may acquire.
  auto posts = posts_.with([](std::unique_ptr<deliverer>& p) { return std::move(p); });
  if (posts != nullptr) (void)posts->stop(deadline::after(milliseconds(0)));
  // Ends waiting calls. Other requests are served until their connections end.
  if (engine_ != nullptr) engine_->close();
  const wait_limits limits(deadline::after(last_responses));
  {
    // Concurrently: each waits for its clients, and still accepts connections meanwhile.
    const seam::thread protocols([&] { stop_protocols(limits); });
    if (http_ != nullptr) http_->stop(limits);
  }
  if (engine_ != nullptr) engine_->stop();
}

std::string server::impl::banner(std::string_view program) const {
  const std::string sluice = shell_word(program);
  const queue_counts sum = sum_of(engine_->queues());
  const std::string at = url();
  const std::string flag = address() == listen_address{} ? "" : " --url " + at;
  std::string text = "sluice " SLUICE_VERSION " listens on " + at + "\n\n";
  text += "  store    " + engine_->describe_store() + "\n";
  text += "           " + std::string(loss_of(options_)) + "\n";
  text += "  waiting  " + std::to_string(sum.ready) + " ready, " + std::to_string(sum.scheduled) +
          " scheduled, " + std::to_string(sum.held) + " held, " + std::to_string(sum.retrying) +
          " to be retried; " + std::to_string(sum.dead) + " dead\n";
  const auto others = protocol_addresses();
  for (const std::string& place : others) {
    text += (place == others.front() ? "  also     " : "           ") + place + "\n";
  }
  if (others.empty()) {
    text +=
        "  also     for clients of beanstalkd and Faktory: --beanstalk :11300, --faktory :7419\n";
  }
  text += "\nPush a first job, from any language:\n";
  const std::string token =
      options_.http.tokens ? R"( -H "Authorization: Bearer $SLUICE_TOKEN")" : "";
  text += "  curl " + at + "/v1/jobs" + token + R"( -d '{"kind":"hello","args":{"name":"Ada"}}')" +
          "\n";
  text += "Run a program for each job, in any language:\n";
  text += "  " + sluice + " work --exec cat" + flag + "\n";
  text += "List the queues:\n";
  text += "  " + sluice + " queues" + flag + "\n\n";
  text += "Ctrl-C ends it and saves the workers' leases; a second signal ends it at once.\n";
  return text;
}

result<std::unique_ptr<server>> server::open(server_options options) {
  if (auto valid = validate(options); !valid) return valid.error();
  auto p = std::make_unique<impl>(std::move(options));
  if (auto opened = p->open(); !opened) return opened.error();
  return std::unique_ptr<server>(new server(std::move(p)));
}

server::server(std::unique_ptr<impl> p) : impl_(std::move(p)) {}

server::~server() = default;

void_result server::listen(net::listening_sockets* sockets) {
  return impl_->listen(sockets);
}

std::uint16_t server::port() const {
  return impl_->address().port;
}

std::uint16_t server::beanstalk_port() const {
  const auto& place = impl_->options().beanstalk.listen;
  return place ? place->port : std::uint16_t{0};
}

std::uint16_t server::faktory_port() const {
  const auto& place = impl_->options().faktory.listen;
  return place ? place->port : std::uint16_t{0};
}

std::string server::url() const {
  return impl_->url();
}

std::string server::banner(std::string_view program) const {
  return impl_->banner(program);
}

void server::on_reload(std::function<result<server_options>()> options) {
  impl_->on_reload(std::move(options));
}

server::ending server::serve(signal_watch& signals) {
  return impl_->serve(signals);
}

}  // namespace sluice::jobs
