#include "jobs/protocol/faktory/faktory_server.hpp"

#include <utility>

#include "jobs/protocol/faktory/detail/faktory_session.hpp"
#include "jobs/protocol/faktory/detail/shared_state.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs {

class faktory_server::impl {
 public:
  explicit impl(faktory_options o) : options_(std::move(o)), wire_(options_.wire) {
    check(options_.hash_iterations > 0, "sluice::jobs::faktory_server",
          "hash_iterations of at least 1");
  }
  ~impl() { wire_.stop(); }

  result<std::vector<std::uint16_t>> start(engine& jobs) {
    check(all_ == nullptr, "sluice::jobs::faktory_server::start", "one call of start");
    all_ = std::make_unique<faktory::shared_state>(options_, jobs);
    shown_.store(all_.get());
    return wire_.start(
        [this](protocol::client& client) {
          return std::make_unique<faktory::faktory_session>(*all_, client);
        },
        [&jobs](const std::function<void()>& run_posted) { return jobs.commit_here(run_posted); });
  }

  void use_password(std::string password) {
    if (all() == nullptr) {
      options_.password = std::move(password);
    } else {
      all()->password.with([&](std::string& p) { p = std::move(password); });
    }
  }

  faktory::shared_state* all() { return shown_.load(); }
  protocol::wire_server& wire() { return wire_; }

 private:
  faktory_options options_;
  std::unique_ptr<faktory::shared_state> all_;     // set by start, outlives the sessions
  atomic<faktory::shared_state*> shown_{nullptr};  // the same, for other threads during start
  protocol::wire_server wire_;
};

faktory_server::faktory_server(faktory_options o) : impl_(std::make_unique<impl>(std::move(o))) {}
faktory_server::~faktory_server() = default;

result<std::vector<std::uint16_t>> faktory_server::start(engine& jobs) {
  return impl_->start(jobs);
}

void faktory_server::close_intake() {
  if (impl_->all() == nullptr) return;
  impl_->all()->is_closed.store(true, relaxed);
  impl_->all()->crew.set_all_states(worker_state::terminate);
}

void faktory_server::stop(const wait_limits& limits) {
  impl_->wire().stop(limits);
}

result<tls_certificate> faktory_server::reload_tls() {
  return impl_->wire().reload_tls();
}

void faktory_server::use_password(std::string password) {
  impl_->use_password(std::move(password));
}

faktory_worker_page faktory_server::workers(const std::string& after, std::size_t limit) const {
  if (impl_->all() == nullptr) return {};
  return impl_->all()->crew.list(after, limit);
}

std::optional<faktory_worker> faktory_server::set_state(const std::string& wid,
                                                        worker_state state) {
  if (impl_->all() == nullptr) return std::nullopt;
  return impl_->all()->crew.set_state(wid, state);
}

std::uint64_t faktory_server::fetched_jobs() const {
  return impl_->all() == nullptr ? 0 : impl_->all()->crew.count().jobs;
}

protocol::wire_counts faktory_server::counts() const {
  return impl_->wire().counts();
}

void faktory_server::write_metrics(std::string& out) const {
  const auto family = [&](std::string_view name, std::string_view type, std::string_view help,
                          std::uint64_t value) {
    const std::string whole = "sluice_faktory_" + std::string(name);
    out += "# HELP " + whole + ' ' + std::string(help) + "\n# TYPE " + whole + ' ' +
           std::string(type) + '\n' + whole + ' ' + std::to_string(value) + '\n';
  };
  const protocol::wire_counts wire = counts();
  family("connections", "gauge", "Connections that are open.", wire.open);
  family("connections_total", "counter", "Connections since the start.", wire.accepted);
  family("connections_refused_total", "counter", "Connections refused beyond the limit.",
         wire.refused);
  family("connection_timeouts_total", "counter", "Connections that were closed for being too slow.",
         wire.timeouts);
  family("received_bytes_total", "counter", "Bytes from clients.", wire.bytes_in);
  family("sent_bytes_total", "counter", "Bytes to clients.", wire.bytes_out);
  if (impl_->all() == nullptr) return;
  const faktory::command_counts& did = impl_->all()->counts;
  const faktory::workers::totals crew = impl_->all()->crew.count();
  family("workers", "gauge", "Workers that sent a wid.", crew.workers);
  family("workers_lost_total", "counter", "Workers whose beats stopped.", crew.lost);
  family("fetched_jobs", "gauge", "Jobs that workers hold.", crew.jobs);
  family("commands_total", "counter", "Commands.", did.commands.load(relaxed));
  family("errors_total", "counter", "Commands that were answered with an error.",
         did.errors.load(relaxed));
  family("bad_passwords_total", "counter", "HELLOs with a wrong password.",
         did.bad_passwords.load(relaxed));
  family("pushed_total", "counter", "Jobs pushed.", did.pushed.load(relaxed));
  family("fetched_total", "counter", "Jobs fetched.", did.fetched.load(relaxed));
  family("acked_total", "counter", "Jobs acked.", did.acked.load(relaxed));
  family("failed_total", "counter", "Jobs failed by their workers.", did.failed.load(relaxed));
  family("expired_total", "counter", "Jobs fetched after their expires_at, and dropped.",
         did.expired.load(relaxed));
  family("given_back_total", "counter", "Jobs that workers returned with an END.",
         did.given_back.load(relaxed));
  family("lost_total", "counter", "Jobs of lost workers.", did.lost.load(relaxed));
}

}  // namespace sluice::jobs
