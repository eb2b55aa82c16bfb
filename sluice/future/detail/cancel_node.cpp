#include "sluice/future/detail/cancel_node.hpp"

#include <mutex>
#include <vector>

namespace sluice::detail {

// The nodes to cancel, each with a reference. A node is added only by the thread whose begin_cancel
// returned true, so no node is in two lists.
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
      // A later `token` or `wait_for` sees that the node is cancelled.
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
      if (cancelled_.load(relaxed)) made.request_stop();  // no other thread has its token yet
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
  // Not under the guard: releasing the former upstream node may destroy it.
  up.reset();
  if (cancel_too) cancel_too->cancel();
}

// The nodes still to visit.
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
  std::vector<cancel_ref> left_;  // stays empty and allocates nothing without a fan-in
};

bool cancel_node::reaches(const cancel_node& sought) noexcept {
  // The number of the walk marks visited nodes, so each is visited once even if several paths lead
  // to it. Numbers repeat after 2^32 walks, when no node of the earlier walk exists.
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

// Collects the parties that will set a result. It walks upstream, to a limited depth, and holds the
// guards of all nodes on its path, so none of them can be destroyed.
class cancel_node::maker_list final : public visitor {
 public:
  maker_list(const wait_report::subject& of, wait_report::subject* out,
             std::size_t capacity) noexcept
      : of_(of), out_(out), capacity_(capacity) {}

  void visit(cancel_node& node) noexcept override {
    if (found_ > capacity_) return;  // capacity_ + 1 is the largest number to report
    const auto maker = wait_report::party::from_word(node.maker_.load(relaxed));
    if (maker || depth_ == depth_max) return add(maker);
    // The guard is taken by another thread, or by this walk if it is in a cycle: report unknown.
    const std::unique_lock hold(node.guard_, std::try_to_lock);
    if (!hold) return add({});
    const bool in_time_before = in_time_;
    in_time_ = in_time_ || node.ends_by_itself();
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

  void add(wait_report::party maker) noexcept {
    if (found_ < capacity_) {
      auto& made = out_[found_] = of_;
      made.ends_by_itself = in_time_;
      if (maker) name(made, maker);
    }
    ++found_;
  }
  static void name(wait_report::subject& made, wait_report::party maker) noexcept {
    made.by = wait_report::served_by::one;
    made.target = maker;
    made.activity = "runs";
    // A queued function may also be dropped by the party that ends the executor.
    made.others_can_end = maker.type() == wait_report::party::kind::executor;
    if (maker.type() != wait_report::party::kind::actor) return;
    // An actor that was asked may delegate the reply to another party.
    made = {.type = "sluice::actor",
            .wants = "get a reply from",
            .by = wait_report::served_by::one,
            .others_can_end = true,
            .ends_by_itself = made.ends_by_itself,
            .target = maker,
            .activity = "is asked"};
  }

  const wait_report::subject& of_;
  wait_report::subject* const out_;
  const std::size_t capacity_;
  std::size_t found_ = 0;
  int depth_ = 0;
  bool in_time_ = false;
};

std::size_t cancel_node::makers(const wait_report::subject& of, wait_report::subject* out,
                                std::size_t capacity) noexcept {
  maker_list all(of, out, capacity);
  all.visit(*this);
  return all.found();
}

void cancel_node::end() noexcept {
  // Nodes that end because this one does are added to the list, so destruction needs no recursion.
  constinit static thread_local cancel_node* ending = nullptr;
  constinit static thread_local bool is_destroying = false;
  next_ = std::exchange(ending, this);
  if (is_destroying) return;
  is_destroying = true;
  while (ending != nullptr) {
    cancel_node& at = *std::exchange(ending, ending->next_);
    const cancel_ref up = std::move(at.up_);
    std::stop_source(std::nostopstate).swap(at.stop_);  // `destroy` does not destroy it
    at.destroy();
  }
  is_destroying = false;
}

}  // namespace sluice::detail
