#pragma once

// Posts requests to HTTP servers: reused connections, TLS, and limits on everything that a receiver
// could make long, slow or large.
//
// All functions must be called on the loop's thread. A request ends exactly once: with a response
// of any status, or with a fault. Redirects are not followed: they are responses. A certificate
// must be signed by an authority of the system's store (or of `ca_file`) and name the host. A
// request is sent once: the receiver may have executed it even if the connection ends without a
// response. A reused connection that was closed while idle is replaced before anything is sent. Of
// a body longer than `body_bytes_max` the beginning is returned, and the connection is closed. One
// Asio thread resolves all names; ending the loop waits for a resolution in progress.

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
  std::size_t requests_max = 256;       // in progress at a time; more is a broken contract
  std::size_t idle_max = 64;            // idle connections in total
  std::size_t idle_per_origin_max = 8;  // idle connections per host and port
  milliseconds keep_idle{20'000};
  milliseconds connect_timeout{10'000};  // resolution, connection and TLS together
  std::size_t head_bytes_max = std::size_t{16} << 10;
  std::size_t body_bytes_max = std::size_t{1} << 20;
  std::string ca_file{};  // PEM; empty: the system's store
};

struct outgoing_request {
  web_url url{};
  std::vector<std::pair<std::string, std::string>> headers{};  // besides Host and Content-Length
  std::string body{};
  milliseconds timeout{30'000};  // for the whole request
};

struct outgoing_end {
  enum class fault : std::uint8_t {
    none,             // there is a response
    host_not_found,   // the name could not be resolved
    connect_failed,   // refused or unreachable
    tls_failed,       // no TLS, or a certificate that is not trusted or names another host
    connection_lost,  // before a response
    bad_answer,       // not HTTP, a head that is too large, or an incomplete response
    timed_out,
    cancelled,
  };
  fault cause = fault::none;
  std::string message{};  // for people; empty for a response

  int status = 0;
  std::string content_type{};
  std::string retry_after{};
  std::string location{};
  std::string body{};
  bool is_cut = false;  // the body was longer
};
std::string_view to_string(outgoing_end::fault cause) noexcept;  // "timed_out"

class outgoing {
 public:
  using callback = unique_function<void(outgoing_end)>;
  using request_id = std::uint64_t;

  // Fails with `invalid` if the file of authorities cannot be read. The loop must outlive this
  // object and be ended before its destruction.
  static result<std::unique_ptr<outgoing>> open(loop& l, outgoing_options o);
  outgoing(const outgoing&) = delete;
  outgoing& operator=(const outgoing&) = delete;
  ~outgoing();

  request_id send(outgoing_request request, callback done);
  void cancel(request_id id);  // calls back at once; does nothing if it has ended
  std::size_t in_progress() const noexcept;
  std::size_t idle() const noexcept;
  void close();  // cancels all requests and closes idle connections

 private:
  class impl;
  explicit outgoing(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

}  // namespace sluice::jobs::detail
