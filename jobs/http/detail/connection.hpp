#pragma once

// A client connection: reads requests, dispatches them, and writes the replies in request order.
//
// Everything runs on the loop's thread. Reads use a buffer of the loop, so an idle connection has
// none. Every event (bytes, replies, a deadline) ends in `pump`, which writes and reads as much as
// possible and sets the next deadline.

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
  // For a connection beyond the limit: replies with an error and ends.
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
  // A request whose reply was not moved to `out_` yet.
  struct slot {
    std::string bytes;  // the reply; before it is ready, "100 Continue" or parts of it
    bool is_ready = false;
    bool is_last = false;  // the connection ends after it
    bool without_body = false;
    bool is_old = false;   // HTTP/1.0
    bool is_full = false;  // its part_source waits for put_more
    bool is_long = false;  // a possibly long reply is being made
    std::shared_ptr<part_source> parts;
    const route* target = nullptr;
    std::vector<lease_ref> leases;
    std::uint64_t expected_bytes = 0;  // assumed size of a long reply until it is ready
    bool is_loading = false;           // between begin_load and end_load
    std::size_t kept_bytes = 0;        // bytes of the request that its handler keeps
    time_point held_until{};           // the reply is not sent before
    // For an audited request; else empty.
    std::string who;
    std::string from;
    std::string act;
  };
  // A handler that waits in begin_load.
  struct load {
    std::uint64_t number;
    unique_function<void()> begin;
  };
  // The leases of a reply that is not completely written.
  struct unsent_leases {
    std::uint64_t end = 0;  // offset of the reply's end
    std::vector<lease_ref> leases;
  };

  std::shared_ptr<connection> self() {
    return std::static_pointer_cast<connection>(shared_from_this());
  }

  // Continues the TLS handshake. Returns false if it waits for the socket, or the connection
  // closed.
  bool continue_handshake();
  void refuse_as_one_too_many();

  // Reading.
  bool may_read() const noexcept;
  // No further request is read, but the client may disconnect before its replies are written.
  bool reads_for_the_end() const noexcept {
    return !closed_ && !saw_end_ && reads_no_more() && slots_open() > 0;
  }
  bool is_reading() const noexcept { return waits_readable_ || reads_soon_; }
  // Calls are in progress while nothing is read, so the end of the client must be polled for.
  bool must_poll_for_the_end() const noexcept {
    return !closed_ && !saw_end_ && !in_handshake_ && !is_lingering_ && !is_reading() &&
           slots_open() > 0 && !gone_.stop_requested();
  }
  void drop_unfinished_request();
  void wait_readable();
  void schedule_read();
  void on_readable();
  std::size_t consume(std::string_view in);
  std::size_t consume_rest();
  bool parse_some(std::string_view in, std::size_t& used);
  void begin_request();
  void note_progress();
  void end_request();
  void dispatch(std::string_view body);
  void begin_stream();
  // Checks the token. Returns false if the request was refused.
  bool is_authorized();
  void refuse_token(const error& why);
  void note_for_audit();
  std::string client_address();
  void refuse_early(const error& why, int status, std::string_view headers = {});
  void refuse_bad_bytes(const boost::beast::error_code& ec, std::string_view in);
  void end_of_input();

  // Memory.
  void on_memory(net::client_memory::account::notice received);
  void count_memory();
  void wait_for_memory();
  bool has_memory() const noexcept;
  std::size_t unsent_bytes() const noexcept { return made_bytes_ + out_.size(); }
  bool is_short_of_memory(const slot& s) const noexcept;
  // Returns whether the request must wait: it may have a long reply, and another long reply is
  // being made or the budget does not allow it.
  bool must_hold_request() const noexcept;
  bool end_held_request();
  void begin_long_answer(const route& target, const request_head& head);
  void end_long_answer(slot& s);
  bool begin_next_load();
  // Returns whether handlers keep more than a short body; no further request is read then.
  bool keeps_much() const noexcept;
  bool must_drop_answer(const slot& s, const response& r) const noexcept;
  // Reservation for a long body.
  void reserve_for_body();
  void end_reservation();
  void begin_use_of_reservation();
  time_point progress_deadline() const;

  // Answers.
  slot& at(std::uint64_t number) noexcept { return slots_[number % slots_.size()]; }
  std::uint64_t open_slot();
  std::size_t slots_open() const noexcept { return static_cast<std::size_t>(next_ - first_); }
  void resume_parts();
  bool flush();
  void write();
  void wait_writable();
  void give_back(const std::vector<lease_ref>& leases);
  bool unsent() const noexcept { return !out_.empty(); }
  bool reads_no_more() const noexcept { return is_last_ || (ends_soon_ && !head_done_); }
  bool is_idle() const noexcept {
    return !in_handshake_ && !is_lingering_ && !parser_ && slots_open() == 0 && !unsent();
  }
  bool has_finished() const noexcept { return reads_no_more() && slots_open() == 0 && !unsent(); }
  std::string too_slow() const;
  void begin_linger();
  time_point input_deadline() const;
  void set_deadline();

  loop& loop_;
  net::stream client_;
  net::client_memory::account memory_;
  bool in_handshake_;  // TLS only
  bool one_too_many_ = false;
  std::stop_source gone_;

  // Reading.
  std::optional<request_parser> parser_;
  std::string rest_;  // bytes that were read and are not parsed yet
  // Of the request in parser_:
  bool head_done_ = false;
  bool refused_ = false;  // the reply is ready, or does not depend on the body
  routed routed_;
  identity caller_;
  std::uint64_t number_ = 0;  // its slot
  std::shared_ptr<ndjson_push> stream_;
  bool is_held_ = false;               // the request was read whole and is not dispatched yet
  mutable bool lacks_memory_ = false;  // has_memory returned false since the last notice
  enum class reservation : std::uint8_t { none, waits, granted };
  reservation reservation_ = reservation::none;
  time_point granted_at_{};              // or when reading could resume
  std::uint64_t body_before_grant_ = 0;  // bytes of the body received by then
  std::uint64_t window_from_ = 0;        // bytes of the body received at since_
  bool waits_readable_ = false;
  bool is_readable_ = false;
  bool reads_soon_ = false;
  bool saw_end_ = false;    // the client closed its direction
  bool is_last_ = false;    // no further request is read
  bool ends_soon_ = false;  // no further request after the present one

  // Answers.
  std::vector<slot> slots_;  // a ring; its size is a power of two
  std::uint64_t first_ = 0;
  std::uint64_t next_ = 0;
  std::size_t made_bytes_ = 0;    // of replies in slots_
  std::size_t long_answers_ = 0;  // being made
  std::size_t kept_bytes_ = 0;    // of all slots
  std::vector<load> loads_;       // waiting, FIFO
  net::unsent_bytes out_;
  std::vector<unsent_leases> unsent_leases_;
  bool waits_writable_ = false;

  bool is_lingering_ = false;
  bool closed_ = false;

  time_point since_{};    // begin of the request or of idleness, or the body's last progress
  time_point written_{};  // of the last write
  time_point linger_deadline_{};
};

}  // namespace sluice::jobs::http
