#pragma once

// Pushes NDJSON jobs as they arrive, so that a body of any length takes little memory.
//
// Complete lines are pushed in groups; while a group is pushed, nothing is read, and the sender
// waits. An invalid line is an error among the results and does not affect the other lines; with
// all_or_nothing it ends the request, and nothing is pushed.

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
  ndjson_push(server_state& server, engine& jobs, ticket reply, push_parameters asked,
              identity caller);

  // Adds a part of the body. Must be called only while is_ready_for_more.
  void feed(std::string_view bytes);
  // The body is complete; the reply follows after the last group.
  void end();
  // The client has gone: jobs that were not pushed yet are dropped.
  void abandon() noexcept { refused_ = true; }
  // Returns the limit of the body.
  std::size_t bytes_max() const noexcept;
  // Return the bytes in memory, and their maximum.
  std::size_t held_bytes() const noexcept { return pending_.size() + group_bytes_; }
  std::size_t held_bytes_max() const noexcept;
  std::size_t input_memory() const noexcept;
  std::size_t results_memory() const noexcept { return results_.memory(); }
  // Returns whether more of the body may be read.
  bool is_ready_for_more() const noexcept { return !is_pushing_ && !refused_; }
  // Returns whether the request was refused before its end: the rest of the body is not read.
  bool is_refused() const noexcept { return refused_; }

 private:
  void push_lines();
  bool take_line(std::string_view line);
  void push_group();
  void push_all();
  void refuse(const error& why, const std::string& more = {});
  void finish();
  // If true, all jobs are collected and pushed after the last line.
  bool is_all_or_nothing() const noexcept { return asked_.mode == bulk::all_or_nothing; }
  std::string pushed_note() const;  // for an error: how many jobs were pushed before it

  server_state& server_;
  engine& jobs_;
  const ticket reply_;
  const push_parameters asked_;
  const identity caller_;

  std::string pending_;       // received and not parsed
  std::size_t consumed_ = 0;  // parsed prefix of pending_
  std::size_t scanned_ = 0;   // prefix of pending_ without a line end
  std::size_t line_ = 0;      // number of the last parsed line
  std::vector<job_spec> group_;
  // Errors of invalid lines, each with the number of jobs of the group before it.
  std::vector<std::pair<std::size_t, error>> invalid_;
  std::size_t group_bytes_ = 0;
  push_results results_;
  std::size_t jobs_count_ = 0;
  std::size_t invalid_count_ = 0;
  bool is_pushing_ = false;
  bool ended_ = false;
  bool refused_ = false;
};

}  // namespace sluice::jobs::http
