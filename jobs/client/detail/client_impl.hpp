#pragma once

// What every call of the client is made of: a request, an answer, and what the answer says.

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

// What an answer that is no success says.
inline error error_of(const http_answer& a, const std::string& url) {
  if (auto told = json::read<json::problem>(a.body)) return std::move(told->why);
  return {error_code::unavailable, "the job server at " + url + ": it answered " +
                                       std::to_string(a.status) +
                                       " without saying why, as a job server would"};
}

template <class T>
result<T> read_answer(const http_answer& a, const std::string& url) {
  if (!is_success(a)) return error_of(a, url);
  auto read = json::read<T>(a.body);
  if (read) return read;
  return error{
      error_code::unavailable,
      "the job server at " + url + ": its answer is not understood: " + read.error().message};
}

inline void_result read_nothing(const http_answer& a, const std::string& url) {
  if (!is_success(a)) return error_of(a, url);
  return done{};
}

}  // namespace detail

class client::impl {
 public:
  impl(detail::http_url to, options o, std::shared_ptr<boost::asio::ssl::context> trust)
      : options_(std::move(o)),
        url_(to.text),
        time_(options_.time != nullptr ? *options_.time : real_time()),
        transport_(std::move(to), options_, std::move(trust)) {}

  const std::string& url() const noexcept { return url_; }
  unix_time now() const noexcept { return time_.now(); }

  // Sends one request; `read(const detail::http_answer&)` makes of the answer what the future is
  // of.
  template <class T, class Read>
  future<T> call(detail::http_request what, wait_limits limits, Read read) {
    promise<T> p;
    future<T> answer = p.get_future();
    std::stop_token cancelled = p.stop_token();
    transport_.send(
        std::move(what), std::move(limits), std::move(cancelled),
        [p = std::move(p), read = std::move(read)](result<detail::http_answer> a) mutable {
          p.set_value(read(std::move(a)));
        });
    return answer;
  }

  template <class T>
  future<result<T>> get_value(detail::http_request what, wait_limits limits) {
    return call<result<T>>(std::move(what), std::move(limits),
                           [url = url_](const result<detail::http_answer>& a) -> result<T> {
                             if (!a) return a.error();
                             return detail::read_answer<T>(*a, url);
                           });
  }
  future<void_result> get_nothing(detail::http_request what, wait_limits limits) {
    return call<void_result>(std::move(what), std::move(limits),
                             [url = url_](const result<detail::http_answer>& a) -> void_result {
                               if (!a) return a.error();
                               return detail::read_nothing(*a, url);
                             });
  }

  // A call that waits at the server, in steps: `make(wait)` gives the request of one, `read` what
  // came of it; timed_out: the step was over, and nothing has happened.
  template <class T, class Make, class Read>
  future<T> wait_in_steps(wait_limits limits, Make make, Read read) {
    auto it =
        std::make_shared<steps<T, Make, Read>>(std::move(limits), std::move(make), std::move(read));
    future<T> answer = it->answer.get_future();
    it->cancelled = it->answer.stop_token();
    take_step(std::move(it));
    return answer;
  }

  template <class T>
  T wait_for(future<T> answer) {
    check(!transport_.on_own_thread(), "sluice::jobs::client",
          "a blocking call not to be made from a continuation, which it would wait for");
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
    // Bulk pushes: those that were accepted must not be sent again.
    const bool none = std::ranges::all_of(
        all, [](const auto& r) { return !r && r.error().code == error_code::timed_out; });
    return none && !all.empty() ? &all.front().error() : nullptr;
  }

  // How long the server is asked to wait: up to the caller's deadline, so that an event that is due
  // before it wins over it.
  milliseconds step_of(const wait_limits& limits) const {
    if (limits.deadline.is_never()) return options_.wait_step;
    if (limits.deadline.passed()) return milliseconds(0);  // may be too long ago to subtract from
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
  void take_step(std::shared_ptr<Steps> it) {
    const milliseconds waits = step_of(it->limits);
    detail::http_request what = it->make(waits);
    what.waits = waits;
    const time_point sent = seam::now();
    auto limits = with_margin(it->limits);
    auto cancelled = it->cancelled;
    transport_.send(
        std::move(what), std::move(limits), std::move(cancelled),
        [this, it, waits, sent](result<detail::http_answer> a) {
          const bool from_server = a.has_value();
          auto got = it->read(std::move(a));
          // A server that says so at once, again and again, is not asked in a loop.
          const bool waited = seam::now() - sent >= waits / 2;
          // A shorter step was the last one.
          if (from_server && is_step_over(error_in(got)) && waited && waits == options_.wait_step) {
            return take_step(it);
          }
          it->answer.set_value(std::move(got));
        });
  }

  const options options_;
  const std::string url_;
  time_source& time_;
  detail::transport transport_;
};

}  // namespace sluice::jobs
