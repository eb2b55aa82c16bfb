#pragma once

// Pushes jobs line by line as they arrive, so that a body of any length takes little memory.
//
// Lines that are there are pushed as a group; while it is under way nothing more is read, and the
// sender waits. A line that is wrong is an error among the results, and does not hold up the
// others; with all_or_nothing it ends the request, and nothing was pushed.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/engine/engine.hpp"
#include "jobs/http/detail/handlers.hpp"
#include "jobs/http/detail/ticket.hpp"

namespace sluice::jobs::http {

class ndjson_push : public std::enable_shared_from_this<ndjson_push> {
 public:
  ndjson_push(server_state& server, engine& jobs, ticket to, push_parameters asked, identity who);

  // A part of the body. Only while it is hungry.
  void feed(std::string_view bytes);
  // The body is over; the answer comes when the last group has.
  void end();
  // Nobody will send the rest: what was not pushed yet never is.
  void abandon() noexcept { refused_ = true; }
  // How long the body may be.
  std::size_t bytes_max() const noexcept;
  // What it holds in memory, and what it may come to hold.
  std::size_t held_bytes() const noexcept { return pending_.size() + group_bytes_; }
  std::size_t held_bytes_max() const noexcept;
  std::size_t input_memory() const noexcept;
  std::size_t results_memory() const noexcept { return results_.memory(); }
  // Whether more of the body may be read.
  bool is_hungry() const noexcept { return !waits_ && !refused_; }
  // It was answered before its end: the rest of the body is not wanted.
  bool is_refused() const noexcept { return refused_; }

 private:
  void go_on();
  bool take_line(std::string_view line);
  void push_group();
  void push_all();
  void refuse(const error& why, const std::string& more = {});
  void finish();
  // Everything is gathered, and pushed when the last line is there.
  bool gathers() const noexcept { return asked_.mode == bulk::all_or_nothing; }
  std::string partly() const;  // what to say about those that were pushed before an error

  server_state& server_;
  engine& jobs_;
  const ticket to_;
  const push_parameters asked_;
  const identity who_;

  std::string pending_;  // what has come and was not looked at
  std::size_t looked_at_ = 0;
  std::size_t scanned_ = 0;  // no line end up to here
  std::size_t line_ = 0;     // how many were there
  std::vector<job_spec> group_;
  // Lines of the group that were wrong, with how many jobs of it stand before them.
  std::vector<std::pair<std::size_t, error>> wrong_;
  std::size_t group_bytes_ = 0;
  push_results results_;  // all that are known
  std::size_t jobs_count_ = 0;
  std::size_t wrong_count_ = 0;
  bool waits_ = false;
  bool ended_ = false;
  bool refused_ = false;
};

}  // namespace sluice::jobs::http
