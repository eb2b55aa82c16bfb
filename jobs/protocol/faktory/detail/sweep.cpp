#include "jobs/protocol/faktory/detail/sweep.hpp"

#include <utility>

#include "jobs/protocol/faktory/detail/faktory_job.hpp"
#include "jobs/protocol/faktory/detail/outcome.hpp"

namespace sluice::jobs::faktory {
namespace {

constexpr std::size_t page_jobs = 500;
constexpr std::size_t searched_bytes_max = std::size_t{64} << 10;

class sweep : public std::enable_shared_from_this<sweep> {
 public:
  sweep(engine& jobs, protocol::client& on, sweep_request what,
        std::function<void(void_result)> then)
      : jobs_(jobs), on_(on), what_(std::move(what)), then_(std::move(then)) {
    what_.which.limit = page_jobs;
  }

  void next_page() {
    if (on_.is_gone() || what_.until.stop_requested()) return then_(engine_is_over());
    on_.when_done(jobs_.list(what_.which),
                  [me = shared_from_this()](auto got) { me->on_page(outcome_of(std::move(got))); });
  }

 private:
  void on_page(result<job_page> page) {
    if (!page) return then_(page.error());
    cursor_ = page->cursor;
    open_ = 1;  // this
    for (const job& j : page->jobs) {
      if (!is_meant(j)) continue;
      ++open_;
      act_on(j.id);
    }
    one_done();
  }

  bool is_meant(const job& j) {
    if (is_servers_own(j.spec.queue)) return false;
    if (what_.jids.empty() && what_.pattern.empty()) return true;
    const job_facts facts = facts_of(j);
    if (!what_.jids.empty() && !what_.jids.contains(facts.jid)) return false;
    if (what_.pattern.empty()) return true;
    text_.clear();
    write_job(text_, j, facts);
    // As much as is done at once: the others of this loop wait.
    return matches(what_.pattern, std::string_view(text_).substr(0, searched_bytes_max));
  }

  void act_on(job_id id) {
    const auto done_one = [me = shared_from_this()](auto ended) {
      me->one_done(outcome_of(std::move(ended)));
    };
    switch (what_.what) {
      case sweep_request::act::discard:
        return on_.when_done(jobs_.remove(id), done_one);
      case sweep_request::act::requeue:
        return on_.when_done(jobs_.retry(id), done_one);
      case sweep_request::act::kill:
        return on_.when_done(jobs_.lease_job(id, "MUTATE"), [me = shared_from_this()](auto ended) {
          const auto got = outcome_of(std::move(ended));
          if (!got) return me->one_done(got);
          failure why;
          why.type = "Killed";
          why.message = "killed by MUTATE";
          why.for_good = true;
          me->on_.when_done(me->jobs_.fail(got->ref(), std::move(why)),
                            [me](auto failed) { me->one_done(outcome_of(std::move(failed))); });
        });
    }
  }

  template <class T>
  void one_done(const result<T>& got) {
    if (!got && !wrong_ && !came_too_late(got.error())) wrong_ = got.error();
    one_done();
  }

  void one_done() {
    if (--open_ > 0) return;
    if (wrong_) return then_(*wrong_);
    if (!cursor_) return then_(done{});
    what_.which.after = *cursor_;
    next_page();
  }

  engine& jobs_;
  protocol::client& on_;
  sweep_request what_;
  std::function<void(void_result)> then_;
  std::optional<job_id> cursor_;
  std::size_t open_ = 0;        // jobs of this page that are not done
  std::optional<error> wrong_;  // the first of them
  std::string text_;
};

// Takes a set such as [a-z] from the front of a pattern whose '[' is gone; whether it has `c`.
bool set_has(std::string_view& pattern, char c) {
  const bool is_not = !pattern.empty() && pattern.front() == '^';
  if (is_not) pattern.remove_prefix(1);
  bool has = false;
  while (!pattern.empty() && pattern.front() != ']') {
    if (pattern.front() == '\\' && pattern.size() >= 2) pattern.remove_prefix(1);
    char low = pattern.front();
    char high = low;
    pattern.remove_prefix(1);
    if (pattern.size() >= 2 && pattern.front() == '-' && pattern[1] != ']') {
      high = pattern[1];
      pattern.remove_prefix(2);
      if (low > high) std::swap(low, high);
    }
    has = has || (c >= low && c <= high);
  }
  if (!pattern.empty()) pattern.remove_prefix(1);
  return has != is_not;
}

// One element of the pattern that is not a star, and one byte.
bool takes(std::string_view& pattern, char c) {
  const char next = pattern.front();
  pattern.remove_prefix(1);
  if (next == '?') return true;
  if (next == '[') return set_has(pattern, c);
  if (next != '\\' || pattern.empty()) return next == c;
  const char literal = pattern.front();
  pattern.remove_prefix(1);
  return literal == c;
}

}  // namespace

void begin_sweep(engine& jobs, protocol::client& on, sweep_request what,
                 std::function<void(void_result)> then) {
  std::make_shared<sweep>(jobs, on, std::move(what), std::move(then))->next_page();
}

// To the last star only, so that no pattern takes longer than its length times the text's.
bool matches(std::string_view pattern, std::string_view text) {
  std::optional<std::pair<std::string_view, std::string_view>> back;  // after the last star
  while (true) {
    if (!pattern.empty() && pattern.front() == '*') {
      pattern.remove_prefix(1);
      back.emplace(pattern, text);
      continue;
    }
    if (text.empty() && pattern.empty()) return true;
    if (!text.empty() && !pattern.empty() && takes(pattern, text.front())) {
      text.remove_prefix(1);
      continue;
    }
    if (!back || back->second.empty()) return false;
    back->second.remove_prefix(1);
    std::tie(pattern, text) = *back;
  }
}

}  // namespace sluice::jobs::faktory
