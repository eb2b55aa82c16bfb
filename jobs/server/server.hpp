#pragma once

// The job server as a whole: a store, the engine on it, and in front of it HTTP and the protocols
// of beanstalkd and Faktory. This is the only place that names concrete parts.
//
// Guarantees: `open` takes the store and makes sure that nobody else has it; only then does
// `listen` take the address, so that nobody is answered by a server that cannot serve. `serve`
// returns when the server has ended, and says how. What was acknowledged is durable whatever ends
// the process: shutting down in order only spares workers from doing something twice. Threads: the
// engine's committing thread and those of HTTP; the caller of `serve` sleeps.
//
//     signal_watch signals({SIGTERM, SIGINT, SIGHUP, SIGUSR1});
//     auto server = server::open({.data = "data"});
//     if (!server) return complain(server.error());
//     if (auto listens = (*server)->listen(); !listens) return complain(listens.error());
//     std::puts((*server)->banner().c_str());
//     auto end = (*server)->serve(signals);

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "jobs/engine/engine.hpp"
#include "jobs/model/result.hpp"
#include "jobs/server/server_options.hpp"
#include "jobs/server/signal_watch.hpp"

namespace sluice::jobs::net {
class listening_sockets;
}

namespace sluice::jobs {

class server {
 public:
  // invalid: the options, or tokens that others can read; not_found, io_error: the data folder;
  // locked, corrupt, disk_full, io_error: the store.
  static result<std::unique_ptr<server>> open(server_options options);
  ~server();  // in order, without waiting for leases
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  // invalid (also: others could reach it, and there is no token or no TLS), or unavailable when the
  // address cannot be had. Once. With `sockets`, which must outlive the server: listens on those
  // named "http", "beanstalk", "beanstalk-socket" and "faktory", opens the others and adds them.
  void_result listen(net::listening_sockets* sockets = nullptr);
  std::uint16_t port() const;            // after listen
  std::uint16_t beanstalk_port() const;  // zero: not on TCP
  std::uint16_t faktory_port() const;    // zero: off
  std::string url() const;               // http://127.0.0.1:7433, or https
  // What a person wants to know who has just started it, and how to push and work a first job:
  // lines for a shell, with `program` as the shell finds it.
  std::string banner(std::string_view program = "sluice") const;

  // Called on SIGHUP for the options as they are by then: the settings of queues and the cron
  // entries in them are applied. Without one, SIGHUP loads tokens and the certificate only.
  void on_reload(std::function<result<server_options>()> options);

  struct ending {
    // A second signal: the caller should end the process without further ado, since what is left
    // (waiting for the end of jobs, saving leases) was given up. Nothing acknowledged is lost.
    bool at_once = false;
    // SIGUSR2: the caller should replace this process by the program as it is installed now, which
    // inherits the sockets (listening_sockets::pass_on).
    bool restarts = false;
    // The store was found damaged, deleted or replaced, and an operator must act. Never restarts.
    bool has_damaged_store = false;
    int signal = 0;  // that ended it
  };
  // Until a signal. SIGHUP (reloads settings) and SIGUSR1 (makes beanstalk refuse puts) do not end
  // it. Then: posts that are under way and jobs that connections of beanstalk and Faktory hold may
  // end, up to options::shutdown_grace; waiting calls are answered, connections end, leases are
  // saved, all is committed and the store is closed. Pushes are taken until their connection ends.
  // A second signal is noticed at any time of that. `signals` must outlive the server.
  ending serve(signal_watch& signals);

 private:
  class impl;
  explicit server(std::unique_ptr<impl> it);

  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
