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
          "there is no batch " + std::to_string(id) +
              ": it never was, or it has ended and its retention is over",
          id};
}

}  // namespace

// Batches.

template <class T, class Read>
future<result<T>> engine::impl::read(Read what) {
  promise<result<T>> to;
  auto answer = to.get_future();
  auto taken = reads_.try_submit([this, what = std::move(what), to = std::move(to)]() mutable {
    auto found = what(*reader_);
    if (!found) reader_failed(found.error());
    to.set_value(std::move(found));
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
      [it = impl_.get(), id](promise<result<batch_info>> to) {
        it->close_batch(id, std::move(to));
      });
}

future<result<std::uint64_t>> engine::cancel_batch(job_id id) {
  return impl_->ask_store<result<std::uint64_t>>(
      [it = impl_.get(), id](promise<result<std::uint64_t>> to) {
        it->change_batch(id, impl::batch_act::cancel, std::move(to));
      });
}

future<result<std::uint64_t>> engine::retry_batch(job_id id) {
  return impl_->ask_store<result<std::uint64_t>>(
      [it = impl_.get(), id](promise<result<std::uint64_t>> to) {
        it->change_batch(id, impl::batch_act::retry, std::move(to));
      });
}

// What workers say.

void_result engine::report(lease_ref lease, jobs::progress how_far) {
  void_result answer = impl::over();
  impl_->call([&](detail::core& c, detail::answers&) {
    if (!impl_->is_over_) answer = c.report(lease, std::move(how_far));
  });
  return answer;
}

future<void_result> engine::log(lease_ref lease, std::vector<std::string> lines) {
  return impl_->ask<void_result>(
      [&](detail::core& c, promise<void_result> to, detail::answers& out) {
        c.log(lease, std::move(lines), std::move(to), out);
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
  return impl_->ask<answer>([&](detail::core& c, promise<answer> to, detail::answers& out) {
    c.set_cron(std::move(spec), std::move(to), out);
  });
}

future<result<cron_info>> engine::patch_cron(std::string name, cron_patch patch) {
  using answer = result<cron_info>;
  return impl_->ask<answer>([&](detail::core& c, promise<answer> to, detail::answers& out) {
    c.patch_cron(name, patch, std::move(to), out);
  });
}

future<void_result> engine::remove_cron(std::string name) {
  return impl_->ask<void_result>(
      [&](detail::core& c, promise<void_result> to, detail::answers& out) {
        c.remove_cron(name, std::move(to), out);
      });
}

future<result<push_receipt>> engine::run_cron(std::string name) {
  using answer = result<push_receipt>;
  return impl_->ask<answer>([&](detail::core& c, promise<answer> to, detail::answers& out) {
    c.run_cron(name, detail::push_reply(std::move(to)), out);
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

future<result<event_page>> engine::events(event_request what, wait_limits limits) {
  using answer = result<event_page>;
  return impl_->ask<answer>([&](detail::core& c, promise<answer> to, detail::answers& out) {
    c.await_events(std::move(what), std::move(to), limits, out);
  });
}

}  // namespace sluice::jobs
