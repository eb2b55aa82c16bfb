// The engine's calls about batches, cron entries, events and logs.
#include <utility>

#include "jobs/engine/detail/engine_impl.hpp"
#include "jobs/engine/engine.hpp"

namespace sluice::jobs {
namespace {

constexpr std::size_t page_max = 1000;

error bad_limit() {
  return {error_code::invalid, "limit must be from 1 to " + std::to_string(page_max)};
}

error no_such_batch(job_id id) {
  return {error_code::not_found,
          "batch " + std::to_string(id) + " does not exist, or its retention period has passed",
          id};
}

}  // namespace

// Batches.

template <class T, class Read>
future<result<T>> engine::impl::read(Read query) {
  promise<result<T>> reply;
  auto answer = reply.get_future();
  auto taken =
      reads_.try_submit([this, query = std::move(query), reply = std::move(reply)]() mutable {
        auto found = query(*reader_);
        if (!found) reader_failed(found.error());
        reply.set_value(std::move(found));
      });
  return taken ? std::move(answer) : make_ready_future(result<T>(no_more_reads()));
}

future<result<batch_info>> engine::get_batch(job_id id) {
  return impl_->read<batch_info>([id](store_reader& from) -> result<batch_info> {
    auto found = from.get_batch(id);
    if (!found) return found.error();
    if (!*found) return no_such_batch(id);
    return **std::move(found);
  });
}

future<result<batch_page>> engine::batches(job_id after, std::size_t limit) {
  if (limit == 0 || limit > page_max) return make_ready_future(result<batch_page>(bad_limit()));
  return impl_->read<batch_page>(
      [after, limit](store_reader& from) { return from.list_batches(after, limit); });
}

future<result<batch_info>> engine::close_batch(job_id id) {
  return impl_->ask_store<result<batch_info>>(
      [self = impl_.get(), id](promise<result<batch_info>> reply) {
        self->close_batch(id, std::move(reply));
      });
}

future<result<std::uint64_t>> engine::cancel_batch(job_id id) {
  return impl_->ask_store<result<std::uint64_t>>(
      [self = impl_.get(), id](promise<result<std::uint64_t>> reply) {
        self->change_batch(id, impl::batch_act::cancel, std::move(reply));
      });
}

future<result<std::uint64_t>> engine::retry_batch(job_id id) {
  return impl_->ask_store<result<std::uint64_t>>(
      [self = impl_.get(), id](promise<result<std::uint64_t>> reply) {
        self->change_batch(id, impl::batch_act::retry, std::move(reply));
      });
}

// Reports and logs of workers.

void_result engine::report(lease_ref lease, jobs::progress progress) {
  void_result answer = impl::shut_down_error();
  impl_->call([&](detail::core& c, detail::answers&) {
    if (!impl_->has_shut_down_) answer = c.report(lease, std::move(progress));
  });
  return answer;
}

future<void_result> engine::log(lease_ref lease, std::vector<std::string> lines) {
  return impl_->ask<void_result>(
      [&](detail::core& c, promise<void_result> reply, detail::answers& out) {
        c.log(lease, std::move(lines), std::move(reply), out);
      });
}

future<result<log_page>> engine::logs(job_id id, std::uint64_t after, std::size_t limit) {
  if (limit == 0 || limit > page_max) return make_ready_future(result<log_page>(bad_limit()));
  return impl_->read<log_page>(
      [id, after, limit](store_reader& from) { return from.logs(id, after, limit); });
}

// Cron.

future<result<cron_info>> engine::set_cron(cron_spec spec) {
  using answer = result<cron_info>;
  return impl_->ask<answer>([&](detail::core& c, promise<answer> reply, detail::answers& out) {
    c.set_cron(std::move(spec), std::move(reply), out);
  });
}

future<result<cron_info>> engine::patch_cron(std::string name, cron_patch patch) {
  using answer = result<cron_info>;
  return impl_->ask<answer>([&](detail::core& c, promise<answer> reply, detail::answers& out) {
    c.patch_cron(name, patch, std::move(reply), out);
  });
}

future<void_result> engine::remove_cron(std::string name) {
  return impl_->ask<void_result>(
      [&](detail::core& c, promise<void_result> reply, detail::answers& out) {
        c.remove_cron(name, std::move(reply), out);
      });
}

future<result<push_receipt>> engine::run_cron(std::string name) {
  using answer = result<push_receipt>;
  return impl_->ask<answer>([&](detail::core& c, promise<answer> reply, detail::answers& out) {
    c.run_cron(name, detail::push_reply(std::move(reply)), out);
  });
}

std::vector<cron_info> engine::crons() const {
  const std::lock_guard hold(impl_->mutex_);
  return impl_->core_.crons();
}

result<cron_info> engine::get_cron(std::string_view name) const {
  const std::lock_guard hold(impl_->mutex_);
  return impl_->core_.get_cron(name);
}

// Events.

future<result<event_page>> engine::events(event_request request, wait_limits limits) {
  using answer = result<event_page>;
  return impl_->ask<answer>([&](detail::core& c, promise<answer> reply, detail::answers& out) {
    c.await_events(std::move(request), std::move(reply), limits, out);
  });
}

}  // namespace sluice::jobs
