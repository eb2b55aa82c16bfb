#include "jobs/protocol/beanstalk/beanstalk_server.hpp"

#include <algorithm>
#include <utility>

#include "jobs/protocol/beanstalk/detail/beanstalk_session.hpp"
#include "jobs/protocol/beanstalk/detail/server_state.hpp"
#include "jobs/protocol/beanstalk/detail/stats.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs {
namespace {

// Raises command_bytes_max so that the largest put fits.
protocol::wire_server_options fitted(const beanstalk_options& o) {
  protocol::wire_server_options wire = o.wire;
  wire.command_bytes_max = std::max<std::size_t>(
      wire.command_bytes_max, std::size_t{o.job_bytes_max} + beanstalk::line_bytes_max + 2);
  return wire;
}

}  // namespace

class beanstalk_server::impl {
 public:
  explicit impl(beanstalk_options o) : options(std::move(o)), wire(fitted(options)) {}

  const beanstalk_options options;
  // Declared before `wire`, whose connections use it until they end. Published once, by `start`.
  std::unique_ptr<beanstalk::server_state> state;
  atomic<beanstalk::server_state*> shared{nullptr};
  atomic<bool> is_draining{false};
  protocol::wire_server wire;
};

beanstalk_server::beanstalk_server(beanstalk_options o)
    : impl_(std::make_unique<impl>(std::move(o))) {}
beanstalk_server::~beanstalk_server() {
  stop();
}

result<std::vector<std::uint16_t>> beanstalk_server::start(engine& jobs) {
  check(impl_->state == nullptr, "sluice::jobs::beanstalk_server", "one call of start");
  impl_->state = std::make_unique<beanstalk::server_state>(jobs, impl_->options);
  impl_->shared.store(impl_->state.get());
  if (impl_->is_draining.load()) impl_->state->is_draining.store(true);
  return impl_->wire.start(
      [state = impl_->state.get()](protocol::client& client) {
        return std::make_unique<beanstalk::beanstalk_session>(client, *state);
      },
      [&jobs](const std::function<void()>& run_posted) { return jobs.commit_here(run_posted); });
}

void beanstalk_server::drain() {
  impl_->is_draining.store(true);
  if (auto* const state = impl_->shared.load()) state->is_draining.store(true);
}

bool beanstalk_server::is_draining() const {
  return impl_->is_draining.load();
}

std::uint64_t beanstalk_server::reserved_jobs() const {
  const auto* const state = impl_->shared.load();
  return state == nullptr ? 0 : state->reserved.load(relaxed);
}

void beanstalk_server::stop(const wait_limits& limits) {
  impl_->wire.stop(limits);
}

result<tls_certificate> beanstalk_server::reload_tls() {
  return impl_->wire.reload_tls();
}

protocol::wire_counts beanstalk_server::counts() const {
  return impl_->wire.counts();
}

void beanstalk_server::write_metrics(std::string& out) const {
  if (const auto* const state = impl_->shared.load()) {
    beanstalk::write_metrics(out, *state, impl_->wire.counts());
  }
}

}  // namespace sluice::jobs
