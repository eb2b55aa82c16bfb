#pragma once

// The calls of a group of like actors, shared by routers and pools: the calls of a ref, and calls
// that address all members.

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

// Counters of a router or a pool.
struct actor_group_stats {
  std::size_t members = 0;     // that accept messages
  std::size_t draining = 0;    // that finish their mailbox, and end
  std::size_t queued = 0;      // in the mailboxes of `members`
  std::uint64_t handed = 0;    // messages accepted by a member, without broadcasts
  std::uint64_t refused = 0;   // full, timed out, stopped, closed
  std::uint64_t replaced = 0;  // members that replaced an ended one
  std::uint64_t grown = 0;     // members added because of the load
  std::uint64_t drained = 0;   // members that were drained, and have ended
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

  // co_await returns a status. The message is lost if it is not ok.
  template <message M>
  task<status> async_send(M m, wait_limits limits = {}) const {
    const std::optional<std::uint64_t> key = key_of(m);
    envelope_ptr<letter<M>> l(make_envelope<letter<M>>(*ops<M>().sent, std::move(m)));
    return send_later<M>(table_, keeper_, std::move(l), key, std::move(limits));
  }
  template <request M>
  future<reply_of<M>> ask(M m, wait_limits limits = {}) const {
    const std::optional<std::uint64_t> key = key_of(m);
    reported_ask_ptr report = reported_ask::of(*keeper_);
    cell_ptr chosen;
    auto answer = request_through(
        *keeper_, *ops<M>().asked, std::move(m), report,
        note_if_limited(*keeper_, *ops<M>().asked, limits), [&] { return name(); },
        [&](envelope& e) { return submit_request(e, key, limits, report.get(), chosen); });
    if (chosen) report_member(future_access::parts(answer).way_back, *chosen);
    return limited_reported(std::move(report), limits, std::move(answer));
  }
  // co_await returns the reply; no thread is blocked.
  template <request M>
  task<reply_of<M>> async_ask(M m, wait_limits limits = {}) const {
    promise<reply_of<M>> answer;
    future<reply_of<M>> f = answer.get_future();
    reported_ask_ptr report = reported_ask::of(*keeper_);
    responder<reply_of<M>> asker(std::move(answer), report,
                                 note_if_limited(*keeper_, *ops<M>().asked, limits));
    auto submission = async_forward(std::move(m), std::move(asker), limits);
    return submit_and_await(std::move(submission), std::move(f), std::move(report),
                            std::move(limits));
  }
  template <request M>
  status forward(M m, responder<reply_of<M>> asker, const wait_limits& limits = {}) const {
    const std::optional<std::uint64_t> key = key_of(m);
    // copied: a reply may destroy the responder at once
    const reported_ask_ptr report = asker.report();
    const cancel_ref watched = asker.watched();
    report_receiver(asker, *keeper_);
    cell_ptr chosen;
    const status result = forward_through(
        *ops<M>().asked, std::move(m), std::move(asker), [&] { return name(); },
        [&](envelope& e) { return submit_request(e, key, limits, report.get(), chosen); });
    if (chosen) report_member(watched, *chosen);
    return result;
  }
  template <request M>
  task<status> async_forward(M m, responder<reply_of<M>> asker, wait_limits limits = {}) const {
    const std::optional<std::uint64_t> key = key_of(m);
    report_receiver(asker, *keeper_);
    envelope_ptr<request_letter<M>> l(
        make_envelope<request_letter<M>>(*ops<M>().asked, std::move(m), std::move(asker)));
    return forward_later<M>(table_, keeper_, std::move(l), key, std::move(limits));
  }

  // ---- all members

  // Sends a copy to each member, without waiting. A member with a full mailbox is skipped, or drops
  // by its policy. Returns how many have accepted it.
  template <message M>
  std::size_t broadcast(const M& m) const {
    return to_all(m, nullptr);
  }
  // Like broadcast, but waits for capacity at each member in turn, within the limits.
  template <message M>
  std::size_t broadcast(const M& m, const wait_limits& limits) const {
    return to_all(m, &limits);
  }
  // Asks all members, without waiting for capacity, and returns the first successful answer. The
  // other requests are cancelled: their responders are no longer wanted. Fails with the last
  // failure if all have failed, and at its limits like `ask`. Answers after the first are expected,
  // and not late replies; without an answer in time, those after the limits are. An ask to several
  // members waits for no single one: a stall_detector finds no cycle through it.
  template <request M>
  future<reply_of<M>> ask_first(const M& m, wait_limits limits = {}) const {
    using reply = reply_of<M>;
    if (limits.stop.stop_requested()) {
      return make_failed_future<reply>(actor_error(actor_error::stopped, name(), type_name<M>()));
    }
    reported_ask_ptr report = reported_ask::of(*keeper_);
    std::vector<future<reply>> answers;
    std::vector<const cell*> receivers;
    const first_answer is_answered = first_if_limited(limits);
    const member_table::view list = table_->now();
    for (const member& each : list->all) {
      answers.push_back(request_through(
          *each.target, *ops<M>().asked, M(m), nullptr,
          note_if_limited(*each.target, *ops<M>().asked, limits, is_answered),
          [&] { return each.target->name(); },
          [&](envelope& e) {
            e.is_tried = true;
            const status result = each.target->send(e, nullptr);
            if (result && report != nullptr) receivers.push_back(each.target.get());
            return result;
          }));
    }
    // With several receivers the ask waits for no single one.
    if (receivers.size() == 1) report->move_to(*receivers[0]);
    if (answers.empty()) {
      const auto reason = list->is_terminated ? actor_error::terminated : actor_error::full;
      return limited_reported(
          std::move(report), limits,
          make_failed_future<reply>(actor_error(reason, name(), type_name<M>())));
    }
    auto first = when_any_success(std::move(answers)).then([](first_value<reply> won) {
      if constexpr (!std::is_void_v<reply>) return std::move(won.value);
    });
    return limited_reported(std::move(report), limits, std::move(first));
  }

  // ---- inspection

  // Returns the members in the order of their slots.
  std::vector<ref<A>> members() const {
    std::vector<ref<A>> all;
    const member_table::view list = table_->now();
    for (const member& each : list->all) all.emplace_back(each.target);
    return all;
  }
  // Returns the member that a key belongs to now; empty: the group has no member.
  template <class K>
  ref<A> owner_of(const K& key) const {
    return ref<A>(table_->owner_of(key_bits(key)));
  }
  std::size_t size() const noexcept { return table_->now()->all.size(); }
  std::string name() const { return keeper_->name(); }
  // True: it accepts nothing, and never will again.
  bool is_terminated() const noexcept { return table_->now()->is_terminated; }
  actor_group_stats stats() const {
    actor_group_stats s;
    const member_table::view list = table_->now();
    s.members = list->all.size();
    for (const member& each : list->all) s.queued += each.target->queued();
    s.draining = table_->draining.load(relaxed);
    s.handed = static_cast<std::uint64_t>(table_->handed.sum());
    s.refused = static_cast<std::uint64_t>(table_->refused.sum());
    s.replaced = table_->replaced.load(relaxed);
    s.grown = table_->grown.load(relaxed);
    s.drained = table_->drained.load(relaxed);
    return s;
  }

  // ---- ending

  // Ends all members: `stop` after the message that each is handling, `close` after those in its
  // mailbox. From here on senders get closed.
  void stop() const {
    const member_table::view list = table_->now();
    table_->end();
    // The keeper first, so that it replaces no member.
    keeper_->request_stop(stop_mode::now);
    for (const member& each : list->all) each.target->request_stop(stop_mode::now);
  }
  void close() const {
    table_->end();
    keeper_->request_stop(stop_mode::drain);
  }
  // Ready when the last member has ended, and none will be replaced.
  future<actor_end> ended() const { return ref<member_keeper>(keeper_).ended(); }

 protected:
  template <class... Args>
  routed_calls(cell& parent, group_options o, Args&&... args) {
    using maker = from_arguments<A, std::decay_t<Args>...>;
    o.spawn = [m = maker(std::in_place, std::forward<Args>(args)...)](
                  cell& keeper, const actor_options& options) {
      return spawn_cell<A>(keeper, options, m);
    };
    table_ = std::make_shared<member_table>(std::move(o));
    keeper_ = member_keeper::begin(parent, table_);
  }
  ~routed_calls() = default;
  routed_calls(const routed_calls&) = default;
  routed_calls& operator=(const routed_calls&) = default;

  const cell_ptr& keeper() const noexcept { return keeper_; }

  // The actor that creates a group in a handler is its parent.
  template <class P>
  static cell& own_turn_of(const ref<P>& parent) {
    cell& c = parent.cell_of();
    check(cell::current() == &c || is_under_construction(c), "sluice::actor_router",
          "to be created by its parent, in a handler or constructor");
    return c;
  }

 private:
  friend class send_calls<routed_calls<A>>;
  template <message M>
  status deliver(M& m, const wait_limits* limits) const {
    return submit(m, limits);
  }
  template <class M>
  static constexpr const message_ops& ops() noexcept {
    return ops_of<A, M>();
  }

  // Submits a request, and reports the member that has it to the observer.
  status submit_request(envelope& e, const std::optional<std::uint64_t>& key,
                        const wait_limits& limits, reported_ask* report, cell_ptr& chosen) const {
    const bool is_seen = report != nullptr || wait_report::is_on();
    const status result =
        table_->submit(keeper_, e, address_of(key), &limits, is_seen ? &chosen : nullptr);
    if (chosen && report != nullptr) report->move_to(*chosen);
    return result;
  }

  // Reports that member in wait reports, unless it has forwarded the request already.
  void report_member(const cancel_ref& answer, const cell& receiver) const noexcept {
    if (answer) answer->made_by_next(keeper_->as_party(), receiver.as_party());
  }

  template <class M>
  status submit(M& m, const wait_limits* limits) const {
    const std::optional<std::uint64_t> key = key_of(m);
    return send_through(*ops<M>().sent, m, [&](envelope& e) {
      return table_->submit(keeper_, e, address_of(key), limits);
    });
  }

  template <class M>
  static task<status> send_later(std::shared_ptr<member_table> table, cell_ptr keeper,
                                 envelope_ptr<letter<M>> l, std::optional<std::uint64_t> key,
                                 wait_limits limits) {
    auto submission = table->submit_async(keeper, *l, address_of(key), std::move(limits));
    const status result = co_await std::move(submission);
    if (result == status::ok || result == status::dropped) (void)l.release();
    co_return result;
  }

  template <class M>
  static task<status> forward_later(std::shared_ptr<member_table> table, cell_ptr keeper,
                                    envelope_ptr<request_letter<M>> l,
                                    std::optional<std::uint64_t> key, wait_limits limits) {
    const reported_ask_ptr report = l->asker.report();
    const cancel_ref watched = l->asker.watched();
    cell_ptr chosen;
    auto submission = table->submit_async(keeper, *l, address_of(key), std::move(limits),
                                          report != nullptr || watched ? &chosen : nullptr);
    const status result = co_await std::move(submission);
    if (chosen && report != nullptr) report->move_to(*chosen);
    if (chosen && watched) watched->made_by_next(keeper->as_party(), chosen->as_party());
    co_return finish_request<M>(std::move(l), result, [&] { return keeper->name(); });
  }

  template <class M>
  std::size_t to_all(const M& m, const wait_limits* limits) const {
    std::size_t accepted = 0;
    const member_table::view list = table_->now();
    for (const member& each : list->all) {
      M copy(m);
      const status result = send_through(*ops<M>().sent, copy, [&](envelope& e) {
        e.is_tried = true;
        return each.target->send(e, limits);
      });
      if (result) ++accepted;
    }
    return accepted;
  }

  std::shared_ptr<member_table> table_;
  cell_ptr keeper_;
};

}  // namespace detail
}  // namespace sluice
