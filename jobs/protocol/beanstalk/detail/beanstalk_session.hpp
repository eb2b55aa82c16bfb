#pragma once

// What one beanstalk client is to the server: the tube that it uses, those that it watches, and the
// jobs that it has reserved.
//
// Parses, calls the engine, answers; it decides nothing about jobs. What a client sends in one go
// is handed over in one go: puts that follow one another are one push_many, deletes of reserved
// jobs one ack_many, and a reserve asks for as many jobs as reserves like it follow with nothing
// but deletes of jobs between them that are reserved already.
//
// Order: a command begins when those before it are finished, so its effect is that of a server that
// does one after the other. Three exceptions that no client can tell: puts go together, deletes of
// reserved jobs go together, and so do reserves as above. A fourth: a reserve begins while deletes
// before it are being committed, and when there is nothing for it, it asks once more after them; so
// only a client with jobs of other protocols that wait for one another, or in queues with a limit
// on how many run, can tell, from a reserve that gets a less urgent job than the delete set free.
// What concerns the connection alone (use, watch, errors ...) is answered at once; client::open
// keeps the replies in order. While a reserve waits for a job nothing behind it begins.

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
  beanstalk_session(protocol::client& to, server_state& server);
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
    reply to = 0;
    reserved_job it{};
  };

  // Input.
  std::size_t step(std::string_view in);
  std::size_t skip_body(std::string_view in);
  void end_skip();
  std::size_t skip_line(std::string_view in);
  bool is_finished() const;  // all that came before
  std::size_t hang_up(std::size_t used);
  bool may_begin(const command& c);
  void run(const command& c, std::string_view line, std::string_view after);
  void flush();
  void leave();

  // Puts.
  std::size_t put(const command& c, std::size_t line_bytes, std::string_view in);
  job_spec spec_of(const command& c, std::string_view body) const;
  void flush_puts();
  void puts_ended(const std::vector<reply>& to, tube& in,
                  settled<std::vector<result<push_receipt>>> ended);

  // Reserves.
  void reserve(const command& c, std::string_view line, std::string_view after);
  std::size_t count_like(std::string_view line, std::string_view after, std::size_t most);
  void ask();
  void ask_after_deletes();
  bool asked(result<leased> got);  // false: ask again
  void give_back_beyond(std::size_t bytes_max);
  leased_job take_granted();
  void set_waiting(bool is);
  unix_time first_end();  // of what is reserved; those whose time is over are forgotten
  void hand_over(reply to, leased_job job);
  void reserve_job(const command& c);
  void reserve_found(reply to, const job& it);

  // Ends of reserved jobs.
  void delete_job(const command& c);
  void flush_deletes();
  void deletes_ended(std::vector<pending_delete> batch, settled<std::vector<void_result>> ended);
  void delete_unreserved(reply to, job_id id);
  void release_job(const command& c);
  void bury(const command& c);
  void touch(const command& c);
  reserved_job take_reserved(job_id id);
  void keep_reserved(reserved_job it);  // that could not be ended after all
  void give_back(std::vector<lease_ref> leases);

  // Tubes, and what is looked at.
  void use(const command& c);
  void watch(const command& c);
  void ignore(const command& c);
  void pause_tube(const command& c);
  void peek(const command& c);
  void kick(const command& c);
  void kick_job(const command& c);
  void stats_job(const command& c);
  void stats_tube(const command& c);
  void look_at_all(const command& c);
  void list_watched();

  // Replies.
  void say_text(std::string_view yaml);
  void answer_job(reply to, std::string_view word, const job& j);
  void answer_number(reply to, std::string_view word, std::uint64_t number);

  // A call that nothing behind it may overtake.
  template <class T, class Then>
  void call(future<T> answer, Then then) {
    ++other_calls_;
    to_.when_done(std::move(answer), [this, then = std::move(then)](settled<T> ended) mutable {
      --other_calls_;
      then(std::move(ended));
    });
  }

  protocol::client& to_;
  server_state& server_;
  const std::string address_;

  tube_ptr used_;
  std::vector<tube_ptr> watched_;
  std::vector<std::string> watched_queues_;
  reserved_jobs reserved_;
  unix_time earliest_;  // no reserved job ends before; looked up anew when it is near

  // Input.
  std::size_t needs_ = 0;
  std::uint64_t skip_left_ = 0;  // of a body that is too big
  reply skip_reply_ = 0;
  bool in_long_line_ = false;  // the rest of a line that was too long is to be dropped
  bool no_more_input_ = false;
  bool is_resting_ = false;  // has done much, and goes on after others
  bool is_over_ = false;     // nothing more is begun

  // Gathered in this consume, and not with the engine yet.
  std::vector<job_spec> puts_;
  std::vector<reply> put_replies_;
  std::vector<pending_delete> deletes_;
  std::uint64_t put_bytes_ = 0;  // of puts that are not answered

  // With the engine.
  std::size_t put_calls_ = 0, delete_calls_ = 0, other_calls_ = 0;

  // The reserve that is being served, and jobs that came for those behind it.
  reply asking_ = 0;
  verb asking_verb_ = verb::reserve;
  time_point ask_until_{};
  std::size_t ask_max_ = 1;
  bool is_asking_ = false;   // ... and has no answer
  bool is_waiting_ = false;  // ... and is counted as such
  bool asks_after_deletes_ = false;
  std::stop_source call_off_;
  leased granted_;  // the last is next
  std::size_t granted_bytes_ = 0;

  bool is_producer_ = false, is_worker_ = false;
  bool is_gone_ = false;  // after the connection or a quit: holds nothing, is not counted
  std::string scratch_;
};

}  // namespace sluice::jobs::beanstalk
