#pragma once

// The session of one client of Faktory's work protocol: parses commands, calls the engine, replies.
//
// A command begins when the previous commands are finished, so a client can fetch the jobs that it
// pushed. Consecutive pushes share one call of the engine, and so do acks. While a FETCH waits, the
// connection is still read: the wait ends when the client disconnects.
//
// Everything runs on the thread of the client's loop.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/protocol/faktory/detail/calls.hpp"
#include "jobs/protocol/faktory/detail/faktory_job.hpp"
#include "jobs/protocol/faktory/detail/outcome.hpp"
#include "jobs/protocol/faktory/detail/shared_state.hpp"
#include "jobs/protocol/faktory/detail/sweep.hpp"
#include "jobs/protocol/session.hpp"
#include "sluice/base/deadline.hpp"

namespace sluice::jobs::faktory {

class faktory_session final : public protocol::session {
 public:
  static constexpr std::size_t line_bytes_max = std::size_t{4} << 20;
  // The limit before HELLO: an unidentified client gets no reserved memory.
  static constexpr std::size_t hello_bytes_max = std::size_t{64} << 10;

  faktory_session(shared_state& all, protocol::client& client);
  ~faktory_session() override;

  void begin() override;
  std::size_t consume(std::string_view in) override;
  std::size_t needs() const override { return needs_; }
  void end_of_input() override;
  void on_time() override;
  void finish_up() override;
  void gone() override;

 private:
  enum class run_kind : std::uint8_t { none, push, ack };
  struct verb_rule;
  static const verb_rule* rule_of(std::string_view word);

  struct waiting_push {
    std::uint64_t reply = 0;
    std::string jid{};
  };
  struct waiting_ack {
    std::uint64_t reply = 0;
    std::string jid{};
    held_job job{};
  };
  struct bulk_push;
  // Concurrent engine calls of one command.
  struct many_calls {
    std::size_t open = 1;                // pending calls, plus one for the command itself
    std::optional<error> first_error{};  // the command ends with it
    std::function<void()> then{};        // called when all calls have succeeded
  };

  // Reading.
  run_kind current_run() const;
  void run_command(const verb_rule* rule, std::string_view line);
  void begin_run();
  bool has_no_arguments(std::string_view verb, std::string_view rest);

  // Reply at once.
  void respond_ok();
  void respond_error(std::string_view why);
  void respond_error(const error& why);
  // Complete an open reply.
  void answer_ok(std::uint64_t reply);
  void answer_error(std::uint64_t reply, const error& why);
  // Complete the reply of the current command; the next command may begin.
  void begin_command();
  void finish_ok();
  void finish_error(const error& why);
  void finish_bulk(std::string_view bytes);
  void finish_null();
  // Waits for `answer`, then replies with OK or the error.
  template <class T>
  void finish_when(future<result<T>> answer);

  // Commands; `rest` is the text behind the verb.
  void hello(std::string_view rest);
  void push(std::string_view rest);
  void push_bulk(std::string_view rest);
  void fetch(std::string_view rest);
  void ack(std::string_view rest);
  void fail(std::string_view rest);
  void beat(std::string_view rest);
  void info(std::string_view rest);
  void flush(std::string_view rest);
  void end(std::string_view rest);
  void queue(std::string_view rest);
  void mutate(std::string_view rest);
  void track(std::string_view rest);
  void batch(std::string_view rest);

  void check_password(hello_call call);
  void welcome(const hello_call& call);
  void refuse_hello(const error& why);
  void begin_pushes();
  void begin_acks();
  void push_next(const std::shared_ptr<bulk_push>& b);
  void lease_next();
  void on_leased(result<std::vector<leased_job>> got);
  void on_dropped(const lease_ref& lease, const void_result& got);
  void send_job(const leased_job& job, const job_facts& facts);
  void on_failed(const std::string& jid, const held_job& job, const result<fail_receipt>& got);
  void restore_job(const std::string& jid, const held_job& job);
  void write_info();
  template <class T>
  void end_call(many_calls& calls, const result<T>& got);
  void purge_next(std::vector<queue_info> queues);
  void pause_next(std::vector<std::string> names, queue_patch patch);
  void remove_next(std::vector<std::string> names);
  void track_get(std::string_view jid);
  void track_set(std::string_view json);
  void finish_track(const track_call& call, const lease_ref& lease,
                    const std::optional<progress>& new_progress);
  void batch_new(std::string_view json);
  void batch_open(job_id id);
  void batch_status(job_id id);
  void write_batch_status(const batch_info& info, const batch_table::entry& known,
                          std::string_view success, std::string_view complete);
  std::string_view error_of_push(const push_receipt& receipt) const;
  void wake_in_time();
  // Calls `f` in a later turn of the loop. At most one function at a time, of the current command.
  void defer(std::function<void()> f);
  sweep_request sweep_of(sweep_request::act action);
  void stop_fetch();
  void reply_null_later();
  void schedule_beat_check();
  void hang_up(std::string_view why);
  void end_session();
  void leave();

  shared_state& all_;
  protocol::client& client_;
  const workers::connection me_;
  std::string salt_{};  // not empty: a password is required
  std::string password_{};
  std::string name_{};  // of the worker, for people

  bool is_identified_ = false;
  bool is_busy_ = false;         // a command is in progress
  bool is_ended_ = false;        // no command begins any more
  bool has_left_ = false;        // holds no jobs: the connection closed, or it sent END
  bool is_clean_leave_ = false;  // it sent END, or the server stops
  std::size_t searched_ = 0;     // bytes at the front of the input without a line end
  std::size_t needs_ = 0;
  std::uint64_t reply_ = 0;  // of the current command
  std::string out_{};        // for one reply

  // Consecutive commands of one kind.
  std::vector<waiting_push> pushes_{};
  std::vector<job_spec> specs_{};
  std::vector<waiting_ack> acks_{};

  // The current FETCH.
  std::vector<std::string> fetch_queues_{};
  deadline fetch_until_{};
  bool no_more_input_ = false;
  time_point null_at_ = time_point::max();        // when a FETCH without a lease call ends
  time_point beat_check_at_ = time_point::max();  // when the worker's beats are checked
  std::stop_source fetch_stop_{std::nostopstate};
  std::uint64_t queues_last_seen_ = 0;  // number of queues at the last INFO
  std::function<void()> deferred_{};
  std::stop_source sweep_stop_{std::nostopstate};  // of a MUTATE or QUEUE REMOVE
};

template <class T>
void faktory_session::finish_when(future<result<T>> answer) {
  begin_command();
  client_.when_done(std::move(answer), [this](settled<result<T>> ended) {
    const auto got = outcome_of(std::move(ended));
    got ? finish_ok() : finish_error(got.error());
  });
}

}  // namespace sluice::jobs::faktory
