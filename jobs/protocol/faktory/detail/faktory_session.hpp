#pragma once

// One client's conversation in Faktory's work protocol: reads commands, asks the engine, answers.
//
// A command begins when those before it are finished, so that what a client pushed it can fetch.
// Pushes that stand one behind the other are one push of many, and so are acks. While a FETCH
// waits, the client is still listened to: when it goes, the wait is called off.
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
  // Before it: who has not said who it is gets no memory that others wait for.
  static constexpr std::size_t hello_bytes_max = std::size_t{64} << 10;

  faktory_session(shared_state& all, protocol::client& to);
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
  // Calls of one command that are under way together.
  struct many_calls {
    std::size_t open = 1;          // that have not ended, and the command itself
    std::optional<error> wrong{};  // the first of them: the command ends with it
    std::function<void()> then{};  // when all have ended, and none was wrong
  };

  // Reading.
  run_kind run_under_way() const;
  void take(const verb_rule* rule, std::string_view line);
  void begin_run();
  bool has_no_arguments(std::string_view verb, std::string_view rest);

  // Answering at once.
  void say_ok();
  void say_error(std::string_view why);
  void say_error(const error& why);
  // Answering a reply that was opened before.
  void answer_ok(std::uint64_t reply);
  void answer_error(std::uint64_t reply, const error& why);
  // Answering the command that is under way; the next may begin.
  void begin_command();
  void finish_ok();
  void finish_error(const error& why);
  void finish_bulk(std::string_view bytes);
  void finish_null();
  // ... with nothing but whether it was done.
  template <class T>
  void finish_when(future<result<T>> answer);

  // Commands; `rest` is what stands behind the verb.
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

  void check_password(hello_call said);
  void welcome(const hello_call& said);
  void turn_away(const error& why);
  void begin_pushes();
  void begin_acks();
  void push_next(const std::shared_ptr<bulk_push>& b);
  void lease_next();
  void on_leased(result<std::vector<leased_job>> got);
  void on_dropped(const lease_ref& lease, const void_result& got);
  void hand_out(const leased_job& job, const job_facts& facts);
  void on_failed(const std::string& jid, const held_job& job, const result<fail_receipt>& got);
  void take_back(const std::string& jid, const held_job& job);
  void write_info();
  template <class T>
  void one_ended(many_calls& of, const result<T>& got);
  void purge_next(std::vector<queue_info> queues);
  void pause_next(std::vector<std::string> names, queue_patch patch);
  void remove_next(std::vector<std::string> names);
  void track_get(std::string_view jid);
  void track_set(std::string_view json);
  void finish_track(const track_call& said, const lease_ref& lease,
                    const std::optional<progress>& how_far);
  void batch_new(std::string_view json);
  void batch_open(job_id id);
  void batch_status(job_id id);
  void write_batch_status(const batch_info& info, const batch_table::entry& known,
                          std::string_view success, std::string_view complete);
  std::string_view error_of_push(const push_receipt& receipt) const;
  void wake_in_time();
  // Called when others have had their turn. One at a time, of the command that is under way.
  void in_next_turn(std::function<void()> f);
  sweep_request sweep_of(sweep_request::act what);
  void call_off_fetch();
  void find_nothing_for_a_while();
  void watch_beats();
  void hang_up(std::string_view why);
  void end_session();
  void leave();

  shared_state& all_;
  protocol::client& to_;
  const workers::connection me_;
  std::string salt_{};  // not empty: a password is asked for
  std::string password_{};
  std::string name_{};  // of the worker, for people

  bool is_identified_ = false;
  bool is_busy_ = false;      // a command is under way
  bool is_over_ = false;      // nothing more is begun
  bool has_left_ = false;     // holds nothing: the connection has gone, or it sent END
  bool leaves_well_ = false;  // ... after an END, or because the server ends
  std::size_t searched_ = 0;  // bytes at the front of what is left that have no line end
  std::size_t needs_ = 0;
  std::uint64_t reply_ = 0;  // of the command that is under way
  std::string out_{};        // for one reply

  // Commands of one kind that stand one behind the other.
  std::vector<waiting_push> pushes_{};
  std::vector<job_spec> specs_{};
  std::vector<waiting_ack> acks_{};

  // A FETCH that is under way.
  std::vector<std::string> fetch_queues_{};
  deadline fetch_until_{};
  bool no_more_input_ = false;
  time_point null_at_ = time_point::max();  // when a FETCH is told that there was nothing
  time_point look_at_ = time_point::max();  // ... and the beats of the worker are looked at
  std::stop_source fetch_stop_{std::nostopstate};
  std::uint64_t queues_last_seen_ = 0;  // by an INFO
  std::function<void()> next_turn_{};
  std::stop_source sweep_stop_{std::nostopstate};  // of a MUTATE or QUEUE REMOVE
};

template <class T>
void faktory_session::finish_when(future<result<T>> answer) {
  begin_command();
  to_.when_done(std::move(answer), [this](settled<result<T>> ended) {
    const auto got = outcome_of(std::move(ended));
    got ? finish_ok() : finish_error(got.error());
  });
}

}  // namespace sluice::jobs::faktory
