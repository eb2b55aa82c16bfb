#include "sluice/actor/detail/system_core.hpp"

#include <cstdio>
#include <string>
#include <utility>

#include "sluice/actor/detail/cell_extra.hpp"
#include "sluice/actor/detail/error_text.hpp"
#include "sluice/base/check.hpp"
#include "sluice/base/detail/callback.hpp"

namespace sluice::detail {
namespace {

// The parent of the actors that the system itself spawns; it takes no messages, and cannot fail.
class root_cell final : public cell {
 public:
  explicit root_cell(system_core& system) : cell(system, nullptr, system.on(), actor_options{}) {
    extra().name = system.options().name;
    set_named();
  }
  std::string_view type() const noexcept override { return "root"; }
  void begin() { begin_life(); }

 private:
  void construct() override {}
  void destroy() noexcept override {}
  void call_stopping() noexcept override {}
};

constinit atomic<std::uint64_t> systems{0};

}  // namespace

system_core::system_core(executor& on, actor_system_options o)
    : on_(on),
      options_(std::move(o)),
      observer_(options_.observer),
      tracks_senders_(options_.observer != nullptr || options_.on_dead_letter),
      clock_(options_.time != nullptr ? options_.time : &real_clock()),
      number_(systems.fetch_add(1, relaxed) & 0xffff) {
  if (!options_.name.empty()) wait_report::set_name(&ended_, options_.name);
  auto* const root = new root_cell(*this);
  root_ = root;
  root->begin();
}

system_core::~system_core() {
  check(ended_.is_set(), "sluice::actor_system",
        "an actor_system to be stopped before its destruction");
  root_->release();
}

void system_core::spawned(const cell& c) noexcept {
  actor_observer* const listener = observer();
  if (c.parent() == nullptr || listener == nullptr) return;
  listener->spawned(c.id(), c.parent()->id(), c.name(), c.type());
}

void system_core::actor_ended(const cell& c, end_reason why) noexcept {
  if (c.parent() == nullptr) return;
  ends_.fetch_add(1, relaxed);
  if (actor_observer* const listener = observer()) listener->ended(c.id(), why);
}

void system_core::lost(const cell& receiver, const envelope& e, loss why) noexcept {
  lost_.fetch_add(1, relaxed);
  if (why == loss::dropped) dropped_.fetch_add(1, relaxed);
  if (actor_observer* const listener = observer())
    listener->lost(receiver.id(), e.ops->type, e.note, why);
  if (!options_.on_dead_letter || is_destroyed_.load(relaxed)) return;
  const std::string name = receiver.name();
  const std::string path = receiver.path();
  const dead_letter letter{.receiver = receiver.id(),
                           .name = name,
                           .path = path,
                           .type = receiver.type(),
                           .message = e.ops->type,
                           .is_request = e.is_request,
                           .from = e.from,
                           .why = why};
  call_back("on_dead_letter of actor_system", options_.name, options_.on_dead_letter, letter);
}

void system_core::report_late_reply(const late_reply& reply) noexcept {
  late_replies_.fetch_add(1, relaxed);
  if (!options_.on_late_reply || is_destroyed_.load(relaxed)) return;
  call_back("on_late_reply of actor_system", options_.name, options_.on_late_reply, reply);
}

void system_core::failed(const cell& actor, const std::exception_ptr& error,
                         directive decision) noexcept {
  failures_.fetch_add(1, relaxed);
  if (actor_observer* const listener = observer()) listener->failed(actor.id(), error);
  const std::string name = actor.name();
  if (options_.on_failure) {
    try {
      return options_.on_failure({actor.id(), name, error, decision});
    } catch (...) {  // both errors are reported
      report_exception("on_failure of actor_system", options_.name, std::current_exception());
    }
  }
  const std::string reason = error_text(error);
  std::fprintf(stderr, "sluice: actor '%s' failed: %s; decided: %s\n", name.c_str(), reason.c_str(),
               std::string(to_string(decision)).c_str());
}

void system_core::set_part(const void* kind, std::weak_ptr<void> part) {
  parts_.with([&](auto& parts) {
    std::weak_ptr<void>& place = parts[kind];
    check(part.expired() || place.expired(), "sluice::actor_system",
          "one part of a kind at a time");
    place = std::move(part);
  });
}

std::shared_ptr<void> system_core::part(const void* kind) const {
  return parts_.with([&](const auto& parts) {
    const auto at = parts.find(kind);
    return at == parts.end() ? std::shared_ptr<void>() : at->second.lock();
  });
}

void system_core::restarted(const cell& actor) noexcept {
  restarts_.fetch_add(1, relaxed);
  if (actor_observer* const listener = observer()) listener->restarted(actor.id());
}

actor_system_stats system_core::stats() const noexcept {
  actor_system_stats s;
  // Ended actors first: an actor is spawned before it ends.
  const std::uint64_t ends = ends_.load(relaxed);
  s.spawned = ids_.load(relaxed);
  s.live = s.spawned - ends;
  s.dropped = dropped_.load(relaxed);
  s.dead_letters = lost_.load(relaxed);
  s.late_replies = late_replies_.load(relaxed);
  s.failures = failures_.load(relaxed);
  s.restarts = restarts_.load(relaxed);
  return s;
}

}  // namespace sluice::detail
