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
// Approximate memory of an invalid line's error.
constexpr std::size_t error_bytes = 512;
// A line of two bytes becomes a result of a hundred: without a limit, one read of a connection
// would make megabytes of results.
constexpr std::size_t invalid_lines_max = 1000;
// A job with the largest arguments, plus its other fields.
constexpr std::size_t line_bytes_max = limits::args_bytes_max + (std::size_t{1} << 20);

// Jobs and batches that a line names are not looked up, so a token that is limited to some queues
// cannot name any.
std::optional<error> refusal_of(const identity& caller, const job_spec& spec) {
  if (!caller.may(role::push, spec.queue)) return caller.refusal(role::push, spec.queue);
  if (auto own = refusal_of_own(spec.queue)) return own;
  if (!caller.is_scoped()) return std::nullopt;
  std::vector<job_id> named;
  add_named(named, spec);
  if (named.empty()) return std::nullopt;
  return error{error_code::forbidden,
               "the token " + std::string(caller.id()) +
                   " is limited to some queues: push a job that has batch or after as "
                   "application/json, not as NDJSON"};
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

ndjson_push::ndjson_push(server_state& server, engine& jobs, ticket reply, push_parameters asked,
                         identity caller)
    : server_(server),
      jobs_(jobs),
      reply_(std::move(reply)),
      asked_(asked),
      caller_(std::move(caller)) {}

std::size_t ndjson_push::bytes_max() const noexcept {
  const http_server_options& o = server_.options;
  return is_all_or_nothing() ? std::min(o.body_bytes_max, o.stream_bytes_max) : o.stream_bytes_max;
}

std::size_t ndjson_push::held_bytes_max() const noexcept {
  return is_all_or_nothing() ? bytes_max() : std::min(bytes_max(), line_bytes_max);
}

std::size_t ndjson_push::input_memory() const noexcept {
  return pending_.capacity() + group_bytes_ + group_.capacity() * sizeof(job_spec) +
         invalid_.size() * error_bytes;
}

void ndjson_push::feed(std::string_view bytes) {
  if (refused_) return;
  pending_ += bytes;
  if (!is_pushing_) push_lines();
}

void ndjson_push::end() {
  ended_ = true;
  if (!is_pushing_ && !refused_) push_lines();
}

// Parses lines until a group is full or no complete line is left, and pushes the group.
void ndjson_push::push_lines() {
  const auto is_full = [&] {
    return group_.size() + invalid_.size() >= group_lines_max || group_bytes_ >= group_bytes_max;
  };
  while (is_all_or_nothing() || !is_full()) {
    const std::size_t line_end = pending_.find('\n', std::max(consumed_, scanned_));
    const bool is_last = line_end == std::string::npos;
    if (is_last && (!ended_ || consumed_ == pending_.size())) break;
    const std::size_t end = is_last ? pending_.size() : line_end;
    if (!take_line(std::string_view(pending_).substr(consumed_, end - consumed_))) return;
    consumed_ = is_last ? end : end + 1;
  }
  pending_.erase(0, consumed_);
  consumed_ = 0;
  if (pending_.find('\n') == std::string::npos) {
    scanned_ = pending_.size();
    if (scanned_ > line_bytes_max) {
      return refuse(
          {error_code::too_large, "line " + std::to_string(line_ + 1) + " is longer than " +
                                      std::to_string(line_bytes_max) + " bytes" + pushed_note()});
    }
  } else {
    scanned_ = 0;
  }
  if (!is_all_or_nothing() && (!group_.empty() || !invalid_.empty())) return push_group();
  if (ended_) return is_all_or_nothing() ? push_all() : finish();
}

// Parses one line. Returns false if the request was refused.
bool ndjson_push::take_line(std::string_view line) {
  ++line_;
  if (is_blank(line)) return true;
  const http_server_options& o = server_.options;
  const std::size_t most =
      is_all_or_nothing() ? std::min(o.bulk_jobs_max, o.stream_jobs_max) : o.stream_jobs_max;
  if (++jobs_count_ > most) {
    refuse({error_code::too_large,
            "more than " + std::to_string(most) + " jobs in one request" + pushed_note()});
    return false;
  }
  group_bytes_ += line.size();
  auto spec =
      json::read<job_spec>(line, {.now = server_.time.after(milliseconds(0)), .line = line_});
  if (auto why = spec ? refusal_of(caller_, *spec) : std::nullopt) {
    why->message = "line " + std::to_string(line_) + ": " + why->message;
    spec = *std::move(why);
  }
  if (spec) {
    group_.push_back(*std::move(spec));
  } else if (is_all_or_nothing()) {
    spec.error().message += "; nothing was pushed";
    refuse(spec.error());
    return false;
  } else if (++invalid_count_ > invalid_lines_max) {
    refuse({error_code::invalid, "more than " + std::to_string(invalid_lines_max) +
                                     " lines are invalid, the last: " + spec.error().message +
                                     pushed_note()});
    return false;
  } else {
    invalid_.emplace_back(group_.size(), std::move(spec.error()));
  }
  return true;
}

void ndjson_push::push_group() {
  const grant may(server_, caller_, role::push, queues_of(caller_, group_));
  if (const auto why = may.refusal()) return refuse(*why, pushed_note());
  is_pushing_ = true;
  auto pushed =
      jobs_.push_many(std::exchange(group_, {}), bulk::each, may.limits(reply_, asked_.wait));
  group_bytes_ = 0;
  when_done(reply_, std::move(pushed),
            [me = shared_from_this(), may](const ticket& reply,
                                           const std::vector<result<push_receipt>>& r) {
              auto invalid = std::exchange(me->invalid_, {});
              auto next = invalid.begin();
              for (std::size_t i = 0; i <= r.size(); ++i) {
                for (; next != invalid.end() && next->first == i; ++next)
                  me->results_.note(next->second);
                if (i < r.size()) me->results_.note(r[i]);
              }
              me->is_pushing_ = false;
              if (me->refused_) return;
              const bool has_failed = std::ranges::any_of(r, [](const auto& one) { return !one; });
              const auto why = has_failed ? may.refusal() : std::nullopt;
              why ? me->refuse(*why, me->pushed_note()) : me->push_lines();
              reply.client().resume();
            });
}

void ndjson_push::push_all() {
  const grant may(server_, caller_, role::push, queues_of(caller_, group_));
  if (const auto why = may.refusal()) return refuse(*why, pushed_note());
  is_pushing_ = true;
  auto pushed =
      jobs_.push_many(std::move(group_), bulk::all_or_nothing, may.limits(reply_, asked_.wait));
  when_done(reply_, std::move(pushed),
            [me = shared_from_this(), may](const ticket& reply,
                                           const std::vector<result<push_receipt>>& r) {
              const bool has_any = std::ranges::any_of(r, [](const auto& one) { return !!one; });
              const auto why = has_any ? std::nullopt : may.refusal();
              why ? reply.refuse(*why) : answer_pushes(reply, r, bulk::all_or_nothing);
            });
}

std::string ndjson_push::pushed_note() const {
  return is_all_or_nothing()
             ? std::string("; nothing was pushed")
             : "; " + std::to_string(results_.accepted()) + " jobs before it were pushed";
}

void ndjson_push::refuse(const error& why, const std::string& more) {
  refused_ = true;
  reply_.refuse_and_end({why.code, why.message + more, why.job});
}

void ndjson_push::finish() {
  is_pushing_ = true;  // so that nothing more is read
  results_.answer(reply_);
}

}  // namespace sluice::jobs::http
