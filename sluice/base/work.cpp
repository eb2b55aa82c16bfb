#include "sluice/base/work.hpp"

namespace sluice {
namespace {

struct running_here {
  intrusive_list<work> ready;
  bool in_scope = false;
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

void run_here(work& item) noexcept {
  const run_scope scope;
  this_thread_runs().ready.push_back(item);
}

}  // namespace sluice
