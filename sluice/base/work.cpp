#include "sluice/base/work.hpp"

namespace sluice {

void run_here(work& item) noexcept {
  thread_local intrusive_list<work> ready;
  thread_local bool running = false;
  ready.push_back(item);
  if (running) return;  // the loop below, further down this stack, will come to it
  running = true;
  while (!ready.empty()) ready.pop_front().run();
  running = false;
}

}  // namespace sluice
