#pragma once

// The job server: a store, the engine on it, and HTTP and the protocols of beanstalkd and Faktory.
// This is the only place that names concrete parts.
//
// Guarantees: `open` acquires the store exclusively; only then does `listen` bind the address, so
// that no client reaches a server that cannot serve. `serve` returns when the server has ended,
// with the reason. Acknowledged changes are durable however the process ends; an orderly shutdown
// only saves workers from repeating work. Threads: the engine's committing thread and the event
// loops; the caller of `serve` sleeps.
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
  // Fails with `invalid` (options, or tokens that other users can read), `not_found` or `io_error`
  // (data folder), or `locked`, `corrupt`, `disk_full` or `io_error` (store).
  static result<std::unique_ptr<server>> open(server_options options);
  ~server();  // orderly, without waiting for leases
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  // Call once. Fails with `invalid` (also for an address beyond loopback without a token or TLS),
  // or `unavailable` if the address cannot be bound. With `sockets`, which must outlive the server:
  // uses those named "http", "beanstalk", "beanstalk-socket" and "faktory", opens the others and
  // adds them.
  void_result listen(net::listening_sockets* sockets = nullptr);
  std::uint16_t port() const;            // after listen
  std::uint16_t beanstalk_port() const;  // 0: not on TCP
  std::uint16_t faktory_port() const;    // 0: off
  std::string url() const;               // http://127.0.0.1:7433, or https
  // Returns the text printed at the start: its addresses, its store, and commands to
  // push and run a first job, with `program` as the shell finds it.
  std::string banner(std::string_view program = "sluice") const;

  // `options` is called on SIGHUP and returns the current options, whose queue settings and cron
  // entries are applied. Without it, SIGHUP reloads only tokens and the certificate.
  void on_reload(std::function<result<server_options>()> options);

  struct ending {
    // A second signal: the caller should exit at once; waiting for jobs and saving leases were
    // given up. No acknowledged change is lost.
    bool at_once = false;
    // SIGUSR2: the caller should replace this process by the installed program, which inherits the
    // sockets (listening_sockets::pass_on).
    bool restarts = false;
    // The store was found damaged, deleted or replaced, and an operator must act. Never restarts.
    bool has_damaged_store = false;
    int signal = 0;  // the signal that ended it
  };
  // Serves until a signal; SIGHUP (reload) and SIGUSR1 (beanstalk rejects puts) do not end it.
  // Then waits up to options::shutdown_grace for posts in progress and for jobs held by
  // connections of beanstalk and Faktory; replies to waiting calls, closes connections, saves
  // leases, commits everything and closes the store. Pushes are accepted until their connection
  // ends. A second signal is handled at any time. `signals` must outlive the server.
  ending serve(signal_watch& signals);

 private:
  class impl;
  explicit server(std::unique_ptr<impl> p);

  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs
