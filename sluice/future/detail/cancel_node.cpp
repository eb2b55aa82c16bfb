#include "sluice/future/detail/cancel_node.hpp"

#include <mutex>
#include <vector>

namespace sluice::detail {

// Those that are to be cancelled, each with a reference. Only who has begun to cancel a node puts
// it in, so no node is in two lists.
class cancel_node::cancel_list final : public visitor {
 public:
  void visit(cancel_node& node) noexcept override {
    if (!node.begin_cancel()) return;
    node.add_reference();
    node.next_ = std::exchange(first_, &node);
  }
  cancel_ref pop() noexcept {
    if (first_ == nullptr) return {};
    return cancel_ref::adopt(std::exchange(first_, first_->next_));
  }

 private:
  cancel_node* first_ = nullptr;
};

bool cancel_node::begin_cancel() noexcept {
  const std::lock_guard hold(guard_);
  if (cancelled_.load(relaxed)) return false;  // relaxed: changed under the guard only
  cancelled_.store(true, release);             // release: pairs with is_cancelled
  return true;
}

void cancel_node::cancel() noexcept {
  cancel_list list;
  list.visit(*this);
  while (const cancel_ref at = list.pop()) {
    cancel_ref up;
    std::stop_source stop{std::nostopstate};
    {
      // What came after the beginning has seen that it is cancelled: see token and wait_for.
      const std::lock_guard hold(at->guard_);
      up = at->up_.copy();
      stop = at->stop_;
    }
    if (up) list.visit(*up.get());
    if (at->cancels_sources()) at->each_source(list);
    stop.request_stop();  // runs the producer's callbacks: no lock is held
  }
}

std::stop_token cancel_node::token() {
  std::unique_lock hold(guard_);
  if (!stop_.stop_possible()) {
    hold.unlock();
    std::stop_source made;  // allocates
    hold.lock();
    if (!stop_.stop_possible()) {
      if (cancelled_.load(relaxed)) made.request_stop();  // nobody has its token yet
      stop_.swap(made);
    }
  }
  return stop_.get_token();
}

void cancel_node::wait_for(cancel_ref up) noexcept {
  cancel_ref cancel_too;
  {
    const std::lock_guard hold(guard_);
    std::swap(up_, up);
    if (cancelled_.load(relaxed)) cancel_too = up_.copy();
  }
  // Here, not under the guard: what it waited for before is given back, and may be destroyed.
  up.reset();
  if (cancel_too) cancel_too->cancel();
}

// Those that are still to be looked at.
class cancel_node::source_list final : public visitor {
 public:
  void visit(cancel_node& node) override {
    node.add_reference();
    left_.push_back(cancel_ref::adopt(&node));
  }
  cancel_ref pop() noexcept {
    if (left_.empty()) return {};
    auto last = std::move(left_.back());
    left_.pop_back();
    return last;
  }

 private:
  std::vector<cancel_ref> left_;  // stays empty, and allocates nothing, while there is no fan-in
};

bool cancel_node::reaches(const cancel_node& sought) noexcept {
  // A number for each walk: what several paths lead to is looked at once. It comes again after 2^32
  // of them, when no node is left that was looked at then.
  static constinit atomic<std::uint32_t> walks{0};
  const auto walk = walks.fetch_add(1, relaxed) + 1;
  source_list others;
  add_reference();
  for (auto at = cancel_ref::adopt(this); at;) {
    if (at.get() == &sought) return true;
    cancel_ref up;
    bool seen = false;
    {
      const std::lock_guard hold(at->guard_);
      seen = std::exchange(at->seen_by_walk_, walk) == walk;
      if (!seen) up = at->up_.copy();
    }
    if (!seen) at->each_source(others);
    at = up ? std::move(up) : others.pop();
  }
  return false;
}

// Those who are to make a result. It goes upstream with the guards of all that it came by held, so
// that nothing it looks at goes, and only so far.
class cancel_node::maker_list final : public visitor {
 public:
  maker_list(const watch::subject& of, watch::subject* out, std::size_t room) noexcept
      : of_(of), out_(out), room_(room) {}

  void visit(cancel_node& node) noexcept override {
    if (found_ > room_) return;  // one more than there is room for says enough
    const auto maker = watch::party::from_word(node.maker_.load(relaxed));
    if (maker || depth_ == depth_max) return add(maker);
    // Somebody has it, or it is this look itself that comes round to it: then it is not known.
    const std::unique_lock hold(node.guard_, std::try_to_lock);
    if (!hold) return add({});
    const bool in_time_before = in_time_;
    in_time_ = in_time_ || node.ends_in_time();
    const auto before = found_;
    ++depth_;
    if (node.up_) visit(*node.up_.get());
    node.each_source(*this);
    --depth_;
    if (found_ == before) add({});
    in_time_ = in_time_before;
  }
  std::size_t found() const noexcept { return found_; }

 private:
  static constexpr int depth_max = 16;

  void add(watch::party maker) noexcept {
    if (found_ < room_) {
      auto& made = out_[found_] = of_;
      made.ends_in_time = in_time_;
      if (maker) name(made, maker);
    }
    ++found_;
  }
  static void name(watch::subject& made, watch::party maker) noexcept {
    made.by = watch::served_by::one;
    made.whom = maker;
    made.how = "runs";
    // What is still queued may be dropped by whoever ends the executor.
    made.others_could = maker.what() == watch::party::kind::executor;
    if (maker.what() != watch::party::kind::actor) return;
    // Whom an actor has asked may leave the answer to somebody else.
    made = {.type = "sluice::actor",
            .wants = "hear from",
            .by = watch::served_by::one,
            .others_could = true,
            .ends_in_time = made.ends_in_time,
            .whom = maker,
            .how = "is asked"};
  }

  const watch::subject& of_;
  watch::subject* const out_;
  const std::size_t room_;
  std::size_t found_ = 0;
  int depth_ = 0;
  bool in_time_ = false;
};

std::size_t cancel_node::makers(const watch::subject& of, watch::subject* out,
                                std::size_t room) noexcept {
  maker_list all(of, out, room);
  all.visit(*this);
  return all.found();
}

void cancel_node::end() noexcept {
  // What ends because of this one is put behind it.
  constinit static thread_local cancel_node* ending = nullptr;
  constinit static thread_local bool at_work = false;
  next_ = std::exchange(ending, this);
  if (at_work) return;
  at_work = true;
  while (ending != nullptr) {
    cancel_node& at = *std::exchange(ending, ending->next_);
    const cancel_ref up = std::move(at.up_);
    std::stop_source(std::nostopstate).swap(at.stop_);  // nothing else destroys it
    at.destroy();
  }
  at_work = false;
}

}  // namespace sluice::detail
