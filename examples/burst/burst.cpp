#include "examples/burst/burst.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include "examples/burst/cpu_time.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/counter.hpp"
#include "sluice/sync/event.hpp"

namespace burst {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using time_point = clock::time_point;

constexpr auto between_looks = 25ms;
constexpr auto between_batches = 1ms;

struct task {
  std::size_t number = 0;
};

// One run: a queue, a producer, the workers, and their counts.
class scene {
 public:
  scene(const settings& s, sluice::overflow policy, std::stop_token stop)
      : settings_(s),
        stop_(std::move(stop)),
        queue_({.capacity = s.capacity,
                .overflow = policy,
                .name = "burst",
                .on_drop = [this](task&&) { dropped_.increment(); }}) {}

  report play(const watcher& watch) {
    started_ = clock::now();
    cpu_at_start_ = cpu_of_others();
    std::vector<worker> workers(settings_.workers);
    std::vector<std::jthread> threads;
    for (worker& w : workers) threads.emplace_back([this, &w] { work(w); });
    threads.emplace_back([this] { produce(); });

    report result;
    look_until(watch, phase::drain, [this] { return all_arrived_.is_set(); });
    look_until(watch, phase::idle, [this] { return all_done(); });
    stay_idle(watch, result);

    queue_.close();  // the workers find it closed and empty, and end
    threads.clear();
    add_up(workers, result);
    return result;
  }

 private:
  struct worker {
    std::uint64_t done = 0;
    time_point last_end{};
  };

  void work(worker& me) {
    while (auto next = queue_.pop(stop_)) {
      std::this_thread::sleep_for(settings_.work);
      ++me.done;
      me.last_end = clock::now();
      done_.increment();
    }
  }

  void produce() {
    const auto batches = static_cast<std::size_t>(1 + settings_.arrival / between_batches);
    std::size_t made = 0;
    for (std::size_t batch = 1; batch <= batches && !stop_.stop_requested(); ++batch) {
      for (; made < settings_.tasks * batch / batches; ++made) offer(task{made});
      std::this_thread::sleep_until(started_ + settings_.arrival * batch / batches);
    }
    all_arrived_.set();
  }

  // The same call under every policy: only the queue was built differently.
  void offer(task next) {
    const auto before = clock::now();
    const sluice::status answer = queue_.push(std::move(next), stop_);
    longest_wait_ = std::max<nanoseconds>(longest_wait_, clock::now() - before);
    if (answer == sluice::status::stopped) return;
    if (answer == sluice::status::full) rejected_.increment();
    arrived_.increment();
  }

  bool all_done() const { return done_.sum() + rejected_.sum() + dropped_.sum() == arrived_.sum(); }

  // Shows the state repeatedly until `over`; then sets the phase to `next`.
  template <class Over>
  void look_until(const watcher& watch, phase next, Over over) {
    while (!over() && !stop_.stop_requested()) {
      watch(look());
      std::this_thread::sleep_for(between_looks);
    }
    phase_ = next;
  }

  void stay_idle(const watcher& watch, report& result) {
    result.cpu = cpu_of_others_since(cpu_at_start_);
    idle_since_ = clock::now();
    cpu_at_idle_ = cpu_of_others();
    look_until(watch, phase::idle, [&] { return clock::now() >= idle_since_ + settings_.idle; });
    const moment last = look();
    watch(last);
    result.idle_for = last.idle_for;
    result.idle_cpu = last.idle_cpu;
  }

  moment look() const {
    moment m{.phase = phase_,
             .since_start = clock::now() - started_,
             .arrived = count(arrived_),
             .done = count(done_),
             .rejected = count(rejected_),
             .dropped = count(dropped_),
             .depth = queue_.size(),
             .cpu = cpu_of_others_since(cpu_at_start_)};
    if (phase_ == phase::idle) {
      m.idle_for = clock::now() - idle_since_;
      m.idle_cpu = cpu_of_others_since(cpu_at_idle_);
    }
    return m;
  }

  void add_up(const std::vector<worker>& workers, report& result) const {
    auto last_end = started_;
    for (const worker& w : workers) {
      result.done += w.done;
      last_end = std::max(last_end, w.last_end);
    }
    result.interrupted = stop_.stop_requested();
    result.arrived = count(arrived_);
    result.rejected = count(rejected_);
    result.dropped = count(dropped_);
    result.deepest = queue_.high_water();
    result.drained_after = last_end - started_;
    result.longest_wait = longest_wait_;
    result.queue_disagrees = compare(result, queue_.stats());
  }

  static std::string compare(const report& seen, const sluice::queue_stats& kept) {
    const auto differs = [](const char* label, std::uint64_t ours, std::uint64_t queues) {
      return ours == queues ? std::string()
                            : "the queue counted " + std::to_string(queues) + " " + label +
                                  ", its users " + std::to_string(ours) + "; ";
    };
    return differs("popped", seen.done, kept.popped) +
           differs("rejected", seen.rejected, kept.rejected) +
           differs("dropped", seen.dropped, kept.dropped);
  }

  static std::uint64_t count(const sluice::counter& c) {
    return static_cast<std::uint64_t>(c.sum());
  }

  const settings& settings_;
  const std::stop_token stop_;

  sluice::counter arrived_;
  sluice::counter done_;
  sluice::counter rejected_;
  sluice::counter dropped_;
  sluice::event all_arrived_;
  sluice::bounded_queue<task> queue_;
  nanoseconds longest_wait_{};  // of the producer; read after it has ended

  // Used by the watching thread only, except the start, which all threads read.
  time_point started_{};
  time_point idle_since_{};
  nanoseconds cpu_at_start_{};
  nanoseconds cpu_at_idle_{};
  phase phase_ = phase::burst;
};

}  // namespace

report run(const settings& s, sluice::overflow policy, std::stop_token stop, const watcher& watch) {
  scene one(s, policy, std::move(stop));
  report result = one.play(watch);
  result.policy = policy;
  return result;
}

std::string find_error(const report& r, std::uint64_t tasks) {
  if (r.interrupted) return {};
  std::string wrong = r.queue_disagrees;
  if (r.arrived != tasks) {
    wrong += std::to_string(r.arrived) + " of " + std::to_string(tasks) + " tasks arrived; ";
  }
  const auto accounted_for = r.done + r.rejected + r.dropped;
  if (r.arrived != accounted_for) {
    wrong += std::to_string(r.arrived) + " arrived, but " + std::to_string(r.done) + " done + " +
             std::to_string(r.rejected) + " rejected + " + std::to_string(r.dropped) +
             " dropped is " + std::to_string(accounted_for);
  }
  return wrong.empty() ? wrong : std::string(to_string(r.policy)) + ": " + wrong;
}

}  // namespace burst
