#pragma once

// One client: reads its requests, hands them on, and writes the answers in the order of the
// requests.
//
// Everything runs on the loop's thread. Reads are into a buffer of the loop, so a connection that
// waits holds none. An event (bytes, answers, a deadline) ends in `pump`, which writes what can be
// written, reads what may be read, and says until when something must happen.

#include <boost/asio/ip/tcp.hpp>
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

namespace sluice::jobs::http {

class connection final : public answerer, public std::enable_shared_from_this<connection> {
 public:
  connection(loop& home, boost::asio::ip::tcp::socket socket);
  ~connection() = default;

  void begin();
  // One connection too many: says so and ends.
  void begin_refused();
  // Called by the loop after `touch`.
  void pump();
  bool mark_touched() noexcept { return !std::exchange(touched_, true); }
  time_point deadline() const noexcept { return deadline_; }
  void on_deadline();
  // Answers what is under way, then closes.
  void finish_up();
  void close();

  // answerer
  void answer(std::uint64_t number, response&& r) override;
  void resume() override;
  executor& home() noexcept override { return loop_; }
  void call_begins() noexcept override { loop_.call_begins(); }
  void call_ended() noexcept override { loop_.call_ended(); }
  std::stop_token gone() override { return gone_.get_token(); }
  bool is_gone() const noexcept override { return closed_ || saw_end_; }
  std::string& scratch() noexcept override { return loop_.scratch(); }

 private:
  // A request whose answer was not handed to the socket yet.
  struct slot {
    std::string bytes;  // the answer, or as long as it is not ready "100 Continue"
    bool is_ready = false;
    bool is_last = false;  // the connection ends after it
    bool without_body = false;
    const route* to = nullptr;
    std::vector<lease_ref> leases;
  };
  // Jobs of an answer that was not written to its end yet.
  struct unsent_leases {
    std::uint64_t end = 0;  // in bytes since the connection began
    std::vector<lease_ref> leases;
  };

  // Reading.
  bool wants_to_read() const noexcept;
  // Nothing more is read, but those whose answers are to come may go away.
  bool listens_for_the_end() const noexcept {
    return !closed_ && !saw_end_ && reads_no_more() && slots_open() > 0;
  }
  void forget_what_is_read();
  void wait_readable();
  void on_readable();
  std::size_t consume(std::string_view in);
  std::size_t consume_rest();
  bool parse_some(std::string_view in, std::size_t& used);
  void begin_request();
  void note_progress();
  void end_request();
  void dispatch(std::string_view body);
  void begin_stream();
  void refuse_early(const error& why, int status, std::string_view headers = {});
  void refuse_bad_bytes(const boost::beast::error_code& ec, std::string_view in);
  void end_of_input();
  // Memory for a long body.
  void ask_for_room();
  void leave_room();
  void on_room();

  // Answers.
  slot& at(std::uint64_t number) noexcept { return slots_[number % slots_.size()]; }
  std::uint64_t open_slot();
  std::size_t slots_open() const noexcept { return static_cast<std::size_t>(next_ - first_); }
  bool flush();
  void write();
  void wait_writable();
  void give_back(const std::vector<lease_ref>& leases);
  bool unsent() const noexcept { return sent_ < out_.size(); }
  bool reads_no_more() const noexcept { return is_last_ || (ends_soon_ && !head_done_); }
  bool has_finished() const noexcept { return reads_no_more() && slots_open() == 0 && !unsent(); }
  void begin_linger();
  void set_deadline();

  loop& loop_;
  boost::asio::ip::tcp::socket socket_;
  std::stop_source gone_;

  // Reading.
  std::optional<request_parser> parser_;
  std::string rest_;          // bytes that were read and may not be looked at yet
  bool head_done_ = false;    // of the request in parser_
  bool refused_ = false;      // ... which is answered already, or will be without its body
  routed routed_;             // ... and goes there
  std::uint64_t number_ = 0;  // ... and has this number
  std::shared_ptr<ndjson_push> stream_;
  enum class room : std::uint8_t { none, waits, has };
  room room_ = room::none;
  body_budget::share share_;
  std::uint64_t window_from_ = 0;  // bytes of the body when since_ began
  bool waits_readable_ = false;
  bool is_readable_ = false;
  bool saw_end_ = false;    // of the client's bytes
  bool is_last_ = false;    // nothing more is read
  bool ends_soon_ = false;  // nothing more but the request that is being read

  // Answers.
  std::vector<slot> slots_;  // a ring; its size is a power of two
  std::uint64_t first_ = 0;
  std::uint64_t next_ = 0;
  std::string out_;
  std::size_t sent_ = 0;           // of out_
  std::uint64_t sent_before_ = 0;  // bytes of the connection before out_
  std::vector<unsent_leases> unsent_leases_;
  bool waits_writable_ = false;

  bool touched_ = false;
  bool lingers_ = false;
  bool closed_ = false;

  time_point deadline_ = time_point::max();
  time_point since_{};    // the request, the body's last good progress, or being idle began
  time_point written_{};  // something was written last
  time_point lingers_until_{};
};

}  // namespace sluice::jobs::http
