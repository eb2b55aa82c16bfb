#pragma once

// One client: reads its requests, hands them on, and writes the answers in the order of the
// requests.
//
// Everything runs on the loop's thread. Reads are into a buffer of the loop, so a connection that
// waits holds none. An event (bytes, answers, a deadline) ends in `pump`, which writes what can be
// written, reads what may be read, and says until when something must happen.

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/http/detail/loop.hpp"
#include "jobs/http/detail/ndjson_push.hpp"
#include "jobs/http/detail/request_parser.hpp"
#include "jobs/http/detail/ticket.hpp"
#include "jobs/net/client_memory.hpp"
#include "jobs/net/stream.hpp"
#include "jobs/net/unsent_bytes.hpp"

namespace sluice::jobs::http {

class connection final : public answerer, public net::peer {
 public:
  // `tls` null: plain HTTP.
  connection(loop& home, net::stream::socket_type socket,
             std::shared_ptr<const net::tls_context> tls = nullptr);

  void begin();
  // One connection too many: says so and ends.
  void begin_refused();

  // net::peer
  void pump() override;
  void on_deadline() override;
  void finish_up() override;
  void close() override;

  // answerer
  void answer(std::uint64_t number, response&& r) override;
  void begin_parts(std::uint64_t number, response&& head,
                   std::shared_ptr<part_source> source) override;
  bool put_part(std::uint64_t number, std::string_view bytes) override;
  void end_parts(std::uint64_t number) override;
  void keep(std::uint64_t number, std::size_t bytes) override;
  void begin_load(std::uint64_t number, unique_function<void()> then) override;
  void end_load(std::uint64_t number) override;
  void resume() override;
  executor& home() noexcept override { return loop_; }
  void call_begins() noexcept override { loop_.call_begins(); }
  void call_ended() noexcept override { loop_.call_ended(); }
  std::stop_token gone() override { return gone_.get_token(); }
  bool is_gone() const noexcept override {
    return closed_ || saw_end_ || (!is_reading() && client_.has_ended());
  }
  std::string& scratch() noexcept override { return loop_.scratch(); }

 private:
  // A request whose answer was not handed to the socket yet.
  struct slot {
    std::string bytes;  // the answer; or, while it is not ready, "100 Continue" or what of its
                        // parts was not handed on
    bool is_ready = false;
    bool is_last = false;  // the connection ends after it
    bool without_body = false;
    bool is_old = false;   // of HTTP/1.0
    bool is_full = false;  // its source waits until there is room
    bool is_long = false;  // a possibly long answer is being made
    std::shared_ptr<part_source> parts;
    const route* to = nullptr;
    std::vector<lease_ref> leases;
    std::uint64_t expected_bytes = 0;  // ... the size assumed for it until then
    bool is_loading = false;           // between begin_load and end_load
    std::size_t kept_bytes = 0;        // of the request, by its handler
    time_point held_until{};           // the answer is not sent before
    // Of a request that is audited; else empty.
    std::string who;
    std::string from;
    std::string act;
  };
  // A handler that waits in begin_load.
  struct load {
    std::uint64_t number;
    unique_function<void()> begin;
  };
  // Jobs of an answer that was not written to its end yet.
  struct unsent_leases {
    std::uint64_t end = 0;  // in bytes since the connection began
    std::vector<lease_ref> leases;
  };

  std::shared_ptr<connection> self() {
    return std::static_pointer_cast<connection>(shared_from_this());
  }

  // TLS. False: it goes on when the socket is ready, or the connection is closed.
  bool shake();
  void refuse_as_one_too_many();

  // Reading.
  bool wants_to_read() const noexcept;
  // Nothing more is read, but those whose answers are to come may go away.
  bool listens_for_the_end() const noexcept {
    return !closed_ && !saw_end_ && reads_no_more() && slots_open() > 0;
  }
  bool is_reading() const noexcept { return waits_readable_ || reads_soon_; }
  // Calls are under way, and the end of the client would not be read.
  bool must_watch_for_the_end() const noexcept {
    return !closed_ && !saw_end_ && !shaking_ && !lingers_ && !is_reading() && slots_open() > 0 &&
           !gone_.stop_requested();
  }
  void forget_what_is_read();
  void wait_readable();
  void read_on_soon();
  void on_readable();
  std::size_t consume(std::string_view in);
  std::size_t consume_rest();
  bool parse_some(std::string_view in, std::size_t& used);
  void begin_request();
  void note_progress();
  void end_request();
  void dispatch(std::string_view body);
  void begin_stream();
  // False: whoever asks may not, and was told.
  bool is_authorized();
  void refuse_token(const error& why);
  void note_for_audit();
  std::string client_address();
  void refuse_early(const error& why, int status, std::string_view headers = {});
  void refuse_bad_bytes(const boost::beast::error_code& ec, std::string_view in);
  void end_of_input();

  // Memory.
  void on_memory(net::client_memory::account::notice what);
  void count_memory();
  void wait_for_memory();
  bool has_memory() const noexcept;
  std::size_t unsent_bytes() const noexcept { return made_bytes_ + out_.size(); }
  bool is_short_of_memory(const slot& s) const noexcept;
  // A request with a possibly long answer waits until no other such answer is being made.
  bool must_hold_request() const noexcept;
  bool end_held_request();
  void begin_long_answer(const route& to, const request_head& head);
  void end_long_answer(slot& s);
  bool begin_next_load();
  // Handlers keep more than a short body: read no further request.
  bool keeps_much() const noexcept;
  bool must_drop_answer(const slot& s, const response& r) const noexcept;
  // For a long body.
  void ask_for_room();
  void leave_room();
  void begin_use_of_room();
  time_point must_have_come_on_by() const;

  // Answers.
  slot& at(std::uint64_t number) noexcept { return slots_[number % slots_.size()]; }
  std::uint64_t open_slot();
  std::size_t slots_open() const noexcept { return static_cast<std::size_t>(next_ - first_); }
  void let_parts_go_on();
  bool flush();
  void write();
  void wait_writable();
  void give_back(const std::vector<lease_ref>& leases);
  bool unsent() const noexcept { return !out_.empty(); }
  bool reads_no_more() const noexcept { return is_last_ || (ends_soon_ && !head_done_); }
  bool is_idle() const noexcept {
    return !shaking_ && !lingers_ && !parser_ && slots_open() == 0 && !unsent();
  }
  bool has_finished() const noexcept { return reads_no_more() && slots_open() == 0 && !unsent(); }
  std::string too_slow() const;
  void begin_linger();
  time_point input_deadline() const;
  void set_deadline();

  loop& loop_;
  net::stream client_;
  net::client_memory::account memory_;
  bool shaking_;  // TLS has not begun
  bool one_too_many_ = false;
  std::stop_source gone_;

  // Reading.
  std::optional<request_parser> parser_;
  std::string rest_;          // bytes that were read and may not be looked at yet
  bool head_done_ = false;    // of the request in parser_
  bool refused_ = false;      // ... which is answered already, or will be without its body
  routed routed_;             // ... and goes there
  identity who_;              // ... and is asked for by them
  std::uint64_t number_ = 0;  // ... and has this number
  std::shared_ptr<ndjson_push> stream_;
  bool is_held_ = false;               // the request was read whole and is not dispatched yet
  mutable bool lacks_memory_ = false;  // something was not done because has_memory was false
  enum class room : std::uint8_t { none, waits, has };
  room room_ = room::none;
  time_point room_since_{};             // when it had it, or could bring on again
  std::uint64_t body_before_room_ = 0;  // what of the body had come by then
  std::uint64_t window_from_ = 0;       // bytes of the body when since_ began
  bool waits_readable_ = false;
  bool is_readable_ = false;
  bool reads_soon_ = false;
  bool saw_end_ = false;    // of the client's bytes
  bool is_last_ = false;    // nothing more is read
  bool ends_soon_ = false;  // nothing more but the request that is being read

  // Answers.
  std::vector<slot> slots_;  // a ring; its size is a power of two
  std::uint64_t first_ = 0;
  std::uint64_t next_ = 0;
  std::size_t made_bytes_ = 0;    // of answers in slots_
  std::size_t long_answers_ = 0;  // that are being made
  std::size_t kept_bytes_ = 0;    // of all slots
  std::vector<load> loads_;       // that wait, in order
  net::unsent_bytes out_;
  std::vector<unsent_leases> unsent_leases_;
  bool waits_writable_ = false;

  bool lingers_ = false;
  bool closed_ = false;

  time_point since_{};    // the request, the body's last good progress, or being idle began
  time_point written_{};  // something was written last
  time_point lingers_until_{};
};

}  // namespace sluice::jobs::http
