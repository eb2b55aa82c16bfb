#include "sluice/executor/strand.hpp"

#include <source_location>
#include <utility>

#include "sluice/sync/backoff.hpp"
#include "sluice/sync/named.hpp"

namespace sluice {

// A list of the strands whose functions the calling thread is in, innermost first.
class strand::inside {
 public:
  explicit inside(const strand& s) noexcept : strand_(s), below_(std::exchange(top, this)) {}
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;
  ~inside() { top = below_; }

  static bool has(const strand& s) noexcept {
    for (const inside* at = top; at != nullptr; at = at->below_) {
      if (&at->strand_ == &s) return true;
    }
    return false;
  }

 private:
  static constinit thread_local inside* top;
  const strand& strand_;
  inside* const below_;
};

constinit thread_local strand::inside* strand::inside::top = nullptr;

// For wait reports: while it exists, a wait for the end of the strand is a wait for this thread.
class strand::reported_turn {
 public:
  explicit reported_turn(const strand& s) noexcept : gate_(s.ended_) {
    if (!wait_report::is_on()) [[likely]] return;
    who_ = wait_report::party::current();
    wait_report::took({.object = &gate_,
                 .type = "sluice::strand",
                 .mode = wait_report::held_as::running,
                 .by = who_,
                 .at = std::source_location(),
                 .waited = false});
  }
  reported_turn(const reported_turn&) = delete;
  reported_turn& operator=(const reported_turn&) = delete;
  ~reported_turn() {
    if (who_) [[unlikely]] wait_report::gave(&gate_, who_);
  }

 private:
  const end_gate& gate_;
  wait_report::party who_{};
};

strand::strand(options&& o, executor& on)
    : queued_executor("sluice::strand", {.capacity = o.capacity,
                                         .overflow = o.overflow,
                                         .name = std::move(o.name),
                                         .on_drop = std::move(o.on_drop),
                                         .on_error = std::move(o.on_error)}),
      on_(on),
      use_(&on, executor_user::strand),
      per_turn_(o.per_turn),
      blocks_(o.overflow == overflow::block),
      ended_(*this) {
  check_named(o.overflow != overflow::caller_runs, "sluice::strand", intake_.name().c_str(),
              "a policy other than caller_runs, which would run two at once");
  check_named(per_turn_ > 0, "sluice::strand", intake_.name().c_str(),
              "to run at least one function a turn");
  if (!intake_.name().empty()) wait_report::set_name(&ended_, intake_.name());
}

strand::~strand() {
  drain();
  // acquire: pairs with the release in `post`, which touches nothing after it.
  for (backoff again; posting_.load(acquire) != 0;) again.pause();
  ended_.wait();  // the last post may have requested a turn after its item had run
  end("sluice::strand");
}

bool strand::running_here() const noexcept { return inside::has(*this); }

void strand::must_be_outside() const noexcept {
  check_named(!running_here(), "sluice::strand", intake_.name().c_str(),
              "not to be ended from inside, where it would wait for itself");
}

// ---- submitting and posting

void strand::post(work& item) noexcept {
  // A running turn may run the item immediately and cause the destruction of the strand. relaxed:
  // the destroying thread got the item, and this addition happens before the item was queued.
  posting_.fetch_add(1, relaxed);
  const bool taken = intake_.post(item);
  check(taken, "sluice::strand", "to take posts until its destruction");
  const bool needs_turn = count_arrival();
  // release: pairs with the acquire in the destructor. Before the turn is posted, because posting
  // may run the turn on this thread, and the work it makes ready may destroy the strand. The
  // destructor waits for the turn itself.
  posting_.fetch_sub(1, release);
  if (needs_turn) on_.post(*this);
}

status strand::accept(submission& f, const wait_limits* limits) {
  const bool may_wait = limits == nullptr || !blocks_ || !running_here();
  if (may_wait) [[likely]] return queued_executor::accept(f, limits);
  if (limits->stop.stop_requested()) return status::stopped;
  return queued_executor::accept(f, nullptr);
}

// Returns true if the strand was idle: the caller must post a turn.
bool strand::count_arrival() noexcept {
  // acq_rel: a turn that reads this number (in `run`) sees the item added before; and the thread
  // that makes it 1 synchronizes with the turn that made it 0, whose effects the next turn must
  // see.
  return arrivals_.fetch_add(1, acq_rel) == 0;
}

void strand::arrived() noexcept {
  if (count_arrival()) on_.post(*this);
}

// ---- a turn

void strand::run() noexcept {
  turns_.store(turns_.load(relaxed) + 1, relaxed);
  run_some();
  auto seen = arrivals_.load(acquire);  // acquire: pairs with the addition in `count_arrival`
  if (intake_.pending() == 0) {
    bool done = false;
    ended_.open_gate([&] {
      // Fails if work has arrived since. release: pairs with the acquire in `count_arrival` and in
      // is_open. After success, the strand may be destroyed once the guard is released.
      done = arrivals_.compare_exchange_strong(seen, 0, acq_rel, relaxed);
      return done && ended_.is_open();
    });
    if (done) return;
  }
  on_.post(*this);  // to the back of the queue
}

void strand::run_some() noexcept {
  const inside mark(*this);
  const running here(*this);
  const reported_turn reported(*this);
  for (std::size_t left = per_turn_; left > 0; --left) {
    auto next = intake_.try_pop();
    if (!next) return;
    const bool was_posted = next->mark == submission::kind::posted;
    run_submission(*next);
    auto& count = was_posted ? posts_ : completed_;
    count.store(count.load(relaxed) + 1, relaxed);
  }
}

// ---- shutdown

bool strand::end_gate::is_open() const noexcept {
  // acquire: pairs with the release in `run`. An item may be inside before its arrival is counted,
  // so `pending` is checked too: the turn of that item will open the gate.
  return strand_.is_closed() && strand_.arrivals_.load(acquire) == 0 &&
         strand_.intake_.pending() == 0;
}

void strand::intake_closed() noexcept {
  ended_.open_gate([&] { return ended_.is_open(); });
}

status strand::join(const wait_limits& limits) {
  must_be_outside();
  return ended_.wait(limits);
}

void strand::drain() {
  must_be_outside();
  close();
  ended_.wait();
}

std::vector<submission> strand::stop() {
  must_be_outside();
  close();
  // Before the stop request: when the running function stops, the next would begin.
  auto unstarted = intake_.take_back();
  stop_.request_stop();
  ended_.wait();
  return unstarted;
}

std::vector<submission> strand::shutdown(const wait_limits& limits) {
  must_be_outside();
  close();
  if (!join(limits)) return stop();
  return {};
}

// ---- statistics

strand_stats strand::stats() const {
  const auto in = intake_.stats();
  return {.queued = queued(),
          .completed = completed_.load(relaxed),
          .failed = failures(),
          .posts = posts_.load(relaxed),
          .rejected = in.rejected,
          .dropped = in.dropped,
          .turns = turns_.load(relaxed)};
}

}  // namespace sluice
