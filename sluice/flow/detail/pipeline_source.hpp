#pragma once

// The source of a pipeline without `push`. See pipeline.hpp.

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/flow/detail/call_kind.hpp"
#include "sluice/flow/detail/pipeline_core.hpp"
#include "sluice/flow/detail/stage_kind.hpp"

namespace sluice::detail {

// A function that one worker calls until it returns no item.
template <class F>
class source_stage final : public stage_base,
                           public out_port<typename call_traits_of<F>::value::value_type> {
 public:
  using out = typename call_traits_of<F>::value::value_type;

  source_stage(std::string name, F f, stage_options o)
      : stage_base(std::move(name), std::move(o)), function_(std::move(f)) {
    check_named(options_.parallelism == 1, "sluice::pipeline", name_.c_str(),
                "a parallelism of 1 for its source");
  }

  void make_workers(pipeline_core& core, std::vector<stage_worker>& result) override {
    result.push_back(work(core, *this));
  }
  void close_input() noexcept override { closed_.store(true, relaxed); }
  std::size_t queued() const noexcept override { return 0; }
  std::size_t capacity() const noexcept override { return 0; }

 private:
  static stage_worker work(pipeline_core& core, source_stage& self) {
    while (!self.closed_.load(relaxed)) {
      std::optional<out> made;
      bool threw = false;
      self.active_.fetch_add(1, relaxed);
      try {
        const stopwatch busy(core.time(), self.busy_ns_);
        if constexpr (call_traits_of<F>::kind == call_kind::task) {
          auto running = self.function_();
          made = co_await std::move(running);
        } else {
          made = self.function_();
        }
      } catch (...) {
        self.failed(core);
        threw = true;
      }
      self.active_.fetch_sub(1, relaxed);
      if (threw) continue;
      if (!made) break;
      self.in_.fetch_add(1, relaxed);
      const stopwatch blocked(core.time(), self.blocked_ns_);
      const status pushed = co_await self.next->async_push(*made, core.limits());
      (pushed ? self.out_ : self.undelivered_).fetch_add(1, relaxed);
    }
    self.next->close();
  }

  F function_;
  // relaxed: it only ends a loop and publishes nothing.
  atomic<bool> closed_{false};
};

}  // namespace sluice::detail
