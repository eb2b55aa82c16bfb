#include "sluice/base/work.hpp"

#include <utility>

namespace sluice {
namespace {

struct local_work {
  intrusive_list<work> ready;  // queued until the outermost scope ends
  bool in_scope = false;
  work_sink* diverted_to = nullptr;  // null: runs on this thread
};

local_work& this_thread_work() noexcept {
  thread_local local_work state;
  return state;
}

}  // namespace

run_scope::run_scope() noexcept : outermost_(!this_thread_work().in_scope) {
  this_thread_work().in_scope = true;
}

run_scope::~run_scope() {
  if (!outermost_) return;  // the outermost scope, further down this stack, runs the work
  auto& here = this_thread_work();
  while (!here.ready.empty()) here.ready.pop_front().run();
  here.in_scope = false;
}

run_elsewhere::run_elsewhere(work_sink& sink) noexcept
    : before_(std::exchange(this_thread_work().diverted_to, &sink)) {}

run_elsewhere::~run_elsewhere() { this_thread_work().diverted_to = before_; }

void run_here(work& item) noexcept {
  auto& here = this_thread_work();
  if (work_sink* const sink = std::exchange(here.diverted_to, nullptr); sink != nullptr) {
    sink->post(item);  // may itself call run_here, which then runs the work on this thread
    here.diverted_to = sink;
    return;
  }
  const run_scope scope;
  here.ready.push_back(item);
}

}  // namespace sluice
