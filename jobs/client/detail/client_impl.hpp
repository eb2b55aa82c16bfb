#pragma once

// The common parts of the client's calls: sending a request and decoding the response.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/client/client.hpp"
#include "jobs/client/detail/transport.hpp"
#include "jobs/json/codec.hpp"
#include "sluice/future/promise.hpp"

namespace sluice::jobs {
namespace detail {

inline std::string job_path(job_id id, std::string_view action = {}) {
  std::string path = "/v1/jobs/" + std::to_string(id);
  if (!action.empty()) path += "/" + std::string(action);
  return path;
}

inline void add_parameter(std::string& target, std::string_view name, std::string_view value) {
  target += target.find('?') == std::string::npos ? '?' : '&';
  target += name;
  target += '=';
  target += percent_encoded(value);
}

inline bool is_success(const http_answer& a) {
  return a.status >= 200 && a.status < 300;
}

// Returns the error in a response that is not a success.
inline error error_of(const http_answer& a, const std::string& url) {
  if (auto problem = json::read<json::problem>(a.body)) return std::move(problem->error);
  return {error_code::unavailable,
          "the job server at " + url + ": unexpected response with status " +
              std::to_string(a.status) + "; is this the URL of a job server?"};
}

template <class T>
result<T> read_answer(const http_answer& a, const std::string& url) {
  if (!is_success(a)) return error_of(a, url);
  auto read = json::read<T>(a.body);
  if (read) return read;
  return error{error_code::unavailable,
               "the job server at " + url + ": invalid response: " + read.error().message};
}

inline void_result read_nothing(const http_answer& a, const std::string& url) {
  if (!is_success(a)) return error_of(a, url);
  return done{};
}

}  // namespace detail

class client::impl {
 public:
  impl(detail::http_url server, options o, std::shared_ptr<boost::asio::ssl::context> trust)
      : options_(std::move(o)),
        url_(server.text),
        time_(options_.time != nullptr ? *options_.time : real_time()),
        transport_(std::move(server), options_, std::move(trust)) {}

  const std::string& url() const noexcept { return url_; }
  unix_time now() const noexcept { return time_.now(); }

  // Sends one request. `read(const detail::http_answer&)` converts the response to the future's
  // value.
  template <class T, class Read>
  future<T> call(detail::http_request request, wait_limits limits, Read read) {
    promise<T> p;
    future<T> answer = p.get_future();
    std::stop_token cancelled = p.stop_token();
    transport_.send(
        std::move(request), std::move(limits), std::move(cancelled),
        [p = std::move(p), read = std::move(read)](result<detail::http_answer> a) mutable {
          p.set_value(read(std::move(a)));
        });
    return answer;
  }

  template <class T>
  future<result<T>> get_value(detail::http_request request, wait_limits limits) {
    return call<result<T>>(std::move(request), std::move(limits),
                           [url = url_](const result<detail::http_answer>& a) -> result<T> {
                             if (!a) return a.error();
                             return detail::read_answer<T>(*a, url);
                           });
  }
  future<void_result> get_nothing(detail::http_request request, wait_limits limits) {
    return call<void_result>(std::move(request), std::move(limits),
                             [url = url_](const result<detail::http_answer>& a) -> void_result {
                               if (!a) return a.error();
                               return detail::read_nothing(*a, url);
                             });
  }

  // Makes a call that waits at the server, in steps of at most wait_step: `make(wait)` returns the
  // request of a step, `read` decodes its response. A step that times out is followed by the next.
  template <class T, class Make, class Read>
  future<T> wait_in_steps(wait_limits limits, Make make, Read read) {
    auto s =
        std::make_shared<steps<T, Make, Read>>(std::move(limits), std::move(make), std::move(read));
    future<T> answer = s->answer.get_future();
    s->cancelled = s->answer.stop_token();
    take_step(std::move(s));
    return answer;
  }

  template <class T>
  T wait_for(future<T> answer) {
    check(!transport_.on_own_thread(), "sluice::jobs::client",
          "no blocking call from a continuation, which would wait for itself");
    return answer.get();
  }

 private:
  static constexpr milliseconds reply_margin{250};

  template <class T, class Make, class Read>
  struct steps {
    steps(wait_limits l, Make m, Read r)
        : limits(std::move(l)), make(std::move(m)), read(std::move(r)) {}
    wait_limits limits;
    Make make;
    Read read;  // (result<detail::http_answer>) -> T
    promise<T> answer;
    std::stop_token cancelled;
  };

  static bool is_step_over(const error* why) {
    return why != nullptr && why->code == error_code::timed_out;
  }
  template <class T>
  static const error* error_in(const result<T>& r) {
    return r ? nullptr : &r.error();
  }
  template <class T>
  static const error* error_in(const std::vector<result<T>>& all) {
    // Bulk pushes: accepted jobs must not be sent again.
    const bool none = std::ranges::all_of(
        all, [](const auto& r) { return !r && r.error().code == error_code::timed_out; });
    return none && !all.empty() ? &all.front().error() : nullptr;
  }

  // Returns the wait to request from the server: up to the caller's deadline, so that an event that
  // is due before it takes precedence.
  milliseconds step_of(const wait_limits& limits) const {
    if (limits.deadline.is_never()) return options_.wait_step;
    if (limits.deadline.passed()) return milliseconds(0);  // `when` may be too early to subtract
    clock* const on = limits.deadline.on();
    const auto left = limits.deadline.when() - (on != nullptr ? on->now() : seam::now());
    return std::clamp(std::chrono::ceil<milliseconds>(left), milliseconds(0), options_.wait_step);
  }
  // The server's reply arrives after the deadline. Ending the call at the deadline would lose the
  // connection, and with it jobs that are leased already.
  static wait_limits with_margin(wait_limits limits) {
    const deadline& end = limits.deadline;
    if (end.is_never() || end.passed()) return limits;
    const time_point later = time_point::max() - end.when() > reply_margin
                                 ? end.when() + reply_margin
                                 : time_point::max();
    limits.deadline = end.on() != nullptr ? deadline::at(later, *end.on()) : deadline::at(later);
    return limits;
  }

  template <class Steps>
  void take_step(std::shared_ptr<Steps> s) {
    const milliseconds waits = step_of(s->limits);
    detail::http_request request = s->make(waits);
    request.waits = waits;
    const time_point sent = seam::now();
    auto limits = with_margin(s->limits);
    auto cancelled = s->cancelled;
    transport_.send(
        std::move(request), std::move(limits), std::move(cancelled),
        [this, s, waits, sent](result<detail::http_answer> a) {
          const bool from_server = a.has_value();
          auto got = s->read(std::move(a));
          // Avoids a busy loop if the server replies at once every time.
          const bool waited = seam::now() - sent >= waits / 2;
          // A shorter step was the last one.
          if (from_server && is_step_over(error_in(got)) && waited && waits == options_.wait_step) {
            return take_step(s);
          }
          s->answer.set_value(std::move(got));
        });
  }

  const options options_;
  const std::string url_;
  time_source& time_;
  detail::transport transport_;
};

}  // namespace sluice::jobs
