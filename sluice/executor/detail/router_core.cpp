#include "sluice/executor/detail/router_core.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <mutex>
#include <utility>

#include "sluice/base/callback.hpp"
#include "sluice/base/rendezvous.hpp"
#include "sluice/sync/named.hpp"

namespace sluice::detail {
namespace {

constexpr const char* router_type = "sluice::router";

// The handlers that the calling thread is in, the innermost first.
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
  watch::set_name(this, name_);
  watch::set_name(&ended_, name_);
}

router_core::~router_core() {
  cells left;
  {
    const std::lock_guard hold(guard_);
    check_named(present_ == 0, router_type, name_.c_str(), "all its workers to be gone before it");
    check_named(producers_.empty(), router_type, name_.c_str(), "nobody to wait for room in it");
    while (!homeless_.empty()) left.push_back(homeless_.pop_front());
    for (auto* const item : shared_) left.push_back(*item);
    shared_.clear();
  }
  while (!left.empty()) delete &left.pop_front();
  watch::gone(this);
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

// ---- to whom

router_core::member* router_core::owner(std::uint64_t key) const noexcept {
  member* best = nullptr;
  std::uint64_t most = 0;
  const_cast<links&>(members_).for_each([&](member_link& each) {
    const auto offered = bid(each.who.id_, key);
    if (best != nullptr && offered <= most) return;
    best = &each.who;
    most = offered;
  });
  return best;
}

// Of those that suit, the one whose turn was longest ago.
template <class Suits>
router_core::member* router_core::next_in_turn(Suits&& suits) noexcept {
  member* best = nullptr;
  members_.for_each([&](member_link& each) {
    if (!suits(each.who)) return;
    if (best == nullptr || each.who.served_ < best->served_) best = &each.who;
  });
  if (best != nullptr) best->served_ = ++served_;
  return best;
}

template <class Suits>
router_core::member* router_core::least_loaded(Suits&& suits) noexcept {
  const auto load = [](const member& m) { return m.count_ + (m.busy_ ? 1U : 0U); };
  auto least = std::numeric_limits<std::size_t>::max();
  members_.for_each([&](member_link& each) {
    if (suits(each.who)) least = std::min(least, load(each.who));
  });
  return next_in_turn([&](const member& m) { return suits(m) && load(m) == least; });
}

bool router_core::find_room(const routed& item, member*& to) noexcept {
  const auto has_room = [this](const member& m) { return m.count_ < capacity_; };
  const auto is_idle = [](const member& m) {
    return m.count_ == 0 && (m.on_ != nullptr ? !m.scheduled_ : !m.waiting_.empty());
  };
  to = nullptr;
  switch (rule_) {
    case routing::by_priority:
      return shared_.size() < capacity_ * members_count_.load(relaxed);
    case routing::by_key:
      to = owner(item.key);
      return to != nullptr && has_room(*to);
    case routing::least_loaded:
      to = least_loaded(has_room);
      return to != nullptr;
    case routing::work_stealing:
      to = next_in_turn(is_idle);
      if (to != nullptr) return true;
      [[fallthrough]];
    case routing::round_robin:
      to = next_in_turn(has_room);
      return to != nullptr;
  }
  return false;
}

router_core::member* router_core::anyone(const routed& item) noexcept {
  const auto whoever = [](const member&) { return true; };
  if (rule_ == routing::by_key) return owner(item.key);
  if (rule_ == routing::by_priority) return nullptr;
  return rule_ == routing::least_loaded ? least_loaded(whoever) : next_in_turn(whoever);
}

// ---- in

void router_core::deliver(routed& item, member* to, aftermath& after) noexcept {
  if (rule_ == routing::by_priority) {
    shared_.insert(std::move(item.node));
    bool begun = false;
    members_.for_each([&](member_link& each) { begun = begun || kick(each.who, after); });
  } else if (to == nullptr) {
    homeless_.push_back(item);
  } else {
    to->inbox_.push_back(item);
    ++to->count_;
    kick(*to, after);
  }
}

void router_core::accept(routed_ptr& item, member* to, aftermath& after) noexcept {
  routed& taken = *item.release();
  taken.arrival = ++pushed_;
  queued_.store(queued_.load(relaxed) + 1, relaxed);
  // release: pairs with the acquire in is_open.
  unfinished_.store(unfinished_.load(relaxed) + 1, release);
  deliver(taken, to, after);
}

void router_core::forget_queued(std::size_t count, aftermath& after) noexcept {
  queued_.store(queued_.load(relaxed) - count, relaxed);
  unfinished_.store(unfinished_.load(relaxed) - count, release);  // as in accept
  after.may_have_ended = true;
}

// One goes, so that the item fits. False: it is the item that must go.
bool router_core::make_room(const routed& item, member*& to, cells& dropped,
                            aftermath& after) noexcept {
  if (overflow_ == overflow::drop_newest) return false;
  if (rule_ == routing::by_priority) {
    if (shared_.empty() || members_.empty()) return false;
    auto least = std::prev(shared_.end());
    if (overflow_ == overflow::drop_oldest) {
      if (item.priority < (*least)->priority) return false;
      routed oldest;  // the first of those that matter least
      oldest.priority = (*least)->priority;
      least = shared_.lower_bound(&oldest);
    }
    routed& victim = **least;
    victim.node = shared_.extract(least);
    dropped.push_back(victim);
  } else {
    to = anyone(item);
    if (to == nullptr || to->count_ == 0) return false;
    const bool newest = overflow_ == overflow::latest;
    dropped.push_back(take_from(*to, newest ? to->inbox_.back() : to->inbox_.front()));
  }
  forget_queued(1, after);
  return true;
}

bool router_core::offer(routed_ptr& item, status& done, aftermath& after, cells& dropped) {
  done = status::ok;
  if (closed_.load(relaxed)) {
    done = status::closed;
    return true;
  }
  member* to = nullptr;
  if (!find_room(*item, to)) {
    done = status::full;
    if (overflow_ == overflow::block) return false;
    if (overflow_ == overflow::reject) {
      ++rejected_;
      return true;
    }
    ++dropped_;
    if (!make_room(*item, to, dropped, after)) {
      dropped.push_back(*item.release());
      done = status::dropped;
      return true;
    }
    done = status::ok;
  }
  accept(item, to, after);
  return true;
}

// Those who wait for room, in their order. By key, a full inbox stands in nobody else's way.
void router_core::serve_producers(aftermath& after) noexcept {
  // What is handed on may be begun at once, which makes room: not in the middle of this walk.
  serve_again_ = true;
  if (serving_) return;
  serving_ = true;
  while (std::exchange(serve_again_, false)) {
    bool go_on = !closed_.load(relaxed);
    producers_.for_each([&](wait_node& each) {
      if (!go_on) return;
      auto& node = static_cast<push_node&>(each);
      member* to = nullptr;
      if (!find_room(**node.item, to)) {
        go_on = rule_ == routing::by_key;
        return;
      }
      node.unlink();
      if (!node.who->try_claim(node)) return;  // it gave up; its item is its own
      accept(*node.item, to, after);
      after.wakes.add(*node.who);
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

enlisted router_core::push_op::enlist(waiter& who) {
  aftermath after(core_);
  cells dropped;  // who drops does not wait
  const std::lock_guard hold(core_.guard_);
  if (core_.offer(*node_.item, node_.result, after, dropped)) return enlisted::finished;
  node_.result = status::ok;
  return sluice::join(core_.producers_, node_, who);
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

// ---- out

bool router_core::is_held(std::uint64_t key, const member& by) const noexcept {
  bool held = false;
  const_cast<links&>(held_).for_each([&](member_link& each) {
    if (&each.who != &by && each.who.key_ == key) held = true;
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
    if (longest == nullptr || each.who.count_ > longest->count_) longest = &each.who;
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
  dismiss_if_drained(after);
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
    kick_all(after);  // the next one of that key may begin
  }
}

bool router_core::kick(member& m, aftermath& after) noexcept {
  if (!has_work_for(m)) return false;
  if (m.on_ != nullptr) {
    if (m.scheduled_) return false;
    m.scheduled_ = true;
    m.turns_.fetch_add(1, relaxed);  // who waits for them has held guard_ since
    after.turns.push_back(m);
    return true;
  }
  auto* const loop = claim_front<next_node>(m.waiting_);
  if (loop == nullptr) return false;
  const bool begun = begin(m, loop->item, after);
  check(begun, router_type, "something to begin for a worker that was called");
  after.wakes.add(*loop->who);
  return true;
}

void router_core::kick_all(aftermath& after) noexcept {
  members_.for_each([&](member_link& each) { kick(each.who, after); });
}

// Closed, and nothing is left that could be moved to anybody: all loops end.
void router_core::dismiss_if_drained(aftermath& after) noexcept {
  if (!closed_.load(relaxed) || queued_.load(relaxed) > 0) return;
  members_.for_each([&](member_link& each) {
    while (auto* const loop = claim_front<next_node>(each.who.waiting_)) {
      loop->result = status::closed;
      after.wakes.add(*loop->who);
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
              "a worker with a handler not to be asked for its next item");
  return take(after);
}

enlisted router_core::next_op::enlist(waiter& who) noexcept {
  aftermath after(member_.core_);
  const std::lock_guard hold(member_.core_.guard_);
  if (take(after)) return enlisted::finished;
  check_named(member_.waiting_.empty(), router_type, member_.core_.name_.c_str(),
              "one at a time to ask a worker for its next item");
  return sluice::join(member_.waiting_, node_, who);
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
    m.on_->post(m);  // to the back of the line
    return;
  }
  // acq_rel: pairs with the acquire in is_open. `m` may be gone when the guard is let go of.
  m.over_.open_gate([&m] { return m.turns_.fetch_sub(1, acq_rel) == 1; });
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
  serving_ = true;  // nobody who waits for room gets in between what is moved
  while (!homeless_.empty()) {
    routed& item = homeless_.pop_front();
    deliver(item, anyone(item), after);
  }
  serving_ = false;
  serve_producers(after);
  kick(m, after);
  return made;
}

// What is queued for the keys that it bids most for moves to it, in order.
void router_core::take_keys(member& newcomer) noexcept {
  const auto loses = [&](const member& to_whom, std::uint64_t key) {
    return bid(newcomer.id_, key) > bid(to_whom.id_, key);
  };
  members_.for_each([&](member_link& each) {
    member& m = each.who;
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
        after.wakes.add(*loop->who);
      }
      serving_ = true;  // as in join
      while (m.count_ > 0) {
        routed& item = take_from(m, m.inbox_.front());
        member* const to = anyone(item);
        if (to != nullptr) ++to->counts_.moved_in;
        deliver(item, to, after);
      }
      serving_ = false;
      serve_producers(after);  // what they wait for may belong to another now
      // `m` may be the only worker scheduled for a shared item, which it can no longer begin.
      if (rule_ == routing::work_stealing || rule_ == routing::by_priority) kick_all(after);
    }
  }
  m.over_.wait();
}

router_core::member::~member() {
  core_.leave(*this);
  aftermath after(core_);
  const std::lock_guard hold(core_.guard_);
  core_.finish(*this, after);
  --core_.present_;
}

// ---- the end

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
    after.wakes.add(*node->who);
  }
  dismiss_if_drained(after);
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
      while (each.who.count_ > 0) take(take_from(each.who, each.who.inbox_.front()));
    });
    while (!homeless_.empty()) take(homeless_.pop_front());
    while (!shared_.empty()) {
      routed& item = **shared_.begin();
      item.node = shared_.extract(shared_.begin());
      take(item);
    }
    forget_queued(count, after);
    dismiss_if_drained(after);
  }
  stop_.request_stop();
  std::vector<routed_ptr> unstarted;
  unstarted.reserve(count);
  while (!taken.empty()) unstarted.emplace_back(&taken.pop_front());
  std::ranges::sort(unstarted, {}, [](const routed_ptr& item) { return item->arrival; });
  ended_.wait();
  return unstarted;
}

// ---- looking

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

router_worker_stats router_core::look_at(const member& m) const noexcept {
  auto now = m.counts_;
  now.queued = m.count_;
  now.busy = m.busy_;
  return now;
}

router_worker_stats router_core::stats_of(const member& m) const {
  const std::lock_guard hold(guard_);
  return look_at(m);
}

std::vector<router_worker_stats> router_core::worker_stats() const {
  std::vector<router_worker_stats> all;
  for (;;) {
    all.clear();
    all.reserve(members_count_.load(relaxed));  // not under the lock
    const std::lock_guard hold(guard_);
    if (all.capacity() < members_count_.load(relaxed)) continue;
    const_cast<links&>(members_).for_each(
        [&](member_link& each) { all.push_back(look_at(each.who)); });
    break;
  }
  std::ranges::sort(all, {}, &router_worker_stats::id);
  return all;
}

}  // namespace sluice::detail
