#pragma once

// A value that is built on first use, once, by one of the callers, while the others wait for it.
//
// Use it for a value that is expensive and may never be needed: a connection, a parsed file, a
// table. Prefer a plain member when it is always needed, and a function-local static when a failed
// construction needs no deadline and no coroutine.
//
// Guarantees: any thread may call anything. The initialiser never runs twice at a time, and never
// again once it has succeeded; no caller sees half a value. If it throws, the exception goes to the
// caller that ran it, and only the longest waiter may try next; without waiters, the next caller.
// It runs on the caller's thread (a coroutine's: on its executor), with no lock held; it is
// destroyed, with all it captured, after it has succeeded. A blocking `get` inside the value's own
// initialiser is a broken contract, as is destruction while it runs or while a caller waits.
// Cancel safety: a limit ends the waiting for another caller's initialiser, never the initialiser
// itself. A wait that timed out or was stopped did not take the right to build: the next waiter
// gets it.
// Cost: the value, 40 bytes, and one allocation for the initialiser. Once built, `get` is one
// acquire load.
//
//     lazy<table> primes([] { return build_table(); });
//     use(primes.get());  // a table&; throws what the initialiser threw
//     if (auto t = primes.get({10ms, stop})) use(*t);
//     auto t = co_await primes.async_get();

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "sluice/base/atomic.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/base/race_checked.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {
namespace detail {

// The right to build and the list of waiters: everything of a `lazy` except the value.
class build_gate {
 public:
  class op;

  build_gate() = default;
  build_gate(const build_gate&) = delete;
  build_gate& operator=(const build_gate&) = delete;
  ~build_gate();

  // acquire: pairs with the release in succeeded.
  bool is_built() const noexcept { return state_.load(acquire) == built; }
  std::size_t waiting() const noexcept;

  // Called by the party that has the right to build.
  void starting() noexcept;
  void succeeded() noexcept;
  void failed() noexcept;

 private:
  // idle      no builder and no waiters
  // building  one party has the right to build
  // built     final
  enum state : std::uint32_t { idle, building, built };

  atomic<std::uint32_t> state_{idle};
  atomic<std::uint32_t> builder_{0};  // its thread's number while the initialiser runs, else 0
  mutable spin_lock guard_;
  spin_budget spin_;
  wait_list waiters_;  // protected by guard_
};

class build_gate::op {
 public:
  // `at`, if it is not null, must live as long as this.
  explicit op(build_gate& gate, const call_site* at) noexcept : gate_(gate), at_(at) {}
  bool ready() const noexcept { return gate_.state_.load(relaxed) != building; }
  bool attempt() noexcept;
  enlisted enlist(waiter& waiting) noexcept;
  bool woken() const noexcept { return true; }
  void retract() noexcept;
  spin_budget& spin() noexcept { return gate_.spin_; }
  wait_report::subject wait_subject() const noexcept {
    return {&gate_, "sluice::lazy", "be built", wait_report::served_by::holders};
  }

 protected:
  bool has_turn() const noexcept { return node_.turn; }

 private:
  friend class build_gate;
  struct node : wait_node {
    bool turn = false;  // it finished with the right to build, not with the value
  };

  build_gate& gate_;
  const call_site* const at_;
  node node_;
};

}  // namespace detail

template <class T>
class lazy {
 public:
  using value_type = T;
  using found = outcome<std::reference_wrapper<T>>;

  template <std::invocable Initialiser>
  requires std::same_as<std::invoke_result_t<Initialiser&>, T>
  explicit lazy(Initialiser make)
      : maker_(std::make_unique<maker_of<Initialiser>>(std::move(make))) {}
  template <std::invocable Initialiser>
  requires std::same_as<std::invoke_result_t<Initialiser&>, T> lazy(Initialiser make, named as)
      : lazy(std::move(make)) {
    wait_report::set_name(&gate_, as.name());
  }
  lazy(const lazy&) = delete;
  lazy& operator=(const lazy&) = delete;
  ~lazy() {
    if (!gate_.is_built()) return;
    seam::writes_plain(&maker_);
    std::destroy_at(&value_);
  }

  // Returns the value; builds it, or blocks while another caller builds it.
  T& get(call_site at = {}) {
    if (gate_.is_built()) [[likely]]
      return value();
    return *get(wait_limits(at));
  }
  // Within the limits; then also timed_out and stopped.
  found get(const wait_limits& limits) { return block_on(get_op(*this, &limits.at), limits); }
  // Never builds and never waits. Returns `empty` if the value is not built.
  found try_get() noexcept {
    if (!gate_.is_built()) return status::empty;
    return std::ref(value());
  }
  // co_await returns outcome<std::reference_wrapper<T>>.
  auto async_get(wait_limits limits = {}) { return awaitable<get_op>(std::move(limits), *this); }

  bool is_built() const noexcept { return gate_.is_built(); }
  // The number of waiters in the list.
  std::size_t waiting() const noexcept { return gate_.waiting(); }

 private:
  struct maker {
    virtual ~maker() = default;
    virtual void make_at(T* where) = 0;
  };
  template <class Initialiser>
  struct maker_of final : maker {
    explicit maker_of(Initialiser&& i) : make(std::move(i)) {}
    void make_at(T* where) override { ::new (static_cast<void*>(where)) T(make()); }
    Initialiser make;
  };

  class get_op : public detail::build_gate::op {
   public:
    explicit get_op(lazy& l, const call_site* at = nullptr) noexcept : op(l.gate_, at), lazy_(l) {}
    found result(status ended) {
      if (!ended) return ended;
      if (has_turn()) lazy_.build();
      return std::ref(lazy_.value());
    }

   private:
    lazy& lazy_;
  };

  // Marked for race detection at the maker's address: at the value's own, T may have its own marks.
  T& value() noexcept {
    seam::reads_plain(&maker_);
    return value_;
  }

  void build() {
    gate_.starting();
    try {
      seam::writes_plain(&maker_);
      maker_->make_at(&value_);
    } catch (...) {
      gate_.failed();
      throw;
    }
    maker_.reset();  // before other parties see the value: they may destroy this object
    gate_.succeeded();
  }

  union {
    T value_;  // alive once built
  };
  std::unique_ptr<maker> maker_;  // accessed only by the party with the right to build
  detail::build_gate gate_;       // last, so that it checks for misuse before the rest is destroyed
};

}  // namespace sluice
