#include "jobs/http/detail/ndjson_push.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "jobs/http/detail/server_state.hpp"
#include "jobs/json/codec.hpp"

namespace sluice::jobs::http {
namespace {

constexpr std::size_t group_lines_max = 256;
constexpr std::size_t group_bytes_max = std::size_t{256} << 10;
// The memory of an error of a line, about.
constexpr std::size_t wrong_bytes = 512;
// A line of two bytes becomes a result of a hundred: without a limit, one read of a connection
// would make megabytes of results.
constexpr std::size_t wrong_lines_max = 1000;
// A job with the largest arguments, and the rest of it.
constexpr std::size_t line_bytes_max = limits::args_bytes_max + (std::size_t{1} << 20);

// What a line names is not looked up, so who may see some queues only names nothing.
std::optional<error> refusal_of(const identity& who, const job_spec& spec) {
  if (!who.may(role::push, spec.queue)) return who.refusal(role::push, spec.queue);
  if (auto own = refusal_of_own(spec.queue)) return own;
  if (!who.is_scoped()) return std::nullopt;
  std::vector<job_id> named;
  add_named(named, spec);
  if (named.empty()) return std::nullopt;
  return error{error_code::forbidden,
               "the token " + std::string(who.id()) +
                   " is for some queues only, and with it a job that has batch or after is pushed "
                   "as application/json, not as NDJSON"};
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

ndjson_push::ndjson_push(server_state& server, engine& jobs, ticket to, push_parameters asked,
                         identity who)
    : server_(server), jobs_(jobs), to_(std::move(to)), asked_(asked), who_(std::move(who)) {}

std::size_t ndjson_push::bytes_max() const noexcept {
  const http_server_options& o = server_.options;
  return gathers() ? std::min(o.body_bytes_max, o.stream_bytes_max) : o.stream_bytes_max;
}

std::size_t ndjson_push::held_bytes_max() const noexcept {
  return gathers() ? bytes_max() : std::min(bytes_max(), line_bytes_max);
}

std::size_t ndjson_push::input_memory() const noexcept {
  return pending_.capacity() + group_bytes_ + group_.capacity() * sizeof(job_spec) +
         wrong_.size() * wrong_bytes;
}

void ndjson_push::feed(std::string_view bytes) {
  if (refused_) return;
  pending_ += bytes;
  if (!waits_) go_on();
}

void ndjson_push::end() {
  ended_ = true;
  if (!waits_ && !refused_) go_on();
}

// Looks at lines until a group is full or none is left, and pushes it.
void ndjson_push::go_on() {
  const auto is_full = [&] {
    return group_.size() + wrong_.size() >= group_lines_max || group_bytes_ >= group_bytes_max;
  };
  while (gathers() || !is_full()) {
    const std::size_t line_end = pending_.find('\n', std::max(looked_at_, scanned_));
    const bool is_last = line_end == std::string::npos;
    if (is_last && (!ended_ || looked_at_ == pending_.size())) break;
    const std::size_t end = is_last ? pending_.size() : line_end;
    if (!take_line(std::string_view(pending_).substr(looked_at_, end - looked_at_))) return;
    looked_at_ = is_last ? end : end + 1;
  }
  pending_.erase(0, looked_at_);
  looked_at_ = 0;
  if (pending_.find('\n') == std::string::npos) {
    scanned_ = pending_.size();
    if (scanned_ > line_bytes_max) {
      return refuse(
          {error_code::too_large, "line " + std::to_string(line_ + 1) + " is longer than " +
                                      std::to_string(line_bytes_max) + " bytes" + partly()});
    }
  } else {
    scanned_ = 0;
  }
  if (!gathers() && (!group_.empty() || !wrong_.empty())) return push_group();
  if (ended_) return gathers() ? push_all() : finish();
}

// False: that was the end of the request.
bool ndjson_push::take_line(std::string_view line) {
  ++line_;
  if (is_blank(line)) return true;
  const http_server_options& o = server_.options;
  const std::size_t most =
      gathers() ? std::min(o.bulk_jobs_max, o.stream_jobs_max) : o.stream_jobs_max;
  if (++jobs_count_ > most) {
    refuse({error_code::too_large,
            "more than " + std::to_string(most) + " jobs in one request" + partly()});
    return false;
  }
  group_bytes_ += line.size();
  auto spec =
      json::read<job_spec>(line, {.now = server_.time.after(milliseconds(0)), .line = line_});
  if (auto why = spec ? refusal_of(who_, *spec) : std::nullopt) {
    why->message = "line " + std::to_string(line_) + ": " + why->message;
    spec = *std::move(why);
  }
  if (spec) {
    group_.push_back(*std::move(spec));
  } else if (gathers()) {
    spec.error().message += "; nothing was pushed";
    refuse(spec.error());
    return false;
  } else if (++wrong_count_ > wrong_lines_max) {
    refuse({error_code::invalid, "more than " + std::to_string(wrong_lines_max) +
                                     " lines are wrong, the last: " + spec.error().message +
                                     partly()});
    return false;
  } else {
    wrong_.emplace_back(group_.size(), std::move(spec.error()));
  }
  return true;
}

void ndjson_push::push_group() {
  const grant may(server_, who_, role::push, queues_of(who_, group_));
  if (const auto why = may.refusal()) return refuse(*why, partly());
  waits_ = true;
  auto pushed =
      jobs_.push_many(std::exchange(group_, {}), bulk::each, may.limits(to_, asked_.wait));
  group_bytes_ = 0;
  when_done(
      to_, std::move(pushed),
      [me = shared_from_this(), may](const ticket& to, const std::vector<result<push_receipt>>& r) {
        auto wrong = std::exchange(me->wrong_, {});
        auto next = wrong.begin();
        for (std::size_t i = 0; i <= r.size(); ++i) {
          for (; next != wrong.end() && next->first == i; ++next) me->results_.note(next->second);
          if (i < r.size()) me->results_.note(r[i]);
        }
        me->waits_ = false;
        if (me->refused_) return;
        const bool has_failed = std::ranges::any_of(r, [](const auto& one) { return !one; });
        const auto why = has_failed ? may.refusal() : std::nullopt;
        why ? me->refuse(*why, me->partly()) : me->go_on();
        to.who().resume();
      });
}

void ndjson_push::push_all() {
  const grant may(server_, who_, role::push, queues_of(who_, group_));
  if (const auto why = may.refusal()) return refuse(*why, partly());
  waits_ = true;
  auto pushed =
      jobs_.push_many(std::move(group_), bulk::all_or_nothing, may.limits(to_, asked_.wait));
  when_done(
      to_, std::move(pushed),
      [me = shared_from_this(), may](const ticket& to, const std::vector<result<push_receipt>>& r) {
        const bool has_any = std::ranges::any_of(r, [](const auto& one) { return !!one; });
        const auto why = has_any ? std::nullopt : may.refusal();
        why ? to.refuse(*why) : answer_pushes(to, r, bulk::all_or_nothing);
      });
}

std::string ndjson_push::partly() const {
  return gathers() ? std::string("; nothing was pushed")
                   : "; " + std::to_string(results_.accepted()) + " jobs before it were pushed";
}

void ndjson_push::refuse(const error& why, const std::string& more) {
  refused_ = true;
  to_.refuse_and_end({why.code, why.message + more, why.job});
}

void ndjson_push::finish() {
  waits_ = true;  // for nothing: it is over
  results_.answer(to_);
}

}  // namespace sluice::jobs::http
