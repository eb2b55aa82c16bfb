#include "sluice/executor/manual_executor.hpp"

#include <limits>

namespace sluice {

manual_executor::manual_executor(options o)
    : queued_executor("sluice::manual_executor", {.capacity = o.capacity,
                                                  .overflow = o.overflow,
                                                  .name = std::move(o.name),
                                                  .on_drop = std::move(o.on_drop),
                                                  .on_error = std::move(o.on_error)}) {}

manual_executor::~manual_executor() {
  close();
  do {
    intake_.take_back();
    run_all();
  } while (!intake_.retire());
  end("sluice::manual_executor");
}

void manual_executor::post(work& item) noexcept {
  if (!intake_.post(item)) run_here(item);
}

void manual_executor::run(submission& f) {
  const running here(*this);
  run_submission(f);
}

bool manual_executor::run_one() { return run_some(1) == 1; }

std::size_t manual_executor::run_all() {
  return run_some(std::numeric_limits<std::size_t>::max());
}

std::size_t manual_executor::run_some(std::size_t max) {
  std::size_t ran = 0;
  for (; ran < max; ++ran) {
    auto next = intake_.try_pop();
    if (!next) break;
    run(*next);
  }
  return ran;
}

status manual_executor::run_next(const wait_limits& limits) {
  auto next = intake_.pop(limits);
  if (!next) return next.status();
  run(*next);
  return status::ok;
}

}  // namespace sluice
