#pragma once

// Stands in for an actor in a test: takes the messages Ms, and the test checks them with `expect`.
//
// Use it with `actor_test_kit`, which runs actors only when the test does so, or with real threads.
//
// Guarantees: messages are expected in the order in which they were begun. An expectation that is
// not met throws an actor_test_error with the expected type, the message that arrived instead, and
// the messages behind it; that message stays for the next expectation. With a kit, `expect` first
// runs all ready work; its time limit is virtual, and time advances from timer to timer until the
// message arrives. With threads it waits, 5 s by default, and returns as soon as the message
// arrives. `reply` and `fail` answer expected requests, the oldest first; a request without an
// answer fails as unanswered at the end of the probe. Only the test's thread may call it; its ref
// is for any thread. The system must outlive it.
// Limits: each message type once.
//
//     actor_probe<opened, price> shop(kit);                 // struct price { using reply = int; }
//     auto answer = shop.ref().ask(price{"tea"});
//     EXPECT_EQ(shop.expect<price>().of, "tea");
//     shop.reply<price>(3);
//     shop.expect_no_message();

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "sluice/actor/actor.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/actor_test_error.hpp"
#include "sluice/actor/actor_test_kit.hpp"
#include "sluice/actor/detail/actor_names.hpp"
#include "sluice/actor/detail/time_text.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice {

namespace detail {

template <class M>
struct probed {
  M message;
  responder<reply_of<M>> asker;
};

// The messages that arrived and were not expected yet, in order.
template <class... Ms>
using probe_inbox = guarded<std::deque<std::variant<probed<Ms>...>>>;

template <class... Ms>
class probe_actor : public actor<probe_actor<Ms...>, Ms...> {
 public:
  explicit probe_actor(std::shared_ptr<probe_inbox<Ms...>> into) : into_(std::move(into)) {}

  template <message M>
  requires(!request<M>) void on(M m) { keep(probed<M>{std::move(m), {}}); }
  template <request M>
  void on(M m, responder<reply_of<M>> asker) {
    keep(probed<M>{std::move(m), std::move(asker)});
  }

 private:
  template <class P>
  void keep(P p) {
    into_->with([&](auto& all) { all.emplace_back(std::move(p)); });
  }

  const std::shared_ptr<probe_inbox<Ms...>> into_;
};

template <class M>
std::string describe_message(const M& m) {
  if constexpr (requires(std::ostream & out) { out << m; }) {
    std::ostringstream out;
    out << short_type(type_name<M>()) << " " << m;
    return out.str();
  } else {
    return std::string(short_type(type_name<M>()));
  }
}

}  // namespace detail

template <message... Ms>
class actor_probe {
 public:
  using actor_type = detail::probe_actor<Ms...>;
  static constexpr std::chrono::seconds usual_wait{5};

  explicit actor_probe(actor_test_kit& kit, std::string name = "probe")
      : actor_probe(kit.system(), std::move(name)) {
    kit_ = &kit;
  }
  explicit actor_probe(actor_system& system, std::string name = "probe")
      : name_(std::move(name)), ref_(system.spawn_with<actor_type>(options_for(name_), inbox_)) {}
  actor_probe(const actor_probe&) = delete;
  actor_probe& operator=(const actor_probe&) = delete;
  ~actor_probe() { ref_.stop(); }

  const sluice::ref<actor_type>& ref() const noexcept { return ref_; }

  // Returns the next message, which must be an M.
  template <class M>
  M expect(std::optional<std::chrono::nanoseconds> within = {}) {
    static_assert(messages<Ms...>::template contains<M>, "this probe does not take such a message");
    const bool came = wait(within ? *within : usual());
    auto all = inbox_->lock();
    if (!came) {
      throw actor_test_error(expected<M>() + within_text(within) + ", and nothing came");
    }
    auto* const first = std::get_if<detail::probed<M>>(&all->front());
    if (first == nullptr) throw actor_test_error(expected<M>() + what_came(*all));
    M m = std::move(first->message);
    if constexpr (request<M>) open_of<M>().push_back(std::move(first->asker));
    all->pop_front();
    return m;
  }
  // Expects these messages one after the other, each within `within`.
  template <class... Wanted>
  std::tuple<Wanted...> expect_in_order(std::optional<std::chrono::nanoseconds> within = {}) {
    return std::tuple<Wanted...>{expect<Wanted>(within)...};
  }
  // With threads it does not wait, unless `during` is given.
  void expect_no_message(std::chrono::nanoseconds during = {}) {
    if (!wait(during)) return;
    const auto all = inbox_->lock();
    throw actor_test_error("probe " + name_ + " expected no message" +
                           (during.count() > 0 ? " for " + detail::time_text(during) : "") +
                           what_came(*all));
  }

  // Replies to the oldest expected M that has no reply.
  template <request M, class... Value>
  void reply(Value&&... value) {
    take_open<M>().reply(std::forward<Value>(value)...);
    settle();
  }
  template <request M>
  void fail(std::exception_ptr why) {
    take_open<M>().fail(std::move(why));
    settle();
  }

  // Returns the number of messages that arrived and were not expected.
  std::size_t waiting() const {
    return inbox_->with([](const auto& all) { return all.size(); });
  }
  void forget_all() {
    inbox_->with([](auto& all) { all.clear(); });
  }

 private:
  template <class M>
  using responders = std::deque<responder<reply_of<M>>>;
  template <class M>
  struct open_requests {
    responders<M> askers;
  };

  static actor_options options_for(const std::string& name) {
    actor_options o;
    o.name = name;
    return o;
  }
  template <class M>
  responders<M>& open_of() {
    return std::get<open_requests<M>>(open_).askers;
  }
  template <class M>
  responder<reply_of<M>> take_open() {
    responders<M>& all = open_of<M>();
    if (all.empty()) {
      throw actor_test_error("probe " + name_ + " has no " + name_of<M>() +
                             " to answer: expect it first");
    }
    responder<reply_of<M>> asker = std::move(all.front());
    all.pop_front();
    return asker;
  }

  std::chrono::nanoseconds usual() const noexcept {
    return kit_ != nullptr ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(usual_wait);
  }
  void settle() {
    if (kit_ != nullptr) (void)kit_->settle();
  }
  // Returns true if there is a message.
  bool wait(std::chrono::nanoseconds time) {
    if (kit_ != nullptr) return kit_->advance_until(time, [this] { return waiting() > 0; });
    return static_cast<bool>(inbox_->lock_when([](const auto& all) { return !all.empty(); }, time));
  }

  template <class M>
  static std::string name_of() {
    return std::string(detail::short_type(detail::type_name<M>()));
  }
  template <class M>
  std::string expected() const {
    return "probe " + name_ + " expected " + name_of<M>();
  }
  std::string within_text(std::optional<std::chrono::nanoseconds> within) const {
    const std::chrono::nanoseconds time = within ? *within : usual();
    return time.count() > 0 ? " within " + detail::time_text(time) : "";
  }
  template <class All>
  std::string what_came(const All& all) const {
    constexpr std::size_t most = 8;
    const auto text = [](const auto& p) { return detail::describe_message(p.message); };
    std::string s = ", and " + std::visit(text, all.front()) + " came";
    for (std::size_t i = 1; i < std::min(all.size(), most); ++i) {
      s += (i == 1 ? "; behind it: " : ", ") + std::visit(text, all[i]);
    }
    if (all.size() > most) s += " and " + std::to_string(all.size() - most) + " more";
    return s;
  }

  const std::string name_;
  actor_test_kit* kit_ = nullptr;
  const std::shared_ptr<detail::probe_inbox<Ms...>> inbox_ =
      std::make_shared<detail::probe_inbox<Ms...>>();
  std::tuple<open_requests<Ms>...> open_;
  const sluice::ref<actor_type> ref_;
};

}  // namespace sluice
