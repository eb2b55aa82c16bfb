#pragma once

// Posts requests to HTTP servers and hands back how each ended: kept connections, TLS, and a limit
// on everything that the other side could make long, slow or large.
//
// Everything on the thread of the loop. A request ends exactly once: with an answer, whatever its
// status, or with a fault. Redirects are not followed: they are answers. A certificate must be
// signed by an authority of the system's store (or of `ca_file`) and name the host.
// A request is sent once: the receiver may have acted on it even if the connection ends without an
// answer. A kept connection that was closed while idle is replaced before anything is sent. An
// answer's body is read up to `body_bytes_max`; of a longer one the beginning is handed back, and
// the connection goes. Names are looked up by one thread of Asio's for all; ending the loop waits
// for a look-up that is under way.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/deliver/detail/loop.hpp"
#include "jobs/deliver/web_url.hpp"
#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"
#include "sluice/base/unique_function.hpp"

namespace sluice::jobs::detail {

struct outgoing_options {
  std::size_t requests_max = 256;       // under way at a time; one more is a broken contract
  std::size_t idle_max = 64;            // connections that are kept, in all ...
  std::size_t idle_per_origin_max = 8;  // ... and to one host and port
  milliseconds keep_idle{20'000};
  milliseconds connect_timeout{10'000};  // name, connection and TLS together
  std::size_t head_bytes_max = std::size_t{16} << 10;
  std::size_t body_bytes_max = std::size_t{1} << 20;
  std::string ca_file{};  // PEM; empty: the system's store
};

struct outgoing_request {
  web_url to{};
  std::vector<std::pair<std::string, std::string>> headers{};  // beside Host and Content-Length
  std::string body{};
  milliseconds timeout{30'000};  // for all of it
};

struct outgoing_end {
  enum class fault : std::uint8_t {
    none,             // there is an answer
    host_not_found,   // the name could not be looked up
    connect_failed,   // nobody listens there, or no way leads there
    tls_failed,       // no TLS, or a certificate that is not trusted or names another host
    connection_lost,  // before there was an answer
    bad_answer,       // not HTTP, a head that is too large, or one that ended in the middle
    timed_out,
    cancelled,
  };
  fault what = fault::none;
  std::string message{};  // what happened, for people; empty for an answer

  int status = 0;
  std::string content_type{};
  std::string retry_after{};
  std::string location{};
  std::string body{};
  bool is_cut = false;  // the body was longer
};
std::string_view to_string(outgoing_end::fault what) noexcept;  // "timed_out"

class outgoing {
 public:
  using callback = unique_function<void(outgoing_end)>;
  using ticket = std::uint64_t;

  // invalid: the file of authorities cannot be read. The loop must have ended before the end of
  // this, and must exist until after it.
  static result<std::unique_ptr<outgoing>> open(loop& on, outgoing_options o);
  outgoing(const outgoing&) = delete;
  outgoing& operator=(const outgoing&) = delete;
  ~outgoing();

  ticket send(outgoing_request what, callback done);
  void cancel(ticket which);  // calls back at once; nothing if it has ended
  std::size_t under_way() const noexcept;
  std::size_t idle() const noexcept;
  void close();  // cancels all, keeps no connection

 private:
  class impl;
  explicit outgoing(std::unique_ptr<impl> it);
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs::detail
