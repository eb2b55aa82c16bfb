#pragma once

// A connection of a line protocol: reads input for the session, keeps the replies in order, and
// writes them.
//
// Everything runs on the loop's thread. Every event (bytes, a reply, a deadline) ends in `pump`,
// which passes input to the session, writes the ready replies, and reads if allowed. An idle
// connection holds no buffer.

#include <deque>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "jobs/net/client_memory.hpp"
#include "jobs/net/loop.hpp"
#include "jobs/net/stream.hpp"
#include "jobs/net/tls_context.hpp"
#include "jobs/net/unsent_bytes.hpp"
#include "jobs/protocol/session.hpp"
#include "jobs/protocol/wire_server.hpp"
#include "sluice/base/atomic.hpp"

namespace sluice::jobs::protocol {

// The state that the connections of a server share. Counts are relaxed throughout: they order
// nothing.
struct wire_state {
  explicit wire_state(wire_server_options o) : options(std::move(o)) {}

  const wire_server_options options;
  const std::shared_ptr<net::client_memory> memory =
      options.memory != nullptr ? options.memory : std::make_shared<net::client_memory>();
  atomic<std::uint64_t> open{0}, accepted{0}, refused{0}, timeouts{0};
  atomic<std::uint64_t> bytes_in{0}, bytes_out{0};
};

class connection final : public net::peer, public client {
 public:
  // `tls` null: plain.
  connection(wire_state& server, net::loop& home, net::stream::socket_type socket,
             std::shared_ptr<const net::tls_context> tls);

  void begin(const wire_server::make_session& make);

  // net::peer
  void pump() override;
  void on_deadline() override;
  void finish_up() override;
  void close() override;

  // client
  std::uint64_t open() override;
  void answer(std::uint64_t reply, std::string_view bytes) override;
  void respond(std::string_view bytes) override { answer(open(), bytes); }
  std::size_t replies_left() const override;
  std::size_t open_replies() const override { return replies_.size(); }
  void end() override;
  void resume() override;
  void wake_at(time_point when) override;
  std::stop_token gone_token() override { return gone_.get_token(); }
  bool is_gone() const override { return closed_; }
  std::string address() const override { return client_.peer_address(); }
  bool is_secure() const override { return client_.is_secure() || is_local_; }

 private:
  struct reply {
    std::string bytes;
    bool is_ready = false;
  };

  executor& home() override { return loop_; }
  std::shared_ptr<client> keep() override { return {shared_from_this(), this}; }
  void call_begins() noexcept override { loop_.call_begins(); }
  void call_ended() noexcept override;
  std::shared_ptr<connection> self() {
    return std::static_pointer_cast<connection>(shared_from_this());
  }

  bool continue_handshake();
  void wait_readable();
  void wait_writable();
  void on_readable();
  void take_in(std::string_view fresh);
  std::size_t feed_session(std::string_view in);
  void process_input();
  bool may_read() const noexcept;
  bool waits_for_reservation();
  void end_reservation();
  void begin_use_of_reservation();
  void on_memory(net::client_memory::account::notice received);
  void count_memory();
  bool has_memory() const noexcept;
  time_point progress_deadline() const;
  void write();
  bool has_finished() const noexcept { return is_last_ && replies_.empty() && out_.empty(); }
  void begin_linger();
  void set_deadline();

  wire_state& server_;
  net::loop& loop_;
  net::stream client_;
  net::client_memory::account memory_;
  const bool is_local_;
  bool in_handshake_;
  std::unique_ptr<session> session_;
  std::stop_source gone_;

  // Reading.
  std::string in_;             // received and not consumed
  bool must_consume_ = false;  // offer in_ to the session again
  bool is_reading_ = false;    // waits for the socket
  bool saw_end_ = false;
  bool reported_end_ = false;          // end_of_input was called
  bool is_last_ = false;               // nothing more is read
  mutable bool lacks_memory_ = false;  // has_memory returned false since the last notice
  enum class reservation : std::uint8_t { none, waits, granted };
  reservation reservation_ = reservation::none;  // for a long command
  time_point granted_at_{};
  std::size_t in_before_grant_ = 0;  // bytes of the command at granted_at_

  // Writing.
  std::deque<reply> replies_;      // open, in order
  std::uint64_t first_reply_ = 0;  // number of replies_.front()
  std::size_t held_bytes_ = 0;     // of ready replies behind an open one
  net::unsent_bytes out_;
  bool is_writing_ = false;  // waits for the socket

  bool is_lingering_ = false;
  bool closed_ = false;
  time_point in_since_{};   // the first byte of in_
  time_point out_since_{};  // last progress in sending out_
  time_point seen_at_{};    // last activity
  time_point wake_at_ = time_point::max();
  time_point linger_deadline_{};
};

}  // namespace sluice::jobs::protocol
