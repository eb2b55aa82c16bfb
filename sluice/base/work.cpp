#include "sluice/base/work.hpp"

#include <utility>

namespace sluice {
namespace {

struct running_here {
  intrusive_list<work> ready;
  bool in_scope = false;
  work_sink* elsewhere = nullptr;
};

running_here& this_thread_runs() noexcept {
  thread_local running_here mine;
  return mine;
}

}  // namespace

run_scope::run_scope() noexcept : outermost_(!this_thread_runs().in_scope) {
  this_thread_runs().in_scope = true;
}

run_scope::~run_scope() {
  if (!outermost_) return;  // the outermost, further down this stack, will come to it
  auto& here = this_thread_runs();
  while (!here.ready.empty()) here.ready.pop_front().run();
  here.in_scope = false;
}

run_elsewhere::run_elsewhere(work_sink& sink) noexcept
    : before_(std::exchange(this_thread_runs().elsewhere, &sink)) {}

run_elsewhere::~run_elsewhere() { this_thread_runs().elsewhere = before_; }

void run_here(work& item) noexcept {
  auto& here = this_thread_runs();
  if (work_sink* const sink = std::exchange(here.elsewhere, nullptr); sink != nullptr) {
    sink->post(item);  // which may itself find no better place than here
    here.elsewhere = sink;
    return;
  }
  const run_scope scope;
  here.ready.push_back(item);
}

}  // namespace sluice
