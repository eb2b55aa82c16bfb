#pragma once

// A value that is built when it is first asked for, once, by one of those who ask, while the
// others wait for it.
//
// Use it for what is expensive and may never be needed: a connection, a parsed file, a table.
// Prefer a plain member when it is always needed, and a function-local static when a failed
// construction needs no deadline and no coroutine.
//
// Guarantees: any thread may call anything. The initialiser never runs twice at a time, and never
// again once it has succeeded; nobody sees half a value. When it throws, the exception goes to
// the one whose call ran it, and the right to try again to the one that has waited longest, alone;
// when nobody waits, to whoever asks next. It runs on the asking thread (a coroutine's: on its
// executor), with no lock held; it is destroyed, with all it captured, after it has succeeded. A
// blocking `get` from inside the value's own initialiser is a broken contract, as is destruction
// while it runs or while somebody waits.
// Cancel safety: a limit ends the waiting for another one's initialiser, never the initialiser
// itself. A wait that timed out or was stopped took no turn: the next one has it.
// Cost: the value, 40 bytes, and one allocation for the initialiser. Once built, `get` is one
// acquire load.
//
//     lazy<table> primes([] { return build_table(); });
//     use(primes.get());  // a table&; throws what the initialiser threw
//     if (auto t = primes.try_get_for(10ms, stop)) use(*t);
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
#include "sluice/base/shared.hpp"
#include "sluice/sync/named.hpp"
#include "sluice/sync/spin_lock.hpp"
#include "sluice/sync/wait.hpp"

namespace sluice {
namespace detail {

// Who may build, and who waits: everything of a `lazy` but the value.
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

  // By the one that has the turn.
  void starting() noexcept;
  void succeeded() noexcept;
  void failed() noexcept;

 private:
  // idle      nobody builds, nobody waits
  // building  somebody has the turn
  // built     for good
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
  enlisted enlist(waiter& who) noexcept;
  bool woken() const noexcept { return true; }
  void retract() noexcept;
  spin_budget& spin() noexcept { return gate_.spin_; }
  watch::subject about() const noexcept {
    return {&gate_, "sluice::lazy", "be built", watch::served_by::holders};
  }

 protected:
  bool has_turn() const noexcept { return node_.turn; }

 private:
  friend class build_gate;
  struct node : wait_node {
    bool turn = false;  // it finished by getting the turn to build, not the value
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
    watch::set_name(&gate_, as.name());
  }
  lazy(const lazy&) = delete;
  lazy& operator=(const lazy&) = delete;
  ~lazy() {
    if (!gate_.is_built()) return;
    seam::writes_plain(&maker_);
    std::destroy_at(&value_);
  }

  T& get(call_site at = {}) {
    if (gate_.is_built()) [[likely]]
      return value();
    return *get_within(at);
  }
  found get(std::stop_token stop) { return get_within({{}, std::move(stop)}); }
  // What is there already. `empty`: not built yet; it does not start to build.
  found try_get() noexcept {
    if (!gate_.is_built()) return status::empty;
    return std::ref(value());
  }
  template <class Rep, class Period>
  found try_get_for(std::chrono::duration<Rep, Period> wait, std::stop_token stop = {}) {
    return get_within({deadline::after(wait), std::move(stop)});
  }
  template <class Clock, class Duration>
  found try_get_until(std::chrono::time_point<Clock, Duration> when, std::stop_token stop = {}) {
    return get_within({deadline::at(when), std::move(stop)});
  }
  // With both limits at once; also the form for a deadline on another clock.
  found get_within(const wait_limits& limits) {
    return block_on(get_op(*this, &limits.at), limits);
  }
  // co_await gives outcome<std::reference_wrapper<T>>.
  auto async_get(wait_limits limits = {}) { return awaitable<get_op>(std::move(limits), *this); }

  bool is_built() const noexcept { return gate_.is_built(); }
  // How many wait in the list right now.
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

  // Marked at the maker's address: at the value's own, T may have marks of its own.
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
    maker_.reset();  // before the others see the value: they may destroy this object
    gate_.succeeded();
  }

  union {
    T value_;  // alive once built
  };
  std::unique_ptr<maker> maker_;  // touched only by the one that has the turn
  detail::build_gate gate_;       // last, so that misuse is told before anything is destroyed
};

}  // namespace sluice
