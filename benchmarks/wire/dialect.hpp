#pragma once

// What a load program has to know of a server's protocol, so that one program drives them all: how
// to say that jobs are to be stored, how to ask for jobs and be done with them, and how much of
// what the server says is a whole answer.
//
// A producer and a worker belong to one connection each. They write into the text that is sent
// next, and are shown all that was received and not understood before. Depth is the number of
// commands that a connection leaves unanswered; a command that finishes a job counts as one.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace sluice::bench {

inline constexpr std::string_view crlf = "\r\n";

inline constexpr std::size_t body_bytes = 100;

// A body of 100 bytes that says which job it is, and which job a body is.
void append_body(std::string& out, std::uint64_t number);
std::uint64_t number_of_body(std::string_view body);

class job_producer {
 public:
  virtual ~job_producer() = default;

  // Appends the command that stores the jobs from number `first` on: as many as the dialect says.
  virtual void put(std::string& out, std::uint64_t first) = 0;

  // Returns how many bytes of `in` are answered puts, and adds their number to `answered`. Ends the
  // bench when one was refused.
  virtual std::size_t heard(std::string_view in, std::uint64_t& answered) = 0;
};

// What the workers of a run have still to do, together, and have done.
struct work_log {
  std::uint64_t unclaimed = 0;  // jobs that nobody has asked for
  std::uint64_t finished = 0;
  std::function<void(std::string_view body)> started;  // for every job that a worker has read
};

class job_worker {
 public:
  virtual ~job_worker() = default;

  virtual void start(std::string& out, work_log& log) = 0;
  // Returns how many bytes of `in` were understood; appends what that leads to.
  virtual std::size_t heard(std::string_view in, std::string& out, work_log& log) = 0;
};

// What is said first, and how many lines that are no error come back.
struct opening {
  std::string text;
  std::size_t lines = 0;
};

class dialect {
 public:
  virtual ~dialect() = default;

  virtual opening once() const { return {}; }              // for the whole run, before all others
  virtual opening producer_opening() const { return {}; }  // on each of their connections
  virtual opening worker_opening() const { return {}; }
  virtual std::size_t jobs_a_put() const { return 1; }
  virtual std::unique_ptr<job_producer> producer() const = 0;
  virtual std::unique_ptr<job_worker> worker(std::size_t depth) const = 0;
};

}  // namespace sluice::bench
