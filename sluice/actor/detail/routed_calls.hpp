#pragma once

// The calls of a group of like actors, written once for routers and pools: those of a ref, and
// those that go to all of them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/detail/member_keeper.hpp"
#include "sluice/actor/detail/member_table.hpp"
#include "sluice/actor/ref.hpp"
#include "sluice/future/when_any.hpp"

namespace sluice {

// What a router or a pool counts.
struct actor_group_stats {
  std::size_t members = 0;     // that take messages
  std::size_t draining = 0;    // that finish what is in their mailbox, and end
  std::size_t queued = 0;      // in the mailboxes of the first
  std::uint64_t handed = 0;    // messages that a member has accepted; broadcasts are not in it
  std::uint64_t refused = 0;   // full, timed out, stopped, closed
  std::uint64_t replaced = 0;  // members that came in the place of one that had ended
  std::uint64_t grown = 0;     // members that came because of the load
  std::uint64_t drained = 0;   // members that were let go, and have ended
};

namespace detail {

template <class K>
std::uint64_t key_bits(const K& key) noexcept {
  if constexpr (std::is_integral_v<K> || std::is_enum_v<K>) {
    return static_cast<std::uint64_t>(key);
  } else {
    return std::hash<K>()(key);
  }
}
template <class M>
std::optional<std::uint64_t> key_of(const M& m) {
  if constexpr (requires { m.key(); }) {
    return key_bits(m.key());
  } else {
    return std::nullopt;
  }
}
inline key_if_any address_of(const std::optional<std::uint64_t>& key) noexcept {
  return key ? &*key : nullptr;
}

template <class A>
class routed_calls : public send_calls<routed_calls<A>> {
 public:
  using actor_type = A;

  // The general forms. They move from `m` only when the answer is ok or dropped.
  template <message M>
  status send_within(M& m, const wait_limits& limits) const {
    return hand_in(m, &limits);
  }
  template <message M>
  status try_send_ref(M& m) const {
    return hand_in(m, nullptr);
  }
  // co_await gives a status. The message is lost if it is not ok.
  template <message M>
  task<status> async_send(M m, wait_limits limits = {}) const {
    const std::optional<std::uint64_t> key = key_of(m);
    envelope_ptr<letter<M>> l(make_envelope<letter<M>>(*ops<M>().sent, std::move(m)));
    return send_later<M>(table_, keeper_, std::move(l), key, std::move(limits));
  }
  template <request M>
  future<reply_of<M>> ask(M m, wait_limits limits = {}) const {
    const std::optional<std::uint64_t> key = key_of(m);
    told_ask_ptr told = told_ask::of(*keeper_);
    cell_ptr by;
    auto answer = request_through(
        *keeper_, *ops<M>().asked, std::move(m), told,
        note_if_limited(*keeper_, *ops<M>().asked, limits), [&] { return name(); },
        [&](envelope& e) { return hand_request(e, key, limits, told.get(), by); });
    if (by) tell_member(future_access::parts(answer).way_back, *by);
    return told_until(std::move(told), limits, std::move(answer));
  }
  // co_await gives the reply; no thread is held up.
  template <request M>
  task<reply_of<M>> async_ask(M m, wait_limits limits = {}) const {
    promise<reply_of<M>> answer;
    future<reply_of<M>> f = answer.get_future();
    told_ask_ptr told = told_ask::of(*keeper_);
    responder<reply_of<M>> asker(std::move(answer), told,
                                 note_if_limited(*keeper_, *ops<M>().asked, limits));
    auto handing = async_forward(std::move(m), std::move(asker), limits);
    return handed_and_answered(std::move(handing), std::move(f), std::move(told),
                               std::move(limits));
  }
  template <request M>
  status forward(M m, responder<reply_of<M>> asker, const wait_limits& limits = {}) const {
    const std::optional<std::uint64_t> key = key_of(m);
    const told_ask_ptr told = asker.told();  // whoever answers may be done with the other at once
    const cancel_ref watched = asker.watched();
    hand_on(asker, *keeper_);
    cell_ptr by;
    const status how = forward_through(
        *ops<M>().asked, std::move(m), std::move(asker), [&] { return name(); },
        [&](envelope& e) { return hand_request(e, key, limits, told.get(), by); });
    if (by) tell_member(watched, *by);
    return how;
  }
  template <request M>
  task<status> async_forward(M m, responder<reply_of<M>> asker, wait_limits limits = {}) const {
    const std::optional<std::uint64_t> key = key_of(m);
    hand_on(asker, *keeper_);
    envelope_ptr<request_letter<M>> l(
        make_envelope<request_letter<M>>(*ops<M>().asked, std::move(m), std::move(asker)));
    return forward_later<M>(table_, keeper_, std::move(l), key, std::move(limits));
  }

  // ---- all of them

  // A copy to each. Never waits: one whose mailbox has no room is passed over, or drops as its
  // policy says. Gives how many have accepted it.
  template <message M>
  std::size_t broadcast(const M& m) const {
    return to_all(m, nullptr);
  }
  // The same, but waits for room at each of them, in turn, as long as the limits allow.
  template <message M>
  std::size_t broadcast_within(const M& m, const wait_limits& limits) const {
    return to_all(m, &limits);
  }
  // Asks all of them, without waiting for room, and gives the first answer that is one. The others
  // are cancelled: their responders are no longer wanted. Fails when all have failed, with the last
  // failure; at its limits, as `ask` does. Answers that come after the first are expected, and no
  // late replies; those that come after its limits, when there was none in time, are. Of several
  // that are asked no single one is waited for: an actor_watch finds no cycle that goes through
  // such an ask.
  template <request M>
  future<reply_of<M>> ask_first(const M& m, wait_limits limits = {}) const {
    using reply = reply_of<M>;
    if (limits.stop.stop_requested()) {
      return make_failed_future<reply>(actor_error(actor_error::stopped, name(), type_name<M>()));
    }
    told_ask_ptr told = told_ask::of(*keeper_);
    std::vector<future<reply>> answers;
    std::vector<const cell*> have_it;
    const first_answer any_of_them = first_if_limited(limits);
    const member_table::view those = table_->now();
    for (const member& each : those->all) {
      answers.push_back(request_through(
          *each.who, *ops<M>().asked, M(m), nullptr,
          note_if_limited(*each.who, *ops<M>().asked, limits, any_of_them),
          [&] { return each.who->name(); },
          [&](envelope& e) {
            e.is_tried = true;
            const status how = each.who->send(e, nullptr);
            if (how && told != nullptr) have_it.push_back(each.who.get());
            return how;
          }));
    }
    // Of several any may answer: then no single one is waited for.
    if (have_it.size() == 1) told->move_to(*have_it[0]);
    if (answers.empty()) {
      const auto why = those->is_over ? actor_error::gone : actor_error::full;
      return told_until(std::move(told), limits,
                        make_failed_future<reply>(actor_error(why, name(), type_name<M>())));
    }
    auto first = when_any_success(std::move(answers)).then([](first_value<reply> won) {
      if constexpr (!std::is_void_v<reply>) return std::move(won.value);
    });
    return told_until(std::move(told), limits, std::move(first));
  }

  // ---- looking

  // The members, in the order of their slots.
  std::vector<ref<A>> members() const {
    std::vector<ref<A>> all;
    const member_table::view those = table_->now();
    for (const member& each : those->all) all.emplace_back(each.who);
    return all;
  }
  // To whom a key belongs right now; empty: nobody is there.
  template <class K>
  ref<A> owner_of(const K& key) const {
    return ref<A>(table_->owner_of(key_bits(key)));
  }
  std::size_t size() const noexcept { return table_->now()->all.size(); }
  std::string name() const { return keeper_->name(); }
  // True: it takes nothing any more, and never will.
  bool is_over() const noexcept { return table_->now()->is_over; }
  actor_group_stats stats() const {
    actor_group_stats s;
    const member_table::view those = table_->now();
    s.members = those->all.size();
    for (const member& each : those->all) s.queued += each.who->queued();
    s.draining = table_->draining.load(relaxed);
    s.handed = static_cast<std::uint64_t>(table_->handed.sum());
    s.refused = static_cast<std::uint64_t>(table_->refused.sum());
    s.replaced = table_->replaced.load(relaxed);
    s.grown = table_->grown.load(relaxed);
    s.drained = table_->drained.load(relaxed);
    return s;
  }

  // ---- ending

  // All members end: after the message that each is on; after those in their mailboxes. From here
  // on senders hear closed.
  void stop() const {
    const member_table::view those = table_->now();
    table_->end();
    // The keeper first: then it replaces none of the others.
    keeper_->request_stop(stop_how::now);
    for (const member& each : those->all) each.who->request_stop(stop_how::now);
  }
  void close() const {
    table_->end();
    keeper_->request_stop(stop_how::drain);
  }
  // Complete when the last member has ended, and nobody replaces it.
  future<actor_end> ended() const { return ref<member_keeper>(keeper_).ended(); }

 protected:
  template <class... Args>
  routed_calls(cell& parent, group_options o, Args&&... args) {
    using make = from_arguments<A, std::decay_t<Args>...>;
    o.spawn = [m = make(std::in_place, std::forward<Args>(args)...)](
                  cell& keeper, const actor_options& how) { return spawn_cell<A>(keeper, how, m); };
    table_ = std::make_shared<member_table>(std::move(o));
    keeper_ = member_keeper::begin(parent, table_);
  }
  ~routed_calls() = default;
  routed_calls(const routed_calls&) = default;
  routed_calls& operator=(const routed_calls&) = default;

  const cell_ptr& keeper() const noexcept { return keeper_; }

  // Whoever makes a group in a handler is its parent.
  template <class P>
  static cell& own_turn_of(const ref<P>& parent) {
    cell& c = parent.cell_of();
    check(cell::current() == &c || is_under_construction(c), "sluice::actor_router",
          "to be made by its parent, in a handler or constructor of that");
    return c;
  }

 private:
  template <class M>
  static constexpr const message_ops& ops() noexcept {
    return ops_of<A, M>();
  }

  // A request, which the observer sees at the member that has it.
  status hand_request(envelope& e, const std::optional<std::uint64_t>& key,
                      const wait_limits& limits, told_ask* told, cell_ptr& by) const {
    const bool is_seen = told != nullptr || watch::is_on();
    const status how =
        table_->hand_in(keeper_, e, address_of(key), &limits, is_seen ? &by : nullptr);
    if (by && told != nullptr) told->move_to(*by);
    return how;
  }

  // The same for whoever watches, unless the member has handed it on already.
  void tell_member(const cancel_ref& answer, const cell& by) const noexcept {
    if (answer) answer->made_by_next(keeper_->as_party(), by.as_party());
  }

  template <class M>
  status hand_in(M& m, const wait_limits* limits) const {
    const std::optional<std::uint64_t> key = key_of(m);
    return send_through(*ops<M>().sent, m, [&](envelope& e) {
      return table_->hand_in(keeper_, e, address_of(key), limits);
    });
  }

  template <class M>
  static task<status> send_later(std::shared_ptr<member_table> table, cell_ptr keeper,
                                 envelope_ptr<letter<M>> l, std::optional<std::uint64_t> key,
                                 wait_limits limits) {
    auto handing = table->hand_in_async(keeper, *l, address_of(key), std::move(limits));
    const status how = co_await std::move(handing);
    if (how == status::ok || how == status::dropped) (void)l.release();
    co_return how;
  }

  template <class M>
  static task<status> forward_later(std::shared_ptr<member_table> table, cell_ptr keeper,
                                    envelope_ptr<request_letter<M>> l,
                                    std::optional<std::uint64_t> key, wait_limits limits) {
    const told_ask_ptr told = l->to.told();
    const cancel_ref watched = l->to.watched();
    cell_ptr by;
    auto handing = table->hand_in_async(keeper, *l, address_of(key), std::move(limits),
                                        told != nullptr || watched ? &by : nullptr);
    const status how = co_await std::move(handing);
    if (by && told != nullptr) told->move_to(*by);
    if (by && watched) watched->made_by_next(keeper->as_party(), by->as_party());
    co_return settle_request<M>(std::move(l), how, [&] { return keeper->name(); });
  }

  template <class M>
  std::size_t to_all(const M& m, const wait_limits* limits) const {
    std::size_t accepted = 0;
    const member_table::view those = table_->now();
    for (const member& each : those->all) {
      M copy(m);
      const status how = send_through(*ops<M>().sent, copy, [&](envelope& e) {
        e.is_tried = true;
        return each.who->send(e, limits);
      });
      if (how) ++accepted;
    }
    return accepted;
  }

  std::shared_ptr<member_table> table_;
  cell_ptr keeper_;
};

}  // namespace detail
}  // namespace sluice
