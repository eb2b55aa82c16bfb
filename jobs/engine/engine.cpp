#include "jobs/engine/engine.hpp"

#include <utility>

#include "jobs/engine/detail/engine_impl.hpp"

namespace sluice::jobs {
namespace {

time_source& time_of(const engine_options& o) {
  return o.time != nullptr ? *o.time : real_time();
}

}  // namespace

engine::impl::impl(std::unique_ptr<store> storage, const engine_options& o)
    : options_(o),
      time_(time_of(o)),
      store_(std::move(storage)),
      core_(options_, time_),
      reads_({.core = 1, .capacity = 1024, .name = "sluice-read"}) {
  core_.on_stop = [this](std::uint64_t number) {
    {
      const std::lock_guard hold(stops_guard_);
      stops_.push_back(number);
    }
    wake_.set();
  };
}

engine::impl::~impl() {
  stop();
}

void_result engine::impl::start() {
  auto contents = store_->load();
  if (!contents) return contents.error();
  has_saved_leases_ = !contents->leases.empty();
  core_.load(*std::move(contents));
  if (has_saved_leases_) delete_saved_leases();
  reader_ = store_->reader();
  if (const milliseconds every = store_->watch_every(); every > milliseconds(0)) {
    watch_at_ = time_.timers().now() + every;
  }
  committer_ = seam::thread([this] { run(); });
  return done{};
}

void engine::impl::stop() {
  call([&](detail::core& c, detail::answers& out) {
    c.close(out);
    c.stop_intake();
    stopping_ = true;
  });
  wake_.set();
  const std::lock_guard one_at_a_time(ending_);
  if (committer_.joinable()) committer_.join();
  reads_.drain();
}

void engine::impl::release(detail::core& c, lease_ref lease, give_back options,
                           detail::ack_reply reply, detail::answers& out) {
  job_ptr trimmed = c.release(lease, options, reply, out);
  if (trimmed == nullptr) return;
  calls_.push_back(
      [this, trimmed, reply = std::move(reply)]() mutable { reload(trimmed, std::move(reply)); });
  out.wake_committer = true;
}

engine::engine(std::unique_ptr<impl> implementation) : impl_(std::move(implementation)) {}
engine::~engine() = default;

result<std::unique_ptr<engine>> engine::open(std::unique_ptr<store> storage, engine_options o) {
  auto implementation = std::make_unique<impl>(std::move(storage), o);
  if (auto started = implementation->start(); !started) return started.error();
  return std::unique_ptr<engine>(new engine(std::move(implementation)));
}

future<result<push_receipt>> engine::push(job_spec spec, wait_limits limits) {
  using answer = result<push_receipt>;
  return impl_->ask<answer>([&](detail::core& c, promise<answer> reply, detail::answers& out) {
    c.push(std::move(spec), detail::push_reply(std::move(reply)), limits, out);
  });
}

future<std::vector<result<push_receipt>>> engine::push_many(std::vector<job_spec> specs, bulk mode,
                                                            wait_limits limits) {
  using answer = std::vector<result<push_receipt>>;
  if (specs.empty()) return make_ready_future(answer{});
  if (specs.size() > impl_->options_.bulk_max) {
    return make_ready_future(answer(
        specs.size(),
        error{error_code::too_large, "more than " + std::to_string(impl_->options_.bulk_max) +
                                         " jobs at once; nothing was pushed"}));
  }
  return impl_->ask<answer>(
      specs.size(), [&](detail::core& c, promise<answer> reply, detail::answers& out) {
        if (mode == bulk::all_or_nothing) {
          return c.push_together(std::move(specs), std::move(reply), limits, out);
        }
        auto replies = detail::push_reply::make_many(std::move(reply), specs.size());
        for (std::size_t i = 0; i < specs.size(); ++i) {
          c.push(std::move(specs[i]), detail::push_reply(replies, i), limits, out);
        }
      });
}

future<result<std::vector<leased_job>>> engine::lease(lease_request request, wait_limits limits) {
  using answer = result<std::vector<leased_job>>;
  return impl_->ask<answer>([&](detail::core& c, promise<answer> reply, detail::answers& out) {
    c.lease(std::move(request), std::move(reply), limits, out);
  });
}

result<extension> engine::extend(lease_ref lease, milliseconds by,
                                 std::optional<jobs::progress> progress) {
  result<extension> answer = impl::shut_down_error();
  impl_->call([&](detail::core& c, detail::answers&) {
    if (impl_->has_shut_down_) return;
    answer = c.extend(lease, by, std::move(progress));
  });
  return answer;
}

future<void_result> engine::ack(lease_ref lease, std::optional<payload> job_result) {
  return impl_->ask<void_result>(
      [&](detail::core& c, promise<void_result> reply, detail::answers& out) {
        c.ack(lease, std::move(job_result), detail::ack_reply(std::move(reply)), out);
      });
}

future<std::vector<void_result>> engine::ack_many(std::vector<ack_item> items) {
  using answer = std::vector<void_result>;
  if (items.empty()) return make_ready_future(answer{});
  return impl_->ask<answer>(
      items.size(), [&](detail::core& c, promise<answer> reply, detail::answers& out) {
        auto replies = detail::ack_reply::make_many(std::move(reply), items.size());
        for (std::size_t i = 0; i < items.size(); ++i) {
          c.ack(items[i].lease, std::move(items[i].result), detail::ack_reply(replies, i), out);
        }
      });
}

future<result<fail_receipt>> engine::fail(lease_ref lease, failure why) {
  using answer = result<fail_receipt>;
  return impl_->ask<answer>([&](detail::core& c, promise<answer> reply, detail::answers& out) {
    c.fail(lease, std::move(why), std::move(reply), out);
  });
}

future<void_result> engine::release(lease_ref lease, give_back options) {
  return impl_->ask<void_result>(
      [&](detail::core& c, promise<void_result> reply, detail::answers& out) {
        impl_->release(c, lease, options, detail::ack_reply(std::move(reply)), out);
      });
}

future<std::vector<void_result>> engine::release_many(std::vector<lease_ref> leases) {
  using answer = std::vector<void_result>;
  if (leases.empty()) return make_ready_future(answer{});
  return impl_->ask<answer>(
      leases.size(), [&](detail::core& c, promise<answer> reply, detail::answers& out) {
        auto replies = detail::ack_reply::make_many(std::move(reply), leases.size());
        for (std::size_t i = 0; i < leases.size(); ++i) {
          impl_->release(c, leases[i], {}, detail::ack_reply(replies, i), out);
        }
      });
}

std::optional<lease_info> engine::lease_of(job_id id) const {
  const std::lock_guard hold(impl_->mutex_);
  return impl_->core_.lease_of(id);
}

future<result<leased_job>> engine::lease_job(job_id id, std::string worker,
                                             milliseconds lease_for) {
  using answer = result<leased_job>;
  lease_request request;
  request.worker = std::move(worker);
  request.lease_for = lease_for;
  if (auto valid = detail::core::check_lease(request); !valid) {
    return make_ready_future(answer(valid.error()));
  }
  return impl_->ask_store<answer>(
      [self = impl_.get(), id, request = std::move(request)](promise<answer> reply) mutable {
        self->lease_job(id, std::move(request), std::move(reply));
      });
}

future<result<job>> engine::get(job_id id) {
  return impl_->read_job(id);
}

future<result<job>> engine::wait(job_id id, wait_limits limits) {
  return impl_->ask_store<result<job>>(
      [self = impl_.get(), id, limits](promise<result<job>> reply) {
        self->wait(id, std::move(reply), limits);
      });
}

future<result<job_ptr>> engine::await_end(job_id id, wait_limits limits) {
  return impl_->ask_store<result<job_ptr>>(
      [self = impl_.get(), id, limits](promise<result<job_ptr>> reply) {
        self->wait(id, std::move(reply), limits);
      });
}

future<result<job_page>> engine::list(list_request request) {
  return impl_->read_list(std::move(request));
}

future<result<job>> engine::cancel(job_id id) {
  return impl_->ask_store<result<job>>(
      [self = impl_.get(), id](promise<result<job>> reply) { self->cancel(id, std::move(reply)); });
}

future<result<job>> engine::kill(job_id id, failure why) {
  detail::core::cut_to_limits(why);
  return impl_->ask_store<result<job>>(
      [self = impl_.get(), id, why = std::move(why)](promise<result<job>> reply) mutable {
        self->kill(id, std::move(why), std::move(reply));
      });
}

future<result<job>> engine::retry(job_id id) {
  return impl_->ask_store<result<job>>(
      [self = impl_.get(), id](promise<result<job>> reply) { self->retry(id, std::move(reply)); });
}

future<void_result> engine::remove(job_id id) {
  return impl_->ask_store<void_result>(
      [self = impl_.get(), id](promise<void_result> reply) { self->remove(id, std::move(reply)); });
}

std::vector<queue_info> engine::queues() const {
  const std::lock_guard hold(impl_->mutex_);
  return impl_->core_.queues();
}

result<queue_info> engine::queue(std::string_view name) const {
  const std::lock_guard hold(impl_->mutex_);
  const detail::queue_state* const q = impl_->core_.find_queue(name);
  if (q == nullptr || !q->is_stored) {
    return detail::core::no_such_queue(name);
  }
  return impl_->core_.info_of(*q);
}

std::uint64_t engine::ready_above(std::string_view name, std::int64_t priority) const {
  const std::lock_guard hold(impl_->mutex_);
  const detail::queue_state* const q = impl_->core_.find_queue(name);
  if (q == nullptr) return 0;
  const auto counted = q->ready.count_before({priority, 0});
  return counted ? *counted : impl_->core_.info_of(*q).counts.ready;
}

future<result<queue_info>> engine::configure(std::string name, queue_patch patch) {
  return impl_->ask_store<result<queue_info>>([self = impl_.get(), name = std::move(name),
                                               patch](promise<result<queue_info>> reply) mutable {
    self->configure(std::move(name), patch, std::move(reply));
  });
}

void_result engine::pause_for(std::string_view name, milliseconds time) {
  void_result answer = impl::shut_down_error();
  impl_->call([&](detail::core& c, detail::answers& out) {
    if (impl_->has_shut_down_) return;
    answer = c.pause_for(name, time);
    c.settle(out);
  });
  return answer;
}

milliseconds engine::pause_left(std::string_view name) const {
  const std::lock_guard hold(impl_->mutex_);
  return impl_->core_.pause_left(name);
}

future<result<job>> engine::peek(std::string queue, job_state state) {
  using answer = result<job>;
  if (state == job_state::retrying) state = job_state::scheduled;
  if (state != job_state::ready && state != job_state::scheduled && state != job_state::dead) {
    return make_ready_future(
        answer(error{error_code::invalid, "state must be ready, scheduled or dead"}));
  }
  return impl_->ask_store<answer>(
      [self = impl_.get(), name = std::move(queue), state](promise<answer> reply) mutable {
        self->peek(std::move(name), state, std::move(reply));
      });
}

future<result<kicked_jobs>> engine::kick(std::string queue, std::uint64_t max) {
  using answer = result<kicked_jobs>;
  return impl_->ask_store<answer>(
      [self = impl_.get(), name = std::move(queue), max](promise<answer> reply) mutable {
        self->kick(std::move(name), max, std::move(reply));
      });
}

future<result<std::uint64_t>> engine::purge(std::string name) {
  return impl_->ask_store<result<std::uint64_t>>(
      [self = impl_.get(), name = std::move(name)](promise<result<std::uint64_t>> reply) mutable {
        self->purge(std::move(name), std::move(reply));
      });
}

bool engine::commit_here(const std::function<void()>& flush_replies) {
  return impl_->commit_here(flush_replies);
}

engine_stats engine::stats() const {
  engine_stats s;
  {
    const std::lock_guard hold(impl_->mutex_);
    impl_->core_.add_stats(s);
  }
  const auto times = impl_->commit_times_.read();
  s.commit_p50_us = times.quantile(0.5) / 1000;
  s.commit_p99_us = times.quantile(0.99) / 1000;
  return s;
}

jobs::health engine::health() const {
  const std::lock_guard hold(impl_->mutex_);
  if (const std::optional<error>& why = impl_->core_.degraded()) {
    return {false, why->code, why->message};
  }
  if (impl_->core_.is_closed()) {
    return {false, error_code::shutting_down, "the server is shutting down"};
  }
  return {};
}

std::string engine::describe_store() const {
  return impl_->store_->describe();
}

void engine::close() {
  impl_->call([](detail::core& c, detail::answers& out) { c.close(out); });
}

future<status> engine::drained(wait_limits limits) {
  return impl_->ask<status>([&](detail::core& c, promise<status> reply, detail::answers& out) {
    c.await_drained(std::move(reply), limits, out);
  });
}

void engine::stop() {
  impl_->stop();
}

}  // namespace sluice::jobs
