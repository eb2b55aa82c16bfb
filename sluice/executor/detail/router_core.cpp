#include "sluice/executor/detail/router_core.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <mutex>
#include <utility>

#include "sluice/base/detail/callback.hpp"
#include "sluice/base/detail/rendezvous.hpp"
#include "sluice/sync/named.hpp"

namespace sluice::detail {
namespace {

constexpr const char* router_type = "sluice::router";

// A list of the handlers that the calling thread is in, innermost first.
struct handling {
  explicit handling(const router_core& c) noexcept : core(c), below(std::exchange(top, this)) {}
  handling(const handling&) = delete;
  handling& operator=(const handling&) = delete;
  ~handling() { top = below; }
  const router_core& core;
  handling* const below;
  static constinit thread_local handling* top;
};
constinit thread_local handling* handling::top = nullptr;

}  // namespace

router_core::router_core(options o)
    : name_(std::move(o.name)),
      rule_(o.rule),
      capacity_(o.capacity),
      overflow_(o.overflow),
      per_turn_(o.per_turn),
      on_drop_(std::move(o.on_drop)),
      on_error_(std::move(o.on_error)),
      ended_(*this) {
  const auto require = [&](bool holds, const char* expected) {
    check_named(holds, router_type, name_.c_str(), expected);
  };
  require(capacity_ > 0, "a capacity of at least 1");
  require(per_turn_ > 0, "to handle at least one item a turn");
  require(overflow_ != overflow::caller_runs,
          "a policy other than caller_runs, which is for executors");
  if (name_.empty()) return;
  wait_report::set_name(this, name_);
  wait_report::set_name(&ended_, name_);
}

router_core::~router_core() {
  cells left;
  {
    const std::lock_guard hold(guard_);
    check_named(present_ == 0, router_type, name_.c_str(),
                "all its workers to be destroyed before it");
    check_named(producers_.empty(), router_type, name_.c_str(),
                "no producer to wait for capacity at its destruction");
    while (!unassigned_.empty()) left.push_back(unassigned_.pop_front());
    for (auto* const item : shared_) left.push_back(*item);
    shared_.clear();
  }
  while (!left.empty()) delete &left.pop_front();
  wait_report::destroyed(this);
}

router_core::aftermath::~aftermath() {
  while (!turns.empty()) {
    member& m = turns.pop_front();
    m.on_->post(m);
  }
  if (may_have_ended) core.ended_.open_gate([this] { return core.ended_.is_open(); });
}

void router_core::check_outside() const noexcept {
  for (const handling* at = handling::top; at != nullptr; at = at->below) {
    check_named(&at->core != this, router_type, name_.c_str(),
                "not to be waited for in one of its handlers, which would wait for itself");
  }
}

// ---- choosing a member

router_core::member* router_core::owner(std::uint64_t key) const noexcept {
  member* best = nullptr;
  std::uint64_t most = 0;
  const_cast<links&>(members_).for_each([&](member_link& each) {
    const auto offered = rendezvous_weight(each.owner.id_, key);
    if (best != nullptr && offered <= most) return;
    best = &each.owner;
    most = offered;
  });
  return best;
}

// Returns the suitable member that was assigned an item in turn longest ago; null if none suits.
template <class Suits>
router_core::member* router_core::next_in_turn(Suits&& suits) noexcept {
  member* best = nullptr;
  members_.for_each([&](member_link& each) {
    if (!suits(each.owner)) return;
    if (best == nullptr || each.owner.served_ < best->served_) best = &each.owner;
  });
  if (best != nullptr) best->served_ = ++served_;
  return best;
}

template <class Suits>
router_core::member* router_core::least_loaded(Suits&& suits) noexcept {
  const auto load = [](const member& m) { return m.count_ + (m.busy_ ? 1U : 0U); };
  auto least = std::numeric_limits<std::size_t>::max();
  members_.for_each([&](member_link& each) {
    if (suits(each.owner)) least = std::min(least, load(each.owner));
  });
  return next_in_turn([&](const member& m) { return suits(m) && load(m) == least; });
}

bool router_core::find_capacity(const routed& item, member*& target) noexcept {
  const auto has_capacity = [this](const member& m) { return m.count_ < capacity_; };
  const auto is_idle = [](const member& m) {
    return m.count_ == 0 && (m.on_ != nullptr ? !m.scheduled_ : !m.waiting_.empty());
  };
  target = nullptr;
  switch (rule_) {
    case routing::by_priority:
      return shared_.size() < capacity_ * members_count_.load(relaxed);
    case routing::by_key:
      target = owner(item.key);
      return target != nullptr && has_capacity(*target);
    case routing::least_loaded:
      target = least_loaded(has_capacity);
      return target != nullptr;
    case routing::work_stealing:
      target = next_in_turn(is_idle);
      if (target != nullptr) return true;
      [[fallthrough]];
    case routing::round_robin:
      target = next_in_turn(has_capacity);
      return target != nullptr;
  }
  return false;
}

router_core::member* router_core::any_member(const routed& item) noexcept {
  const auto all = [](const member&) { return true; };
  if (rule_ == routing::by_key) return owner(item.key);
  if (rule_ == routing::by_priority) return nullptr;
  return rule_ == routing::least_loaded ? least_loaded(all) : next_in_turn(all);
}

// ---- pushing

void router_core::deliver(routed& item, member* target, aftermath& after) noexcept {
  if (rule_ == routing::by_priority) {
    shared_.insert(std::move(item.node));
    bool begun = false;
    members_.for_each([&](member_link& each) { begun = begun || kick(each.owner, after); });
  } else if (target == nullptr) {
    unassigned_.push_back(item);
  } else {
    target->inbox_.push_back(item);
    ++target->count_;
    kick(*target, after);
  }
}

void router_core::accept(routed_ptr& item, member* target, aftermath& after) noexcept {
  routed& taken = *item.release();
  taken.arrival = ++pushed_;
  queued_.store(queued_.load(relaxed) + 1, relaxed);
  // release: pairs with the acquire in is_open.
  unfinished_.store(unfinished_.load(relaxed) + 1, release);
  deliver(taken, target, after);
}

void router_core::subtract_queued(std::size_t count, aftermath& after) noexcept {
  queued_.store(queued_.load(relaxed) - count, relaxed);
  unfinished_.store(unfinished_.load(relaxed) - count, release);  // as in accept
  after.may_have_ended = true;
}

// Drops a queued item so that the new one fits. Returns false if the new item must be dropped.
bool router_core::drop_queued(const routed& item, member*& target, cells& dropped,
                              aftermath& after) noexcept {
  if (overflow_ == overflow::drop_newest) return false;
  if (rule_ == routing::by_priority) {
    if (shared_.empty() || members_.empty()) return false;
    auto least = std::prev(shared_.end());
    if (overflow_ == overflow::drop_oldest) {
      if (item.priority < (*least)->priority) return false;
      routed oldest;  // compares before all others of the least priority
      oldest.priority = (*least)->priority;
      least = shared_.lower_bound(&oldest);
    }
    routed& victim = **least;
    victim.node = shared_.extract(least);
    dropped.push_back(victim);
  } else {
    target = any_member(item);
    if (target == nullptr || target->count_ == 0) return false;
    const bool newest = overflow_ == overflow::latest;
    auto& inbox = target->inbox_;
    dropped.push_back(take_from(*target, newest ? inbox.back() : inbox.front()));
  }
  subtract_queued(1, after);
  return true;
}

// Accepts, drops or refuses the item and sets `result`. Returns false if the caller must wait or
// give up; `result` is then full.
bool router_core::offer(routed_ptr& item, status& result, aftermath& after, cells& dropped) {
  result = status::ok;
  if (closed_.load(relaxed)) {
    result = status::closed;
    return true;
  }
  member* target = nullptr;
  if (!find_capacity(*item, target)) {
    result = status::full;
    if (overflow_ == overflow::block) return false;
    if (overflow_ == overflow::reject) {
      ++rejected_;
      return true;
    }
    ++dropped_;
    if (!drop_queued(*item, target, dropped, after)) {
      dropped.push_back(*item.release());
      result = status::dropped;
      return true;
    }
    result = status::ok;
  }
  accept(item, target, after);
  return true;
}

// Accepts the items of waiting producers, in FIFO order. By key, a producer whose target inbox is
// full does not block the others.
void router_core::serve_producers(aftermath& after) noexcept {
  // An accepted item may begin immediately, which frees capacity and calls this again: then repeat
  // the walk instead of nesting it.
  serve_again_ = true;
  if (serving_) return;
  serving_ = true;
  while (std::exchange(serve_again_, false)) {
    bool may_continue = !closed_.load(relaxed);
    producers_.for_each([&](wait_node& each) {
      if (!may_continue) return;
      auto& node = static_cast<push_node&>(each);
      member* target = nullptr;
      if (!find_capacity(**node.item, target)) {
        may_continue = rule_ == routing::by_key;
        return;
      }
      node.unlink();
      if (!node.waiting->try_claim(node)) return;  // it gave up and keeps its item
      accept(*node.item, target, after);
      after.wakes.add(*node.waiting);
    });
  }
  serving_ = false;
}

void router_core::report(cells& dropped) {
  while (!dropped.empty()) {
    const routed_ptr item(&dropped.pop_front());
    if (on_drop_) call_back_or_report(on_error_, "on_drop of router", name_, on_drop_, *item);
  }
}

bool router_core::push_op::attempt() {
  cells dropped;
  bool finished = false;
  {
    aftermath after(core_);
    const std::lock_guard hold(core_.guard_);
    finished = core_.offer(*node_.item, node_.result, after, dropped);
  }
  core_.report(dropped);
  return finished;
}

enlisted router_core::push_op::enlist(waiter& waiting) {
  aftermath after(core_);
  cells dropped;  // stays empty: only the policy `block` waits
  const std::lock_guard hold(core_.guard_);
  if (core_.offer(*node_.item, node_.result, after, dropped)) return enlisted::finished;
  node_.result = status::ok;
  return link_waiter(core_.producers_, node_, waiting);
}

void router_core::push_op::retract() noexcept {
  const std::lock_guard hold(core_.guard_);
  if (node_.linked()) node_.unlink();
}

status router_core::push_op::result(status ended) noexcept {
  if (ended) return node_.result;
  if (ended == status::timed_out) (void)give_up();
  return ended;
}

status router_core::push_op::give_up() noexcept {
  const std::lock_guard hold(core_.guard_);
  ++core_.rejected_;
  return node_.result;
}

// ---- taking

bool router_core::is_held(std::uint64_t key, const member& by) const noexcept {
  bool held = false;
  const_cast<links&>(held_).for_each([&](member_link& each) {
    if (&each.owner != &by && each.owner.key_ == key) held = true;
  });
  return held;
}

routed* router_core::first_free(member& m) const noexcept {
  if (m.count_ == 0) return nullptr;
  if (held_.empty()) [[likely]]
    return &m.inbox_.front();
  routed* found = nullptr;
  m.inbox_.for_each([&](routed& each) {
    if (found == nullptr && !is_held(each.key, m)) found = &each;
  });
  return found;
}

bool router_core::has_work_for(const member& m) const noexcept {
  if (rule_ == routing::by_priority) return !shared_.empty();
  if (first_free(const_cast<member&>(m)) != nullptr) return true;
  return rule_ == routing::work_stealing && queued_.load(relaxed) > 0;
}

routed& router_core::take_from(member& m, routed& item) noexcept {
  item.unlink();
  --m.count_;
  return item;
}

routed* router_core::pick(member& m) noexcept {
  if (!m.place_.linked()) return nullptr;  // it has left
  if (rule_ == routing::by_priority) {
    if (shared_.empty()) return nullptr;
    routed* const most = *shared_.begin();
    most->node = shared_.extract(shared_.begin());
    return most;
  }
  if (routed* const own = first_free(m)) return &take_from(m, *own);
  if (rule_ != routing::work_stealing) return nullptr;
  member* longest = nullptr;
  members_.for_each([&](member_link& each) {
    if (longest == nullptr || each.owner.count_ > longest->count_) longest = &each.owner;
  });
  if (longest == nullptr || longest->count_ == 0) return nullptr;
  ++m.counts_.stolen;
  return &take_from(*longest, longest->inbox_.front());
}

bool router_core::begin(member& m, routed_ptr& item, aftermath& after) noexcept {
  item.reset(pick(m));
  if (item == nullptr) return false;
  m.busy_ = true;
  m.key_ = item->key;
  queued_.store(queued_.load(relaxed) - 1, relaxed);
  if (!producers_.empty()) [[unlikely]]
    serve_producers(after);
  close_loops_if_drained(after);
  return true;
}

void router_core::finish(member& m, aftermath& after) noexcept {
  if (!m.busy_) return;
  m.busy_ = false;
  ++m.counts_.handled;
  const auto left = unfinished_.load(relaxed) - 1;
  unfinished_.store(left, release);  // as in accept
  if (left == 0) after.may_have_ended = true;
  if (m.hold_.linked()) [[unlikely]] {
    m.hold_.unlink();
    kick_all(after);  // the next item of that key may begin
  }
}

bool router_core::kick(member& m, aftermath& after) noexcept {
  if (!has_work_for(m)) return false;
  if (m.on_ != nullptr) {
    if (m.scheduled_) return false;
    m.scheduled_ = true;
    m.turns_.fetch_add(1, relaxed);  // a thread that waits for turns_ takes guard_ first
    after.turns.push_back(m);
    return true;
  }
  auto* const loop = claim_front<next_node>(m.waiting_);
  if (loop == nullptr) return false;
  const bool begun = begin(m, loop->item, after);
  check(begun, router_type, "an item to begin for a worker that was woken");
  after.wakes.add(*loop->waiting);
  return true;
}

void router_core::kick_all(aftermath& after) noexcept {
  members_.for_each([&](member_link& each) { kick(each.owner, after); });
}

// Ends the waits of all loops if the router is closed and has no queued items.
void router_core::close_loops_if_drained(aftermath& after) noexcept {
  if (!closed_.load(relaxed) || queued_.load(relaxed) > 0) return;
  members_.for_each([&](member_link& each) {
    while (auto* const loop = claim_front<next_node>(each.owner.waiting_)) {
      loop->result = status::closed;
      after.wakes.add(*loop->waiting);
    }
  });
}

bool router_core::next_op::take(aftermath& after) noexcept {
  auto& core = member_.core_;
  core.finish(member_, after);
  if (core.begin(member_, node_.item, after)) return true;
  const bool left = !member_.place_.linked();
  if (!left && (!core.closed_.load(relaxed) || core.queued_.load(relaxed) > 0)) return false;
  node_.result = status::closed;
  return true;
}

bool router_core::next_op::attempt() noexcept {
  aftermath after(member_.core_);
  const std::lock_guard hold(member_.core_.guard_);
  check_named(member_.on_ == nullptr, router_type, member_.core_.name_.c_str(),
              "`next` to be called on a worker without a handler");
  return take(after);
}

enlisted router_core::next_op::enlist(waiter& waiting) noexcept {
  aftermath after(member_.core_);
  const std::lock_guard hold(member_.core_.guard_);
  if (take(after)) return enlisted::finished;
  check_named(member_.waiting_.empty(), router_type, member_.core_.name_.c_str(),
              "one call of `next` at a time on a worker");
  return link_waiter(member_.waiting_, node_, waiting);
}

void router_core::next_op::retract() noexcept {
  const std::lock_guard hold(member_.core_.guard_);
  if (node_.linked()) node_.unlink();
}

outcome<routed_ptr> router_core::next_op::result(status ended) noexcept {
  if (!ended) return ended;
  if (node_.item == nullptr) return node_.result;
  return std::move(node_.item);
}

// ---- a turn of a handler

void router_core::run_turn(member& m) noexcept {
  bool more = true;
  for (std::size_t left = per_turn_; more && left > 0; --left) {
    routed_ptr item;
    {
      aftermath after(*this);
      const std::lock_guard hold(guard_);
      finish(m, after);
      more = begin(m, item, after);
      if (!more) m.scheduled_ = false;
    }
    if (more) handle(m, *item);
  }
  if (more) {
    {
      aftermath after(*this);
      const std::lock_guard hold(guard_);
      finish(m, after);
    }
    m.on_->post(m);  // to the back of the queue
    return;
  }
  // acq_rel: pairs with the acquire in is_open. `m` may be destroyed once the guard is released.
  m.idle_.open_gate([&m] { return m.turns_.fetch_sub(1, acq_rel) == 1; });
}

void router_core::handle(member& m, routed& item) noexcept {
  const handling inside(*this);
  try {
    m.handler_(item);
  } catch (...) {
    {
      const std::lock_guard hold(guard_);
      ++m.counts_.failed;
    }
    report_to(on_error_, "a handler of router", name_, std::current_exception());
  }
}

// ---- joining and leaving

std::unique_ptr<router_core::member> router_core::join(executor* on,
                                                       std::function<void(routed&)> handler) {
  auto made = std::make_unique<member>(*this, on, std::move(handler));
  member& m = *made;
  aftermath after(*this);
  const std::lock_guard hold(guard_);
  ++present_;
  m.id_ = m.counts_.id = ++joined_;
  if (rule_ == routing::by_key) take_keys(m);
  members_.push_back(m.place_);
  members_count_.store(members_count_.load(relaxed) + 1, relaxed);
  serving_ = true;  // items of waiting producers must not get between the moved ones
  while (!unassigned_.empty()) {
    routed& item = unassigned_.pop_front();
    deliver(item, any_member(item), after);
  }
  serving_ = false;
  serve_producers(after);
  kick(m, after);
  return made;
}

// Moves the queued items of the keys that the new member owns to its inbox, in order.
void router_core::take_keys(member& newcomer) noexcept {
  const auto loses = [&](const member& former, std::uint64_t key) {
    return rendezvous_weight(newcomer.id_, key) > rendezvous_weight(former.id_, key);
  };
  members_.for_each([&](member_link& each) {
    member& m = each.owner;
    m.inbox_.for_each([&](routed& item) {
      if (!loses(m, item.key)) return;
      newcomer.inbox_.push_back(take_from(m, item));
      ++newcomer.count_;
      ++newcomer.counts_.moved_in;
    });
    if (m.busy_ && loses(m, m.key_)) hold_key(m);
  });
}

void router_core::hold_key(member& m) noexcept {
  if (!m.hold_.linked()) held_.push_back(m.hold_);
}

void router_core::leave(member& m) {
  for (const handling* at = handling::top; at != nullptr; at = at->below) {
    check_named(!m.has_handler() || &at->core != this, router_type, name_.c_str(),
                "a worker not to leave in a handler, where it could wait for itself");
  }
  {
    aftermath after(*this);
    const std::lock_guard hold(guard_);
    if (m.place_.linked()) {
      m.place_.unlink();
      members_count_.store(members_count_.load(relaxed) - 1, relaxed);
      if (rule_ == routing::by_key && m.busy_) hold_key(m);
      while (auto* const loop = claim_front<next_node>(m.waiting_)) {
        loop->result = status::closed;
        after.wakes.add(*loop->waiting);
      }
      serving_ = true;  // as in join
      while (m.count_ > 0) {
        routed& item = take_from(m, m.inbox_.front());
        member* const target = any_member(item);
        if (target != nullptr) ++target->counts_.moved_in;
        deliver(item, target, after);
      }
      serving_ = false;
      serve_producers(after);  // their keys may belong to another member now
      // `m` may be the only worker scheduled for a shared item, which it can no longer begin.
      if (rule_ == routing::work_stealing || rule_ == routing::by_priority) kick_all(after);
    }
  }
  m.idle_.wait();
}

router_core::member::~member() {
  core_.leave(*this);
  aftermath after(core_);
  const std::lock_guard hold(core_.guard_);
  core_.finish(*this, after);
  --core_.present_;
}

// ---- shutdown

bool router_core::end_gate::is_open() const noexcept {
  return core_.is_closed() && core_.unfinished_.load(acquire) == 0;
}

bool router_core::close() {
  aftermath after(*this);
  const std::lock_guard hold(guard_);
  if (closed_.load(relaxed)) return false;
  closed_.store(true, release);  // release: pairs with the acquire in is_closed
  while (auto* const node = claim_front<push_node>(producers_)) {
    node->result = status::closed;
    after.wakes.add(*node->waiting);
  }
  close_loops_if_drained(after);
  after.may_have_ended = true;
  return true;
}

std::vector<routed_ptr> router_core::stop() {
  close();
  cells taken;
  std::size_t count = 0;
  {
    aftermath after(*this);
    const std::lock_guard hold(guard_);
    const auto take = [&](routed& item) {
      taken.push_back(item);
      ++count;
    };
    members_.for_each([&](member_link& each) {
      while (each.owner.count_ > 0) take(take_from(each.owner, each.owner.inbox_.front()));
    });
    while (!unassigned_.empty()) take(unassigned_.pop_front());
    while (!shared_.empty()) {
      routed& item = **shared_.begin();
      item.node = shared_.extract(shared_.begin());
      take(item);
    }
    subtract_queued(count, after);
    close_loops_if_drained(after);
  }
  stop_.request_stop();
  std::vector<routed_ptr> unstarted;
  unstarted.reserve(count);
  while (!taken.empty()) unstarted.emplace_back(&taken.pop_front());
  std::ranges::sort(unstarted, {}, [](const routed_ptr& item) { return item->arrival; });
  ended_.wait();
  return unstarted;
}

// ---- statistics

std::uint64_t router_core::owner_of(std::uint64_t key) const {
  const std::lock_guard hold(guard_);
  const member* const m = owner(key);
  return m != nullptr ? m->id_ : 0;
}

std::size_t router_core::waiting_to_push() const noexcept {
  const std::lock_guard hold(guard_);
  return producers_.size();
}

router_stats router_core::stats() const {
  const std::lock_guard hold(guard_);
  return {.workers = members_count_.load(relaxed),
          .queued = queued_.load(relaxed),
          .unfinished = unfinished_.load(relaxed),
          .pushed = pushed_,
          .rejected = rejected_,
          .dropped = dropped_};
}

router_worker_stats router_core::stats_locked(const member& m) const noexcept {
  auto now = m.counts_;
  now.queued = m.count_;
  now.busy = m.busy_;
  return now;
}

router_worker_stats router_core::stats_of(const member& m) const {
  const std::lock_guard hold(guard_);
  return stats_locked(m);
}

std::vector<router_worker_stats> router_core::worker_stats() const {
  std::vector<router_worker_stats> all;
  for (;;) {
    all.clear();
    all.reserve(members_count_.load(relaxed));  // not under the lock
    const std::lock_guard hold(guard_);
    if (all.capacity() < members_count_.load(relaxed)) continue;
    const_cast<links&>(members_).for_each(
        [&](member_link& each) { all.push_back(stats_locked(each.owner)); });
    break;
  }
  std::ranges::sort(all, {}, &router_worker_stats::id);
  return all;
}

}  // namespace sluice::detail
