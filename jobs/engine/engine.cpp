#include "jobs/engine/engine.hpp"

#include <utility>

#include "jobs/engine/detail/engine_impl.hpp"

namespace sluice::jobs {
namespace {

time_source& time_of(const engine_options& o) {
  return o.time != nullptr ? *o.time : real_time();
}

}  // namespace

engine::impl::impl(std::unique_ptr<store> keep, const engine_options& o)
    : options_(o),
      time_(time_of(o)),
      store_(std::move(keep)),
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
  if (has_saved_leases_) forget_saved_leases();
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

void engine::impl::release(detail::core& c, lease_ref lease, give_back how, detail::ack_reply to,
                           detail::answers& out) {
  job_ptr trimmed = c.release(lease, how, to, out);
  if (trimmed == nullptr) return;
  calls_.push_back(
      [this, trimmed, to = std::move(to)]() mutable { reload(trimmed, std::move(to)); });
  out.wake_committer = true;
}

engine::engine(std::unique_ptr<impl> it) : impl_(std::move(it)) {}
engine::~engine() = default;

result<std::unique_ptr<engine>> engine::open(std::unique_ptr<store> keep, engine_options o) {
  auto it = std::make_unique<impl>(std::move(keep), o);
  if (auto started = it->start(); !started) return started.error();
  return std::unique_ptr<engine>(new engine(std::move(it)));
}

future<result<push_receipt>> engine::push(job_spec spec, wait_limits limits) {
  using answer = result<push_receipt>;
  return impl_->ask<answer>([&](detail::core& c, promise<answer> to, detail::answers& out) {
    c.push(std::move(spec), detail::push_reply(std::move(to)), limits, out);
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
      specs.size(), [&](detail::core& c, promise<answer> to, detail::answers& out) {
        if (mode == bulk::all_or_nothing) {
          return c.push_together(std::move(specs), std::move(to), limits, out);
        }
        auto replies = detail::push_reply::make_many(std::move(to), specs.size());
        for (std::size_t i = 0; i < specs.size(); ++i) {
          c.push(std::move(specs[i]), detail::push_reply(replies, i), limits, out);
        }
      });
}

future<result<std::vector<leased_job>>> engine::lease(lease_request what, wait_limits limits) {
  using answer = result<std::vector<leased_job>>;
  return impl_->ask<answer>([&](detail::core& c, promise<answer> to, detail::answers& out) {
    c.lease(std::move(what), std::move(to), limits, out);
  });
}

result<extension> engine::extend(lease_ref lease, milliseconds by,
                                 std::optional<jobs::progress> how_far) {
  result<extension> answer = impl::over();
  impl_->call([&](detail::core& c, detail::answers&) {
    if (impl_->is_over_) return;
    answer = c.extend(lease, by, std::move(how_far));
  });
  return answer;
}

future<void_result> engine::ack(lease_ref lease, std::optional<payload> job_result) {
  return impl_->ask<void_result>(
      [&](detail::core& c, promise<void_result> to, detail::answers& out) {
        c.ack(lease, std::move(job_result), detail::ack_reply(std::move(to)), out);
      });
}

future<std::vector<void_result>> engine::ack_many(std::vector<ack_item> items) {
  using answer = std::vector<void_result>;
  if (items.empty()) return make_ready_future(answer{});
  return impl_->ask<answer>(
      items.size(), [&](detail::core& c, promise<answer> to, detail::answers& out) {
        auto replies = detail::ack_reply::make_many(std::move(to), items.size());
        for (std::size_t i = 0; i < items.size(); ++i) {
          c.ack(items[i].lease, std::move(items[i].result), detail::ack_reply(replies, i), out);
        }
      });
}

future<result<fail_receipt>> engine::fail(lease_ref lease, failure why) {
  using answer = result<fail_receipt>;
  return impl_->ask<answer>([&](detail::core& c, promise<answer> to, detail::answers& out) {
    c.fail(lease, std::move(why), std::move(to), out);
  });
}

future<void_result> engine::release(lease_ref lease, give_back how) {
  return impl_->ask<void_result>(
      [&](detail::core& c, promise<void_result> to, detail::answers& out) {
        impl_->release(c, lease, how, detail::ack_reply(std::move(to)), out);
      });
}

future<std::vector<void_result>> engine::release_many(std::vector<lease_ref> leases) {
  using answer = std::vector<void_result>;
  if (leases.empty()) return make_ready_future(answer{});
  return impl_->ask<answer>(
      leases.size(), [&](detail::core& c, promise<answer> to, detail::answers& out) {
        auto replies = detail::ack_reply::make_many(std::move(to), leases.size());
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
  lease_request what;
  what.worker = std::move(worker);
  what.lease_for = lease_for;
  if (auto valid = detail::core::check_lease(what); !valid) {
    return make_ready_future(answer(valid.error()));
  }
  return impl_->ask_store<answer>(
      [it = impl_.get(), id, what = std::move(what)](promise<answer> to) mutable {
        it->lease_job(id, std::move(what), std::move(to));
      });
}

future<result<job>> engine::get(job_id id) {
  return impl_->read_job(id);
}

future<result<job>> engine::wait(job_id id, wait_limits limits) {
  return impl_->ask_store<result<job>>([it = impl_.get(), id, limits](promise<result<job>> to) {
    it->wait(id, std::move(to), limits);
  });
}

future<result<job_ptr>> engine::await_end(job_id id, wait_limits limits) {
  return impl_->ask_store<result<job_ptr>>(
      [it = impl_.get(), id, limits](promise<result<job_ptr>> to) {
        it->wait(id, std::move(to), limits);
      });
}

future<result<job_page>> engine::list(list_request what) {
  return impl_->read_list(std::move(what));
}

future<result<job>> engine::cancel(job_id id) {
  return impl_->ask_store<result<job>>(
      [it = impl_.get(), id](promise<result<job>> to) { it->cancel(id, std::move(to)); });
}

future<result<job>> engine::kill(job_id id, failure why) {
  detail::core::cut_to_limits(why);
  return impl_->ask_store<result<job>>(
      [it = impl_.get(), id, why = std::move(why)](promise<result<job>> to) mutable {
        it->kill(id, std::move(why), std::move(to));
      });
}

future<result<job>> engine::retry(job_id id) {
  return impl_->ask_store<result<job>>(
      [it = impl_.get(), id](promise<result<job>> to) { it->retry(id, std::move(to)); });
}

future<void_result> engine::remove(job_id id) {
  return impl_->ask_store<void_result>(
      [it = impl_.get(), id](promise<void_result> to) { it->remove(id, std::move(to)); });
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
  return impl_->ask_store<result<queue_info>>(
      [it = impl_.get(), name = std::move(name), patch](promise<result<queue_info>> to) mutable {
        it->configure(std::move(name), patch, std::move(to));
      });
}

void_result engine::pause_for(std::string_view name, milliseconds time) {
  void_result answer = impl::over();
  impl_->call([&](detail::core& c, detail::answers& out) {
    if (impl_->is_over_) return;
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
        answer(error{error_code::invalid, "the next job is one that is ready, scheduled or dead"}));
  }
  return impl_->ask_store<answer>(
      [it = impl_.get(), name = std::move(queue), state](promise<answer> to) mutable {
        it->peek(std::move(name), state, std::move(to));
      });
}

future<result<kicked_jobs>> engine::kick(std::string queue, std::uint64_t max) {
  using answer = result<kicked_jobs>;
  return impl_->ask_store<answer>(
      [it = impl_.get(), name = std::move(queue), max](promise<answer> to) mutable {
        it->kick(std::move(name), max, std::move(to));
      });
}

future<result<std::uint64_t>> engine::purge(std::string name) {
  return impl_->ask_store<result<std::uint64_t>>(
      [it = impl_.get(), name = std::move(name)](promise<result<std::uint64_t>> to) mutable {
        it->purge(std::move(name), std::move(to));
      });
}

bool engine::help(const std::function<void()>& between) {
  return impl_->help(between);
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
  return impl_->ask<status>([&](detail::core& c, promise<status> to, detail::answers& out) {
    c.await_drained(std::move(to), limits, out);
  });
}

void engine::stop() {
  impl_->stop();
}

}  // namespace sluice::jobs
