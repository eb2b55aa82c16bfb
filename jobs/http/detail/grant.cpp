#include "jobs/http/detail/grant.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "jobs/http/detail/server_state.hpp"

namespace sluice::jobs::http {

struct grant::entry : list_hook {
  struct request_stop {
    std::stop_source stop;
    void operator()() noexcept { stop.request_stop(); }
  };

  entry(server_state& s, const identity& w, role r, std::vector<std::string> q)
      : server(s), caller(w), needed(r), queues(std::move(q)) {
    const std::lock_guard hold(server.grants.mutex_);
    server.grants.all_.push_back(*this);
  }
  entry(const entry&) = delete;
  entry& operator=(const entry&) = delete;
  ~entry() {
    const std::lock_guard hold(server.grants.mutex_);
    unlink();
  }

  // Constant after construction.
  server_state& server;
  const identity caller;
  const role needed;
  const std::vector<std::string> queues;
  std::stop_source stop;

  // Used by the thread of the request only.
  std::optional<std::stop_callback<request_stop>> on_gone;
};

grant::grant(server_state& server, const identity& caller, role needed,
             std::vector<std::string> queues)
    : server_(&server) {
  if (!server.asks_for_tokens()) return;
  entry_ = std::make_shared<entry>(server, caller, needed, std::move(queues));
  // A change of the tokens before the entry was registered did not find it.
  if (refusal()) entry_->stop.request_stop();
}

wait_limits grant::limits(const ticket& reply, milliseconds wait) const {
  if (entry_ == nullptr) return {deadline::after(wait), reply.client().gone()};
  if (const auto end = entry_->caller.expires_at()) {
    constexpr milliseconds past_the_end{1};
    const milliseconds left = *end - server_->time.now() + past_the_end;
    wait = std::clamp(left, milliseconds(0), wait);
  }
  if (!entry_->on_gone) {
    entry_->on_gone.emplace(reply.client().gone(), entry::request_stop{entry_->stop});
  }
  return {deadline::after(wait), entry_->stop.get_token()};
}

std::optional<error> grant::refusal() const {
  if (entry_ == nullptr) return server_->refusal_of(identity(), role::read);
  return server_->refusal_of(entry_->caller, entry_->needed, entry_->queues);
}

void open_grants::end_refused(const server_state& server) {
  std::vector<std::stop_source> refused;
  {
    const std::lock_guard hold(mutex_);
    all_.for_each([&](const grant::entry& e) {
      if (server.refusal_of(e.caller, e.needed, e.queues)) refused.push_back(e.stop);
    });
  }
  // Outside the lock: ending a wait may destroy its grant, which locks.
  for (std::stop_source& each : refused) each.request_stop();
}

std::size_t open_grants::count() const {
  const std::lock_guard hold(mutex_);
  return all_.size();
}

std::vector<std::string> queues_of(const identity& caller, std::span<const job_spec> specs) {
  std::vector<std::string> queues;
  if (caller.is_local()) return queues;
  for (const job_spec& spec : specs) {
    if (queues.empty() || queues.back() != spec.queue) queues.push_back(spec.queue);
  }
  std::ranges::sort(queues);
  const auto repeated = std::ranges::unique(queues);
  queues.erase(repeated.begin(), repeated.end());
  return queues;
}

}  // namespace sluice::jobs::http
