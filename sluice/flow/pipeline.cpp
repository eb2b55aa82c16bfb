#include "sluice/flow/pipeline.hpp"

namespace sluice {

pipeline_handle::~pipeline_handle() {
  if (core_ == nullptr) return;
  if (!core_->has_ended()) {
    core_->must_not_be_inside("its destructor");
    core_->close();
    core_->ended().wait();
  }
  core_->report_unread_error();
}

status pipeline_handle::join(const wait_limits& limits) {
  if (!core().has_ended()) core().must_not_be_inside("join");
  const auto ended = core().ended().wait(limits);
  if (ended) core().rethrow_error();
  return ended;
}

task<status> pipeline_handle::async_join(wait_limits limits) {
  const auto ended = co_await core().ended().async_wait(std::move(limits));
  if (ended) core().rethrow_error();
  co_return ended;
}

std::size_t pipeline_handle::stop() {
  if (!core().has_ended()) core().must_not_be_inside("stop");
  core().request_stop();
  core().ended().wait();
  return unprocessed();
}

std::size_t pipeline_handle::shutdown(const wait_limits& limits) {
  close();
  if (!join(limits)) return stop();
  return unprocessed();
}

task<std::size_t> pipeline_handle::async_shutdown(wait_limits limits) {
  close();
  const auto ended = co_await async_join(std::move(limits));
  if (!ended) {
    core().request_stop();
    std::stop_source never;  // waits for the end even if this task is stopped
    const status finished = co_await core().ended().async_wait(never.get_token());
    check(static_cast<bool>(finished), "sluice::pipeline", "to end after a stop request");
  }
  co_return unprocessed();
}

}  // namespace sluice
