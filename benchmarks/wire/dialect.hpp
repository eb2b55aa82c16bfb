#pragma once

// A server's protocol for the load program: how to store jobs, how to get and finish jobs, and how
// to recognize a complete reply. One program drives all servers.
//
// A producer and a worker belong to one connection each. They append to the text that is sent next,
// and get all bytes that were received and not yet consumed. Depth is the number of unanswered
// commands of a connection; a command that finishes a job counts as one.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace sluice::bench {

inline constexpr std::string_view crlf = "\r\n";

inline constexpr std::size_t body_bytes = 100;

// Appends a body of 100 bytes with the number of the job; and returns the number of a body.
void append_body(std::string& out, std::uint64_t number);
std::uint64_t number_of_body(std::string_view body);

class job_producer {
 public:
  virtual ~job_producer() = default;

  // Appends the command that stores the jobs from number `first` on: jobs_a_put() of them.
  virtual void put(std::string& out, std::uint64_t first) = 0;

  // Consumes the replies to puts in `in` and adds their number to `answered`. Returns the number of
  // consumed bytes. Ends the bench if a put was rejected.
  virtual std::size_t consume(std::string_view in, std::uint64_t& answered) = 0;
};

// The progress of all workers of a run.
struct work_log {
  std::uint64_t unclaimed = 0;  // jobs that no worker has requested yet
  std::uint64_t finished = 0;
  std::function<void(std::string_view body)> started;  // for every job that a worker has read
};

class job_worker {
 public:
  virtual ~job_worker() = default;

  virtual void start(std::string& out, work_log& log) = 0;
  // Consumes complete replies in `in` and appends the next commands. Returns the number of consumed
  // bytes.
  virtual std::size_t consume(std::string_view in, std::string& out, work_log& log) = 0;
};

// The first commands of a connection, and the number of lines of their successful reply.
struct opening {
  std::string text;
  std::size_t lines = 0;
};

class dialect {
 public:
  virtual ~dialect() = default;

  virtual opening once() const { return {}; }              // once for the run, before all others
  virtual opening producer_opening() const { return {}; }  // on each connection
  virtual opening worker_opening() const { return {}; }
  virtual std::size_t jobs_a_put() const { return 1; }
  virtual std::unique_ptr<job_producer> producer() const = 0;
  virtual std::unique_ptr<job_worker> worker(std::size_t depth) const = 0;
};

}  // namespace sluice::bench
