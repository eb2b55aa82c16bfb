#include "jobs/deliver/deliverer.hpp"

#include <mutex>
#include <utility>

#include "jobs/deliver/detail/courier.hpp"
#include "jobs/deliver/detail/loop.hpp"
#include "jobs/deliver/detail/outgoing.hpp"
#include "jobs/deliver/signature.hpp"
#include "sluice/sync/mutex.hpp"

namespace sluice::jobs {
namespace {

constexpr std::size_t requests_most = 100'000;

error invalid_options(std::string why) {
  return invalid_error("delivery: " + std::move(why));
}

void_result validate(const deliverer_options& o) {
  if (auto fine = validate_secrets(o.secrets); !fine) return invalid_options(fine.error().message);
  if (o.requests_max == 0 || o.requests_max > requests_most) {
    return invalid_options("requests_max must be from 1 to " + std::to_string(requests_most));
  }
  if (o.webhook_concurrency == 0 || o.webhook_concurrency > requests_most) {
    return invalid_options("webhook_concurrency must be from 1 to " +
                           std::to_string(requests_most));
  }
  for (const milliseconds d :
       {o.webhook_timeout, o.connect_timeout, o.keep_idle, o.pause_first, o.pause_longest}) {
    if (d < milliseconds(1) || d > limits::duration_max) {
      return invalid_options("timeouts and pauses must be from 1 ms to 10 years");
    }
  }
  if (o.pause_first > o.pause_longest)
    return invalid_options("pause_first is longer than pause_longest");
  if (o.failures_in_a_row == 0) return invalid_options("failures_in_a_row must be at least 1");
  if (o.answer_bytes_max > limits::result_bytes_max) {
    return invalid_options("answer_bytes_max must be at most " +
                           std::to_string(limits::result_bytes_max));
  }
  return done{};
}

detail::outgoing_options outgoing_of(const deliverer_options& o) {
  return {.requests_max = o.requests_max,
          .idle_max = o.requests_max,
          .idle_per_origin_max = o.requests_max,
          .keep_idle = o.keep_idle,
          .connect_timeout = o.connect_timeout,
          .body_bytes_max = o.answer_bytes_max,
          .ca_file = o.ca_file};
}

}  // namespace

std::string_view to_string(delivery_event::event_kind kind) noexcept {
  switch (kind) {
    case delivery_event::event_kind::paused:
      return "paused";
    case delivery_event::event_kind::resumed:
      return "resumed";
    case delivery_event::event_kind::not_allowed:
      return "not_allowed";
    case delivery_event::event_kind::result_dropped:
      return "result_dropped";
    case delivery_event::event_kind::lost:
      return "lost";
  }
  return "unknown";
}

class deliverer::impl {
 public:
  explicit impl(options o) : options_(std::move(o)) {}
  ~impl() { (void)stop(deadline::after(std::chrono::seconds(0))); }

  void_result start(engine& jobs) {
    auto opened = detail::outgoing::open(loop_, outgoing_of(options_));
    if (!opened) return invalid_options(opened.error().message);
    outgoing_ = *std::move(opened);
    courier_ = std::make_unique<detail::courier>(jobs, options_, loop_, *outgoing_);
    refresh();
    return done{};
  }

  void refresh() {
    loop_.post([this] { courier_->refresh(); });
  }
  void_result update(url_rules rules, std::vector<std::string> secrets) {
    if (auto fine = validate_secrets(secrets); !fine) return invalid_options(fine.error().message);
    loop_.post([this, rules = std::move(rules), secrets = std::move(secrets)]() mutable {
      courier_->update(std::move(rules), std::move(secrets));
    });
    return done{};
  }
  void close() {
    loop_.post([this] { courier_->close(); });
  }
  status drained(const wait_limits& limits) { return courier_->finished().wait(limits); }

  status stop(const wait_limits& finish_within) {
    if (courier_ == nullptr) return status::ok;
    close();
    const status finished = drained(finish_within);
    const std::lock_guard one_at_a_time(ending_);
    if (ended_) return finished;
    loop_.post([this] { courier_->cancel_all(); });
    courier_->finished().wait();
    loop_.end();
    ended_ = true;
    return finished;
  }

  std::vector<delivery_stats> stats() const { return courier_->stats(); }

 private:
  const options options_;
  detail::loop loop_{options_.time->timers(), "sluice-deliver"};
  std::unique_ptr<detail::outgoing> outgoing_;
  std::unique_ptr<detail::courier> courier_;
  mutex ending_;
  bool ended_ = false;  // protected by ending_
};

deliverer::deliverer(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
deliverer::~deliverer() = default;

result<std::unique_ptr<deliverer>> deliverer::open(engine& jobs, options o) {
  if (o.time == nullptr) o.time = &real_time();
  if (auto valid = validate(o); !valid) return valid.error();
  auto p = std::make_unique<impl>(std::move(o));
  if (auto started = p->start(jobs); !started) return started.error();
  return std::unique_ptr<deliverer>(new deliverer(std::move(p)));
}

void deliverer::refresh() {
  impl_->refresh();
}

void_result deliverer::update(url_rules rules, std::vector<std::string> secrets) {
  return impl_->update(std::move(rules), std::move(secrets));
}

void deliverer::close() {
  impl_->close();
}

status deliverer::drained(const wait_limits& limits) {
  return impl_->drained(limits);
}

status deliverer::stop(const wait_limits& finish_within) {
  return impl_->stop(finish_within);
}

std::vector<delivery_stats> deliverer::stats() const {
  return impl_->stats();
}

}  // namespace sluice::jobs
