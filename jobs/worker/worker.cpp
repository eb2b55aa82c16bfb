#include "jobs/worker/worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "jobs/worker/detail/coordinator.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::jobs {
namespace {

std::string own_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) return "worker:" + std::to_string(getpid());
  return std::string(host.data()) + ":" + std::to_string(getpid());
}

worker_options completed(worker_options o) {
  if (o.concurrency == 0) o.concurrency = seam::usable_cpus().size();
  if (o.name.empty()) o.name = own_name();
  if (o.time == nullptr) o.time = &real_time();
  check(!o.queues.empty(), "sluice::jobs::worker", "at least one queue");
  check(o.concurrency <= thread_pool::threads_max, "sluice::jobs::worker",
        "a concurrency of at most thread_pool::threads_max");
  check(o.poll_for > milliseconds(0) && o.stop_grace >= milliseconds(0) &&
            o.backoff_first > milliseconds(0),
        "sluice::jobs::worker", "positive times");
  return o;
}

}  // namespace

std::string_view to_string(worker_event::event_kind kind) noexcept {
  switch (kind) {
    case worker_event::event_kind::started:
      return "started";
    case worker_event::event_kind::succeeded:
      return "succeeded";
    case worker_event::event_kind::failed:
      return "failed";
    case worker_event::event_kind::given_back:
      return "given_back";
    case worker_event::event_kind::lost:
      return "lost";
    case worker_event::event_kind::abandoned:
      return "abandoned";
    case worker_event::event_kind::source_unavailable:
      return "source_unavailable";
    case worker_event::event_kind::source_back:
      return "source_back";
  }
  return "unknown";
}

class worker::impl {
 public:
  impl(work_source* from, std::unique_ptr<work_source> owned, options o)
      : owned_(std::move(owned)),
        source_(from != nullptr ? *from : *owned_),
        options_(completed(std::move(o))),
        pool_(pool_options()),
        coordinator_(source_, options_, handlers_, pool_, counts_, inbox_) {}

  ~impl() {
    close(detail::command::stop_now);
    thread_ = {};  // joins
    coordinator_.await_handlers();
  }

  void add(std::string kind, job_handler h) {
    check(!started_, "sluice::jobs::worker", "handlers added before start");
    const bool is_new = handlers_.by_kind.try_emplace(std::move(kind), std::move(h)).second;
    check(is_new, "sluice::jobs::worker", "at most one handler per kind");
  }
  void add_others(job_handler h) {
    check(!started_ && !handlers_.others, "sluice::jobs::worker",
          "at most one handler for other kinds, added before start");
    handlers_.others = std::move(h);
  }

  void start() {
    check(!started_, "sluice::jobs::worker", "at most one call of start");
    started_ = true;
    thread_ = seam::thread([this] {
      coordinator_.run();
      ended_.set();
    });
  }

  void close(detail::command command) { inbox_->put(command); }

  status stop(const wait_limits& finish_within) {
    if (!started_) return status::ok;
    close(detail::command::close);
    const status finished = ended_.wait(finish_within);
    if (finished) return finished;
    close(detail::command::stop_now);
    ended_.wait();
    return finished;
  }

  worker_stats stats() const {
    const auto& c = counts_;
    return {.succeeded = c.succeeded.load(relaxed),
            .failed = c.failed.load(relaxed),
            .given_back = c.given_back.load(relaxed),
            .lost = c.lost.load(relaxed),
            .abandoned = c.abandoned.load(relaxed),
            .running = c.running.load(relaxed),
            .waiting = c.waiting.load(relaxed),
            .unsettled = c.unsettled.load(relaxed),
            .lease_calls = c.lease_calls.load(relaxed),
            .ack_calls = c.ack_calls.load(relaxed),
            .extend_calls = c.extend_calls.load(relaxed)};
  }

 private:
  // At most one thread per processor from the start: coroutine handlers need few.
  thread_pool_options pool_options() const {
    return {.core = std::min(options_.concurrency, seam::usable_cpus().size()),
            .max = options_.concurrency,
            .capacity = options_.concurrency,
            .name = "worker"};
  }

  // Constant after construction.
  const std::unique_ptr<work_source> owned_;
  work_source& source_;
  const options options_;

  detail::registry handlers_;  // constant once started
  detail::counters counts_;
  const std::shared_ptr<detail::inbox> inbox_ = std::make_shared<detail::inbox>();
  event ended_;
  bool started_ = false;
  thread_pool pool_;  // its handlers use all of the above
  detail::coordinator coordinator_;
  seam::thread thread_;
};

worker::worker(work_source& from, options o)
    : impl_(std::make_unique<impl>(&from, nullptr, std::move(o))) {}
worker::worker(std::unique_ptr<work_source> from, options o)
    : impl_(std::make_unique<impl>(nullptr, std::move(from), std::move(o))) {}
worker::~worker() = default;

void worker::add(std::string kind, job_handler h) {
  impl_->add(std::move(kind), std::move(h));
}
void worker::add_others(job_handler h) {
  impl_->add_others(std::move(h));
}
void worker::start() {
  impl_->start();
}
void worker::close() {
  impl_->close(detail::command::close);
}
status worker::stop(const wait_limits& finish_within) {
  return impl_->stop(finish_within);
}
worker_stats worker::stats() const {
  return impl_->stats();
}

}  // namespace sluice::jobs
