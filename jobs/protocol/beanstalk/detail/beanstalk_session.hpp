#pragma once

// The state of one beanstalk client: the tube that it uses, the tubes that it watches, and its
// reserved jobs.
//
// Parses commands, calls the engine, replies; makes no decisions about jobs. Pipelined commands are
// combined: consecutive puts are one push_many, deletes of reserved jobs are one ack_many, and a
// reserve leases jobs for all equal reserves that follow with only deletes of reserved jobs between
// them.
//
// Order: a command begins when the previous commands are finished, so the effect is that of a
// server that executes one after the other. Three exceptions cannot be observed: puts, deletes of
// reserved jobs, and reserves are combined as above. A fourth can: a reserve begins while previous
// deletes are being committed, and leases again after them if it found no job. If such a delete
// makes a more urgent job available (a dependent job of another protocol, or a queue with a limit
// of running jobs), the reserve may get a less urgent one. Commands about the connection only (use,
// watch, errors ...) are answered at once; client::open keeps the replies in order. While a reserve
// waits for a job, no later command begins.

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/protocol/beanstalk/detail/command.hpp"
#include "jobs/protocol/beanstalk/detail/reserved_jobs.hpp"
#include "jobs/protocol/beanstalk/detail/server_state.hpp"
#include "jobs/protocol/session.hpp"

namespace sluice::jobs::beanstalk {

class beanstalk_session final : public protocol::session {
 public:
  beanstalk_session(protocol::client& client, server_state& server);
  ~beanstalk_session() override;

  std::size_t consume(std::string_view in) override;
  std::size_t needs() const override { return needs_; }
  std::size_t held_bytes() const override { return granted_bytes_; }
  void end_of_input() override;
  void on_time() override;
  void finish_up() override;
  void gone() override;

 private:
  using reply = std::uint64_t;
  using leased = std::vector<leased_job>;
  struct pending_delete {
    reply number = 0;
    reserved_job job{};
  };

  // Input.
  std::size_t step(std::string_view in);
  std::size_t skip_body(std::string_view in);
  void end_skip();
  std::size_t skip_line(std::string_view in);
  bool is_finished() const;  // whether all previous commands are
  std::size_t hang_up(std::size_t used);
  bool may_begin(const command& c);
  void run(const command& c, std::string_view line, std::string_view after);
  void flush();
  void leave();

  // Puts.
  std::size_t put(const command& c, std::size_t line_bytes, std::string_view in);
  job_spec spec_of(const command& c, std::string_view body) const;
  void flush_puts();
  void puts_ended(const std::vector<reply>& replies, tube& target,
                  settled<std::vector<result<push_receipt>>> ended);

  // Reserves.
  void reserve(const command& c, std::string_view line, std::string_view after);
  std::size_t count_following(std::string_view line, std::string_view after, std::size_t most);
  void request_lease();
  void retry_after_deletes();
  bool on_leased(result<leased> got);  // returns false to lease again
  void release_granted_beyond(std::size_t bytes_max);
  leased_job take_granted();
  void set_waiting(bool waits);
  unix_time first_end();  // drops expired leases; returns the earliest end of the rest
  void send_reserved(reply number, leased_job job);
  void reserve_job(const command& c);
  void reserve_found(reply number, const job& j);

  // Ends of reserved jobs.
  void delete_job(const command& c);
  void flush_deletes();
  void deletes_ended(std::vector<pending_delete> deletes, settled<std::vector<void_result>> ended);
  void delete_unreserved(reply number, job_id id);
  void release_job(const command& c);
  void bury(const command& c);
  void touch(const command& c);
  reserved_job take_reserved(job_id id);
  void keep_reserved(reserved_job job);  // after the engine failed to end it
  void release_leases(std::vector<lease_ref> leases);

  // Tubes, and commands that only read.
  void use(const command& c);
  void watch(const command& c);
  void ignore(const command& c);
  void pause_tube(const command& c);
  void peek(const command& c);
  void kick(const command& c);
  void kick_job(const command& c);
  void stats_job(const command& c);
  void stats_tube(const command& c);
  void report_all(const command& c);
  void list_watched();

  // Replies.
  void respond_text(std::string_view yaml);
  void answer_job(reply number, std::string_view word, const job& j);
  void answer_number(reply number, std::string_view word, std::uint64_t value);

  // Calls `then` with the result. No later command begins before.
  template <class T, class Then>
  void call(future<T> answer, Then then) {
    ++other_calls_;
    client_.when_done(std::move(answer), [this, then = std::move(then)](settled<T> ended) mutable {
      --other_calls_;
      then(std::move(ended));
    });
  }

  protocol::client& client_;
  server_state& server_;
  const std::string address_;

  tube_ptr used_;
  std::vector<tube_ptr> watched_;
  std::vector<std::string> watched_queues_;
  reserved_jobs reserved_;
  unix_time earliest_;  // lower bound of the ends of reserved jobs; computed again when it is near

  // Input.
  std::size_t needs_ = 0;
  std::uint64_t skip_left_ = 0;  // remaining bytes of a body that is too big
  reply skip_reply_ = 0;
  bool in_long_line_ = false;  // drop the rest of a line that was too long
  bool no_more_input_ = false;
  bool has_yielded_ = false;  // continues in a later turn of the loop
  bool is_ended_ = false;     // no command begins any more

  // Collected in this `consume`, and not passed to the engine yet.
  std::vector<job_spec> puts_;
  std::vector<reply> put_replies_;
  std::vector<pending_delete> deletes_;
  std::uint64_t put_bytes_ = 0;  // of puts without a reply

  // Pending calls of the engine.
  std::size_t put_calls_ = 0, delete_calls_ = 0, other_calls_ = 0;

  // The current reserve, and jobs leased for the reserves behind it.
  reply reserve_reply_ = 0;
  verb reserve_verb_ = verb::reserve;
  time_point reserve_until_{};
  std::size_t reserve_max_ = 1;
  bool is_reserving_ = false;  // no reply yet
  bool is_waiting_ = false;    // counted as waiting
  bool retries_after_deletes_ = false;
  std::stop_source wait_stop_;
  leased granted_;  // the last is next
  std::size_t granted_bytes_ = 0;

  bool is_producer_ = false, is_worker_ = false;
  bool is_gone_ = false;  // after the connection closed, or a quit: holds no job, is not counted
  std::string scratch_;
};

}  // namespace sluice::jobs::beanstalk
